"""A coding agent's program, as a process that is given a prompt and tells events, one JSON object a line."""
import contextlib
import json
import subprocess

import util

MOST_SECONDS = 60 * util.SLOW


def start(argv, cwd, env, prompt):
    p = subprocess.Popen(argv, cwd=cwd, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(prompt)
    p.stdin.close()
    p.stdin = None
    return p


def told(p):
    """Its events, to its end."""
    try:
        out, err = p.communicate(timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        raise
    events = [json.loads(x) for x in out.splitlines() if x.startswith("{")]
    assert events, (out[-2000:], err[-2000:])
    return events


@contextlib.contextmanager
def ending(p):
    """Whatever becomes of the test, the program is gone after it."""
    try:
        yield
    finally:
        if p.poll() is None:
            p.kill()
            p.communicate()
