"""A web server on this machine, good and bad, for tests of fetching."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

ARTICLE = (
    "<html><head><title>How it  works</title></head><body><nav>Home Imprint</nav><main><h1>How it works</h1>"
    + "<p>The parser reads a line, then the next one, and so on until the end of the file is reached.</p>" * 8
    + '<pre><code class="language-py">x = 1\n  y = "ä"</code></pre><table><tr><th>a</th></tr></table>'
    + '<img src="data:image/png;base64,AAAA" alt="a picture"><script>alert(1)</script></main></body></html>'
)


class Site(BaseHTTPRequestHandler):
    """Answers by path; `asked` are the received requests."""

    asked: ClassVar[list[tuple[str, dict[str, str]]]] = []
    arrived: ClassVar[threading.Event] = threading.Event()
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        Site.asked.append((self.path, dict(self.headers)))
        Site.arrived.set()
        name = urlsplit(self.path).path.strip("/") or "article"  # a proxy is asked for whole addresses
        with suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, name, self.missing)()

    def answer(self, body: bytes, kind: str = "text/html", **headers: str) -> None:
        self.send_response(200)
        if kind:
            self.send_header("Content-Type", kind)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def missing(self) -> None:
        self.send_error(404)

    def article(self) -> None:
        self.answer(ARTICLE.encode(), "text/html; charset=utf-8")

    def latin(self) -> None:
        self.answer("<title>T</title><p>Gr\u00fc\u00dfe".encode("latin-1"), "text/html; charset=iso-8859-1")

    def wrong_charset(self) -> None:
        self.answer(b"<p>hello there, all of you", "text/html; charset=klingon-8")

    def lying_charset(self) -> None:
        self.answer("<p>hello there, all of you".encode("utf-16"), "text/html; charset=utf-8")

    def dies(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"<p>the first half of a page" * 40)
        self.wfile.flush()
        self.close_connection = True

    def markdown(self) -> None:
        self.answer(b"# A page\n\n`code`\n", "text/markdown")

    def json(self) -> None:
        self.answer(b'{"a": 1}', "application/json")

    def pdf(self) -> None:
        self.answer(b"%PDF-1.4\n/Type /Page\n", "application/pdf")

    def binary(self) -> None:
        self.answer(b"\0\1\2" * 100, "application/octet-stream")

    def image(self) -> None:
        self.answer(b"\x89PNG\r\n\x1a\n", "image/png")

    def packed(self) -> None:
        self.answer(gzip.compress(ARTICLE.encode()), Content_Encoding="gzip")

    def bomb(self) -> None:
        self.answer(gzip.compress(b"0" * 200_000_000), Content_Encoding="gzip")

    def broken_pack(self) -> None:
        self.answer(b"\x1f\x8bnot really", Content_Encoding="gzip")

    def strange_pack(self) -> None:
        self.answer(b"??", Content_Encoding="br")

    def endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 65536)

    def slow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(200):
            self.wfile.write(b".")
            self.wfile.flush()
            time.sleep(0.05)

    def redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.path.partition("?")[2] or "/article")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def loop(self) -> None:
        self.send_response(301)
        self.send_header("Location", "/loop")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        return


@contextmanager
def site() -> Iterator[str]:
    """Run the server; return its address."""
    Site.asked.clear()
    Site.arrived.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
