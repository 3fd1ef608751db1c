"""A repository host on loopback for the tests of fetching: it speaks the part of the Hugging Face API
that cairn uses, remembers what it was asked, and misbehaves on request."""
import hashlib
import http.server
import json
import re
import threading

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PULL_S = 300  # seconds, for a command that reads a wheel of 253 MB under a sanitizer on a busy machine
BIG = 1 << 16  # from here on a file is "LFS": listed with its SHA-256


class Host:
    """files: name → bytes.  The knobs below may be changed while it runs."""

    def __init__(self, files, repo="org/name"):
        self.files, self.repo = dict(files), repo
        self.asked = []        # (path, Range, Authorization)
        self.cut = []          # for each of the next answers with a file: bytes after which to hang up
        self.corrupt = set()   # names whose bytes are served wrong
        self.no_range = False  # answer 200 with the whole file
        self.status = {}       # name, or "list" → HTTP status instead of content
        self.redirect = {}     # name → Location
        self.listing = None    # bytes instead of the list
        self.extra = []        # more siblings
        handler = type("Handler", (Handler,), {"host": self})
        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.httpd.daemon_threads = True
        self.thread = threading.Thread(target=self.httpd.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.httpd.server_address[1]

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()

    def ranges(self, name):
        return [r for path, r, _ in self.asked if path.endswith("/" + name)]

    def list_json(self):
        if self.listing is not None:
            return self.listing
        siblings = []
        for name, body in self.files.items():
            blob = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            s = {"rfilename": name, "size": len(body), "blobId": blob}
            if len(body) >= BIG:
                s["lfs"] = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}
            siblings.append(s)
        return json.dumps({"sha": COMMIT, "siblings": siblings + self.extra}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    host = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=(), cut=None):
        self.send_response(status)
        for k, v in headers:
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    def do_GET(self):
        h = self.host
        rng = self.headers.get("Range")
        h.asked.append((self.path, rng, self.headers.get("Authorization")))
        if self.path == "/api/models/%s/revision/main?blobs=true" % h.repo:
            if "list" in h.status:
                return self.answer(h.status["list"], b"no")
            return self.answer(200, h.list_json())
        m = re.fullmatch(r"/(?:elsewhere/)?%s/resolve/%s/(.+)" % (h.repo, COMMIT), self.path)
        if not m or m.group(1) not in h.files:
            return self.answer(404, b"no")
        name = m.group(1)
        if name in h.status:
            return self.answer(h.status[name], b"no")
        if name in h.redirect and not self.path.startswith("/elsewhere"):
            return self.answer(302, b"go on", [("Location", h.redirect[name])])
        body = h.files[name]
        if name in h.corrupt:
            body = body[:-1] + bytes([body[-1] ^ 1])
        cut = h.cut.pop(0) if h.cut else None
        start = int(re.fullmatch(r"bytes=(\d+)-", rng).group(1)) if rng and not h.no_range else 0
        if not start:
            return self.answer(200, body, cut=cut)
        where = "bytes %d-%d/%d" % (start, len(body) - 1, len(body))
        return self.answer(206, body[start:], [("Content-Range", where)], cut)


def failed(p, *says):
    """A run of cairn that ends in one line with all of `says` in it, which is the answer."""
    assert p.returncode == 1 and p.stdout == ""
    last = p.stderr.strip().split("\n")[-1]
    assert last.startswith("cairn: ")
    for s in says:
        assert s in last
    return last
