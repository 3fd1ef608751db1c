"""What the double of the engine is told to say, written into a prompt."""
import json

HELLO = "Hello from the test double."
ARGS = {"city": "Köln \"x\" {y", "days": 3}


def call(name, args):
    return "\n<tool_call>\n%s\n</tool_call>" % json.dumps({"name": name, "arguments": args}, ensure_ascii=False)


def says(text):
    return "@says=%s\n" % json.dumps(text)


CALLING = says("<think>hm</think>I look." + call("get_weather", ARGS))
AGAIN = says("Once more." + call("get_weather", dict(ARGS, days=4)))  # a tool's result that makes it go on
DONE = says("It rains.")  # one that ends the loop
LONG = "@n=60000 @pace=20 "  # twenty minutes of an answer, more than any test waits for
