"""The processes of a service under test."""

from __future__ import annotations

import contextlib

import psutil
import pytest

from tests.servers import StewardServer, wait_until


def worker_main(server: StewardServer) -> psutil.Process:
    """The worker's main process: the child of `steward serve`."""
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, and waits to be noticed
            if "workers" in child.cmdline():
                return child
    pytest.fail("no worker under steward serve")


def family(server: StewardServer) -> list[psutil.Process]:
    """The worker's main process and its children, once there are some."""
    main = worker_main(server)
    wait_until(lambda: bool(main.children()), what="the worker to have children")
    return [main, *main.children(recursive=True)]


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more."""
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)
