"""A real HTTP server on loopback that serves files well or badly, and remembers what it was asked."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

PIECE = 1 << 12


@dataclass
class Served:
    """A file and how it is served; lists are used up, an entry per answer."""

    content: bytes = b""
    ranges: bool = True
    says_length: bool = True
    etag: str | None = '"one"'
    modified: str | None = None
    location: str | None = None
    content_range: str | None = None
    cuts: list[int] = field(default_factory=list)  # bytes after which the connection is closed
    statuses: list[int] = field(default_factory=list)  # answered instead of the file
    stops_at: int | None = None  # bytes of the file after which nothing more comes, and the connection stays open


@dataclass
class Loopback:
    """The server: `files` by path, and the ranges that were asked for, an empty text for a whole file."""

    address: str
    files: dict[str, Served] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    loopback: Loopback

    def do_GET(self) -> None:
        path, wanted = self.path.removeprefix("/"), self.headers.get("Range", "")
        self.loopback.asked.append((path, wanted))
        self.close_connection = True
        served = self.loopback.files.get(path)
        if served is None:
            self._answer(404, {})
        elif served.statuses:
            self._answer(served.statuses.pop(0), {})
        elif served.location is not None:
            self._answer(302, {"Location": served.location})
        else:
            self._serve(served, wanted)

    def _serve(self, served: Served, wanted: str) -> None:
        begin, total = 0, len(served.content)
        mark = self.headers.get("If-Range")
        if served.ranges and wanted and mark in (None, served.etag, served.modified):
            begin = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])  # type: ignore[index]
        if begin >= total > 0:
            self._answer(416, {"Content-Range": f"bytes */{total}"})
            return
        headers = {"ETag": served.etag, "Last-Modified": served.modified}
        if served.says_length:
            headers["Content-Length"] = str(total - begin)
        if begin:
            headers["Content-Range"] = served.content_range or f"bytes {begin}-{total - 1}/{total}"
        self._answer(206 if begin else 200, headers, empty=False)
        end = begin + served.cuts.pop(0) if served.cuts else total
        self._write(served, begin, min(end, total))

    def _write(self, served: Served, begin: int, end: int) -> None:
        for start in range(begin, end, PIECE):
            if served.stops_at is not None and start >= served.stops_at:
                self.loopback.closing.wait(60)
                return
            self.wfile.write(served.content[start : min(start + PIECE, end)])

    def _answer(self, status: int, headers: dict[str, str | None], empty: bool = True) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        if empty:
            self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no fault of the server's."""


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Serve until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    served = Loopback(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = type("Handler", (_Handler,), {"loopback": served})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        served.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(condition: Any, seconds: float = 60) -> None:
    """Until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """The address of a server that answers every request with the same bytes, whatever these are."""

    class _Canned(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            self.request.sendall(reply)

    server = _CannedServer(("127.0.0.1", 0), _Canned)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/graph"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _CannedServer(ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no fault of the server's."""
