"""A prompt that takes longer than clients are told to bear silence, as a large one does on a slow machine: beats are what
they hear of it."""
import time
from concurrent.futures import ThreadPoolExecutor

import util
from script import says

IDLE_S = 14  # a beat comes after nine seconds; the rest is for a busy machine
AT_LAST = "At last."


def held(gate):
    """What to ask, so that nothing is said before the gate opens."""
    return "@until=%s %s" % (gate, says(AT_LAST))


def wait(server, gate, over, rows=1):
    """Until the client has borne it, or `over` says that it did not; then the gate opens."""
    try:
        server.wait_rows(rows, 0)
        time.sleep(IDLE_S + 2)  # what is tested is that nothing happens
        ended = over()
        assert not ended, ended
    finally:
        gate.open()


def bear(server, folder, asks):
    """Calls all of `asks` at once, each with a text to send; their answers."""
    gate = util.Gate(folder)
    with ThreadPoolExecutor(len(asks)) as pool:
        runs = [pool.submit(a, held(gate)) for a in asks]
        wait(server, gate, lambda: [r.result() for r in runs if r.done()], len(asks))
        return [r.result(util.PATIENCE) for r in runs]
