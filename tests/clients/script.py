"""What the double of the engine is told to say, written into a prompt."""
import json

HELLO = "Hello from the test double."
ARGS = {"city": "Köln \"x\" {y", "days": 3}


def call(name, args):
    return "\n<tool_call>\n%s\n</tool_call>" % json.dumps({"name": name, "arguments": args}, ensure_ascii=False)


def says(text):
    return "@says=%s\n" % json.dumps(text)


CALLING = says("<think>hm</think>I look." + call("get_weather", ARGS))
DONE = says("It rains.")  # a tool's result that ends the loop
