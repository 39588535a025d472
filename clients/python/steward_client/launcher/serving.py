"""Choice of the service for a launch: the one at its address, or an embedded one, which local launchers share."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from steward_client.errors import Unreachable

from .embedded import Embedded
from .interrupts import defer_interrupts
from .limits.guarded import NotStarted
from .service import Say, Service
from .standby import LOOK_SECONDS, Standby, Turn
from .terminal import unless
from .wishes import Misuse, Wishes

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READY_SECONDS = 60.0


@contextmanager
def service_at(wishes: Wishes, folder: Path, say: Say) -> Iterator[Service]:
    """Context manager: the service at the launch's address; if none responds at a local address, an embedded one.

    If another launcher runs the service and ends, this launcher continues it.

    Args:
        wishes: options of the launch, with address and data folder.
        folder: folder for the embedded service's log.
        say: called with messages for the user.

    Raises:
        Misuse: no service responds at a local address, and none can be started; or the launch learns, and the service
            that was there has had no worker for 60 s.
        Unreachable: none responds at another machine's.
    """
    with closing(Service(wishes.url)) as service, ExitStack() as stack:
        if _is_here(service.url):
            _share(service, wishes, folder / "serve.log", say, stack)
        elif not service.is_up():
            raise Unreachable(
                f"no service answers at {service.url}: is it running, and is that its address (--url, STEWARD_URL)?"
            )
        yield service


def _is_here(url: str) -> bool:
    address = urlsplit(url)
    return address.hostname in LOOPBACK and address.scheme == "http"


def _share(service: Service, wishes: Wishes, log: Path, say: Say, stack: ExitStack) -> None:
    """Find a local service or run one, which is shared with other launchers; else stand by to continue theirs."""
    tell = unless(wishes.quiet, say)
    data = wishes.data or Path(os.environ.get("STEWARD_DATA_DIR") or "steward-data")
    turn = _turn(service.url, stack)
    start = partial(_start_service, service, log, say, turn, wishes.learn)
    if _must_serve(service, turn):
        if turn is not None:
            turn.data = data
        service.data = data
        tell(f"starting a service at {service.url}, for as long as this command runs (later: {service.serve})")
        with defer_interrupts():
            own = stack.enter_context(closing(start(data)))
        _await(service, own, learns=wishes.learn)
        _keep(service, own, data)
    elif turn is not None and turn.take():  # no launcher runs the one that answers
        turn.release()
    elif turn is not None:
        with defer_interrupts():
            again = partial(_taken_over, service, start, say, tell)
            stack.enter_context(closing(Standby(turn, service.is_up, again)))


def _turn(url: str, stack: ExitStack) -> Turn | None:
    """Lock of the right to run a service at a URL; None if launchers can't share locks here."""
    address = urlsplit(url)
    host = "127.0.0.1" if address.hostname == "localhost" else str(address.hostname)
    try:
        return stack.enter_context(closing(Turn(host, address.port or 80)))
    except OSError:
        return None


def _must_serve(service: Service, turn: Turn | None) -> bool:
    """Whether this launcher must run the service; False once one responds.

    Raises:
        Misuse: another launcher has the lock, but no service responds within 60 s.
    """
    until = time.monotonic() + READY_SECONDS
    while not service.is_up():
        if turn is None or turn.take():
            return True
        if time.monotonic() > until:
            raise Misuse(f"no service at {service.url}, though another launcher is to run one there")
        time.sleep(LOOK_SECONDS)
    return False


def _start_service(service: Service, log: Path, say: Say, turn: Turn | None, learns: bool, data: Path) -> Embedded:
    left = turn.release if turn else lambda: None
    try:
        return Embedded(_command(service.url, data, learns=learns), log, say, left)
    except NotStarted as error:
        raise Misuse(f"no service at {service.url}, and it can't be started: {error}") from error


def _keep(service: Service, own: Embedded, data: Path) -> None:
    service.own, service.data = True, data
    own.keep()


def _taken_over(
    service: Service, start: Callable[[Path], Embedded], say: Say, tell: Say, data: Path
) -> Embedded | None:
    """Continue another launcher's service on its data folder; None, with a message, if it can't be started here."""
    try:
        own = start(data)
    except Misuse as error:
        say(str(error))
        return None
    tell(f"the service ended with the launcher that ran it; it runs here from now on (data: {data})")
    _keep(service, own, data)
    return own


def _command(url: str, data: Path, *, learns: bool) -> list[str]:
    """Command line that starts a service at ``url``, with a worker if ``learns``; raises Misuse without `steward`."""
    address = urlsplit(url)
    beside = Path(sys.executable).with_name("steward")
    program = str(beside) if beside.exists() else shutil.which("steward")
    if program is None:
        raise Misuse(
            f"no service answers at {url}, and none is installed here: --url names another, or "
            'pip install "$(echo dist/steward_allocation-*.whl)[worker]" after `make wheels` in a checkout'
        )
    where = ["--host", str(address.hostname), "--port", str(address.port or 80), "--data", str(data)]
    workers = ["--workers", "1"] if learns and "STEWARD_WORKERS" not in os.environ else []
    return [program, "serve", *where, *workers]


def _await(service: Service, own: Embedded, *, learns: bool) -> None:
    until = time.monotonic() + READY_SECONDS
    while not service.ready(worker=learns):
        if own.ended(0.1) or time.monotonic() > until:
            break
    else:
        if not own.ended(0):  # it is this one that is ready
            return
    raise Misuse(f"no service at {service.url}, and none could be started: {own.last_words}")
