"""Asks the server, with the double of the engine, whatever schemathesis makes of docs/openapi.json: good and bad
requests of every route.  No answer may be a 500, undescribed, or of another shape than the file says.  Two servers: one
of two models that is open, one with a key.

usage: openapi_fuzz.py EXAMPLES    (of each route; make test-openapi)"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import util  # noqa: E402

SCHEMA = os.path.join(util.ROOT, "docs/openapi.json")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,negative_data_rejection"


def run(url, examples, *more):
    return subprocess.call([os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run", SCHEMA, "--url", url, "--checks", CHECKS,
                            "--max-examples", str(examples), "--phases", "examples,coverage,fuzzing", "--seed", "1", "--request-timeout", "30",
                            "--suppress-health-check", "all", "--no-color", *more])


def main():
    examples = int(sys.argv[1])
    with util.serving("--models", 2) as s:
        failed = run(s.url, examples)
    with util.serving("--key", "secret") as s:
        failed |= run(s.url, max(1, examples // 10), "-H", "Authorization: Bearer secret")
    sys.exit(failed)


main()
