"""A service on a real socket; where a plan says so connections are cut, or somebody else answers in its place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.clients.test_run import Handler

BEFORE, UNHEARD, HALF, STALLED = "before it arrives", "before the answer", "amid the answer", "no answer"
PAGE = "a proxy's page"
DRIP, DRIPPING_HEAD = "an answer that drips", "a head that drips"
CUTS = (BEFORE, UNHEARD, HALF, PAGE)
DRIP_SECONDS = 0.02
Plan = Callable[[int], str | httpx.Response | None]
DRIPS = {
    DRIP: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n",
    DRIPPING_HEAD: b"HTTP/1.1 200 OK\r\nX-Long: ",
}
"""With what each begins."""


class Cutting(ThreadingHTTPServer):
    """Serves on loopback.

    Attributes:
        plan: where the request of a number, counting from 0, is cut, or who else answers it; None: nowhere.
        requests: methods and paths of the requests, in order.
    """

    daemon_threads = False  # a job that a request does would go on in the tests after its own

    def __init__(self, handler: Handler, plan: Plan) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.handler, self.plan, self.requests = handler, plan, list[str]()
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[Cutting]:
        """Serve until the end."""
        thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            self.shutdown()
            thread.join(30)
            self.server_close()


class _Connection(BaseHTTPRequestHandler):
    server: Cutting

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        number = len(self.server.requests)
        self.server.requests.append(f"{self.command} {self.path}")
        cut = self.server.plan(number)
        self.close_connection = True
        if cut == BEFORE:
            return
        if cut == PAGE:
            self.wfile.write(_written(httpx.Response(200, html="<p>no</p>")))
            return
        if isinstance(cut, httpx.Response):
            self.wfile.write(_written(cut))
            return
        if cut in (DRIP, DRIPPING_HEAD):
            self._drip(DRIPS[cut])
            return
        answer = self._answered(body)
        if cut == STALLED:
            self.server.ended.wait()
        elif cut != UNHEARD:
            self.wfile.write(answer[: len(answer) // 2] if cut == HALF else answer)

    def _drip(self, head: bytes) -> None:
        """A byte at a time, for as long as somebody reads it."""
        with suppress(OSError):
            self.wfile.write(head)
            while not self.server.ended.wait(DRIP_SECONDS):
                self.wfile.write(b"x")

    def _answered(self, body: bytes) -> bytes:
        sent = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
        url = self.server.url + self.path
        return _written(self.server.handler(httpx.Request(self.command, url, headers=sent, content=body)))

    def do_GET(self) -> None:
        """A run that is taken up."""
        self._serve()

    def do_POST(self) -> None:
        """A start."""
        self._serve()

    def do_PUT(self) -> None:
        """A report."""
        self._serve()

    def do_PATCH(self) -> None:
        """An end."""
        self._serve()

    def do_DELETE(self) -> None:
        """Away with it."""
        self._serve()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _written(answer: httpx.Response) -> bytes:
    head = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}", f"Content-Length: {len(answer.content)}"]
    head += [f"{name}: {value}" for name, value in answer.headers.items() if name != "content-length"]
    return "\r\n".join([*head, "Connection: close", "", ""]).encode() + answer.content
