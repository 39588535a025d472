"""`steward serve`: what is started in which order, and ended. What takes long to import waits until it is told."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from app import startup
from app.cli.server import lock
from app.cli.server.listen import bind, check_address, is_loopback
from app.settings import Settings
from app.telemetry import logs

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's parameters
LARGE_BLOCK = 1 << 20


def say(line: str) -> None:
    """Tell whoever started the service how far it is."""
    print(line, flush=True)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C. Blocks.

    Raises:
        StartupError: it can't; nothing is left behind.
        KeyboardInterrupt: Ctrl-C or SIGTERM before it served.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = check_address(settings)
    if settings.workers:
        startup.check_learning("a worker", ", or leave workers to others: steward serve --workers 0")
    logs.configure(settings)
    with ExitStack() as stack:
        sockets = bind(settings)
        for one in sockets:
            stack.enter_context(closing(one))
        startup.check_folder(settings.data_dir)
        stack.enter_context(_alone(settings))
        say(f"Steward starts: data in {settings.data_dir}; {_workers(settings)}")
        if not (is_loopback(settings.host) or settings.tls_certificate or settings.trusted_proxies):
            say("steward serve: warning: keys travel unencrypted; set STEWARD_TLS_CERTIFICATE, or name a proxy")
        _prepare(settings)
        from app.cli.server import api

        api.run(settings, sockets)


def _workers(settings: Settings) -> str:
    if settings.workers == 0:
        return "no worker of its own (jobs wait for `steward worker`)"
    return f"{settings.workers} worker process{'es' if settings.workers > 1 else ''}"


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Hold the data folder where something of the service is in it; more APIs, without workers, may stand beside."""
    if not settings.embedded:
        yield
    elif settings.workers:
        with lock.exclusive(settings.data_dir, say):
            yield
    else:
        holder = lock.holder(settings.data_dir)
        if holder is not None:
            say(f"one more API beside process {holder}, which serves {settings.data_dir} too")
        yield


def _prepare(settings: Settings) -> None:
    """Database and broker are there, and the tables are of this version."""
    tune_malloc()
    startup.check(settings, creates=True)
    from app.cli.server.migrations import migrate

    migrate(settings)
    problem = startup.broker_problem(settings)
    if problem is not None:  # decisions need none, and jobs wait in the database
        say(f"steward serve: warning: {problem}")


def tune_malloc() -> None:
    """Have threads share two heaps instead of having one each (glibc), and large blocks given back when they are free.

    By itself glibc takes up to 32 MiB from a heap once it has seen blocks of that size, and keeps it there: as much as
    the largest upload took, in each heap.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library: it has no such knobs
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(M_ARENA_MAX, 2)
            mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK)
            mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK)
