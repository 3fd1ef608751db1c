"""Passes bytes between clients and a server, and holds every answer that went through it to docs/openapi.json and to the
order of its API, also of those clients that no test can look into."""
import asyncio
import re
import threading

import conform

MOST = 16 << 20  # bytes remembered of a connection


class Relay:
    def __init__(self, port):
        self.target, self.wrong, self.n_answers = port, [], 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.listener = self.run(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = self.listener.sockets[0].getsockname()[1]

    def run(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    async def serve(self, reader, writer):
        """One connection, until either side closes it."""
        tape = Tape(self)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ways = [asyncio.ensure_future(carry(reader, up_writer, tape.asked)),
                asyncio.ensure_future(carry(up_reader, writer, tape.came))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        if not ways[1].done():  # the client left; whatever is on its way came too late for it
            ways[1].cancel()
        tape.end()
        for way in ways:
            way.cancel()
        for w in (writer, up_writer):
            w.close()

    def close(self):
        """Fails if any answer was wrong."""
        async def shut():
            self.listener.close()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for t in rest:
                t.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
        self.run(shut())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        assert not self.wrong, "\n".join(self.wrong[:10])


async def carry(reader, writer, note):
    try:
        while True:
            data = await reader.read(65536)
            if not data:
                return
            note(data)
            writer.write(data)
            await writer.drain()
    except OSError:
        return


class Tape:
    """What one connection's client asked and what came, an exchange after the other."""

    def __init__(self, relay):
        self.relay, self.said, self.got, self.asks, self.blind = relay, b"", b"", [], False

    def asked(self, data):
        self.said += data
        self.requests()

    def came(self, data):
        self.got += data
        self.blind = self.blind or len(self.got) > MOST
        try:
            while not self.blind and self.reply(False):
                pass
        except Exception as e:  # whatever it is, the test is to fail of it
            self.wrong(e)

    def end(self):
        try:
            if not self.blind and self.got:
                self.reply(True)
        except Exception as e:
            self.wrong(e)

    def wrong(self, e):
        self.blind = True
        self.relay.wrong.append("%s: %s: %s" % (self.asks[:1], type(e).__name__, e))

    def requests(self):
        while b"\r\n\r\n" in self.said:
            head, _, rest = self.said.partition(b"\r\n\r\n")
            m = re.match(rb"([A-Z]+) (\S+) HTTP/1", head)
            n = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            size = int(n.group(1)) if n else 0
            if not m or (re.search(rb"(?i)\r\ntransfer-encoding:", head) and not self.chunked(rest)):
                self.blind = not m  # it is not all here yet, or no request
                return
            if size > len(rest):
                return
            if re.search(rb"(?i)\r\ntransfer-encoding:", head):
                size = rest.index(b"0\r\n\r\n") + 5
            self.asks.append((m.group(1).decode(), m.group(2).decode()))
            self.said = rest[size:]

    @staticmethod
    def chunked(rest):
        return b"0\r\n\r\n" in rest

    def reply(self, ended):
        """Takes one answer off what came, if it is there, or all that will come of it is; true: it was."""
        head, found, rest = self.got.partition(b"\r\n\r\n")
        if not found:
            return False
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        headers = {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}
        if status == 100:
            self.got = rest
            return True
        if not self.asks:  # an answer to what was no whole request: 400, 408, 413
            if ended:
                self.got = b""
            return False
        method = self.asks[0][0]
        if method == "HEAD" or status in (204, 304):
            body, size, whole = b"", 0, True
        elif headers.get("transfer-encoding") == "chunked":
            body, size, whole = unchunk(rest)
        else:
            size = int(headers["content-length"])
            body, whole = rest[:size], len(rest) >= size
        if not whole and not ended:
            return False
        conform.answer(*self.asks.pop(0), status, headers, body, whole)
        self.relay.n_answers += 1
        self.got = rest[size:]
        return whole


def unchunk(b):
    """The data of the chunks that are there, the bytes they take, and whether the last is among them."""
    out, at = b"", 0
    while True:
        end = b.find(b"\r\n", at)
        if end < 0:
            return out, at, False
        n = int(b[at:end], 16)
        if n == 0:
            return out, end + 4, len(b) >= end + 4
        if len(b) < end + 2 + n + 2:
            return out + b[end + 2:end + 2 + n], at, False
        out += b[end + 2:end + 2 + n]
        at = end + 2 + n + 2
