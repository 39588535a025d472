"""One attempt of a call, limited in total duration and in the size of the response.

Timeouts of httpx are for single steps, so that a response that arrives byte by byte never ends. Here a timer shuts the
connection's socket down when the total time is up, which ends all waiting for it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import httpx

LARGEST_BYTES = 1 << 26
"""A larger response is an error."""
OPENED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
MEANT_FOR_THE_CONNECTION = ("content-encoding", "content-length", "transfer-encoding")


class _Connections:
    """Sockets of a client's connections, which outlive an attempt, and the attempts that use them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sockets: WeakSet[socket.socket] = WeakSet()
        self.used: WeakKeyDictionary[_Deadline, socket.socket] = WeakKeyDictionary()


_connections: WeakKeyDictionary[httpx.Client, _Connections] = WeakKeyDictionary()


class Call(NamedTuple):
    """A request; ``content`` yields the body in pieces, anew for each attempt, None: ``json`` is the body."""

    method: str
    path: str
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    content: Callable[[], Iterator[bytes]] | None = None


def attempt(http: httpx.Client, call: Call, seconds: float, answer_seconds: float) -> httpx.Response | httpx.HTTPError:
    """Make a call once; returns the whole response, or the error without raising it.

    Args:
        http: HTTP client of the service.
        call: the request.
        seconds: time limit of each step (connect, send, every read).
        answer_seconds: time limit of the whole response in seconds, from the start, or from the end of a body in
            pieces.
    """
    deadline = _Deadline(http, answer_seconds)
    body = None if call.content is None else deadline.after(call.content())
    try:
        request = http.build_request(
            call.method,
            call.path,
            json=call.json,
            content=body,
            headers=call.headers,
            timeout=_bound_timeout(http.timeout, seconds),
            extensions={"trace": deadline.opened},
        )
        if body is None:
            deadline.begin()
        answer = http.send(request, stream=True)
        deadline.uses(answer.extensions.get("network_stream"))
        return _read_content(answer, deadline)
    except httpx.HTTPError as error:
        return deadline.reason(error)
    finally:
        deadline.end()


class _Deadline:
    """Shuts an attempt's connection down when its time is up.

    The connection is known once it is opened by this attempt or returns its response; before, all connections not known
    to be used by other attempts are shut down.
    """

    def __init__(self, http: httpx.Client, seconds: float) -> None:
        self._seconds, self._passed = seconds, threading.Event()
        self._of = _connections.setdefault(http, _Connections())
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def after(self, body: Iterator[bytes]) -> Iterator[bytes]:
        """Yield a body's pieces, and start the timer at its end."""
        yield from body
        self.begin()

    def begin(self) -> None:
        with suppress(RuntimeError):  # no thread can be started any more: the steps' timeouts are left
            self._timer.start()

    def end(self) -> None:
        self._timer.cancel()
        with self._of.lock:
            self._of.used.pop(self, None)

    def opened(self, event: str, info: Mapping[str, Any]) -> None:
        """Record a new connection; called by httpcore's trace."""
        if event.endswith(OPENED):
            self.uses(info["return_value"])

    def uses(self, stream: Any) -> None:
        """Record the network stream that this attempt uses."""
        raw = None if stream is None else stream.get_extra_info("socket")
        if isinstance(raw, socket.socket):
            with self._of.lock:
                self._of.sockets.add(raw)
                self._of.used[self] = raw

    def reason(self, error: httpx.HTTPError) -> httpx.HTTPError:
        """The error of the attempt: ReadTimeout if its time was up, else ``error``."""
        return self._late() if self._passed.is_set() else error

    def check(self) -> None:
        """Check that the response wasn't cut off; raises httpx.ReadTimeout if the time was up."""
        if self._passed.is_set() and self._of.sockets:
            raise self._late()

    def _late(self) -> httpx.ReadTimeout:
        return httpx.ReadTimeout(f"no whole answer in {self._seconds:.3g} s")

    def _cut(self) -> None:
        self._passed.set()
        with self._of.lock:
            own = self._of.used.get(self)
            others = [*self._of.used.values()]
            cut = [result for result in self._of.sockets if result not in others] if own is None else [own]
        for one in cut:
            with suppress(OSError):  # it is closed
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # not TLS's own, which another thread may be reading


def _read_content(answer: httpx.Response, deadline: _Deadline) -> httpx.Response:
    """The response with its whole content; raises httpx.HTTPError if it is cut off or larger than 64 MiB."""
    pieces, size = list[bytes](), 0
    try:
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > LARGEST_BYTES:
                raise httpx.DecodingError(f"an answer of more than {LARGEST_BYTES} bytes", request=answer.request)
            pieces.append(piece)
    finally:
        answer.close()
    deadline.check()
    headers = [pair for pair in answer.headers.multi_items() if pair[0].lower() not in MEANT_FOR_THE_CONNECTION]
    return httpx.Response(answer.status_code, headers=headers, content=b"".join(pieces), request=answer.request)


def _bound_timeout(timeout: httpx.Timeout, seconds: float) -> httpx.Timeout:
    """The client's own timeouts, each at most ``seconds``."""
    steps = timeout.as_dict()
    return httpx.Timeout(**{step: seconds if own is None else min(own, seconds) for step, own in steps.items()})
