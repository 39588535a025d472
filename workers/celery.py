"""The Celery application of the workers, and the life of their processes.

A worker is a main process, which takes messages and keeps house (heartbeat, sweeper), and prefork children, which
work. A child dies with the main process, the main process with who started it (`--parent`). On SIGTERM the children
are told through shared memory: they keep a checkpoint at their next chunk and give their job back.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import threading
import warnings
from importlib import import_module
from typing import Any

from celery import signals

from app.charts.text import use_currency
from app.processes import die_with_parent, importing, process_name
from app.queue import create_celery
from app.settings import get_settings
from app.telemetry import logs
from workers.housekeeping import Housekeeper

TASKS_PER_CHILD = 100
LOG_FORMAT = "%(asctime)s %(levelname)s %(processName)s %(name)s: %(message)s"

logger = logging.getLogger(__name__)
celery = create_celery(get_settings())
use_currency(get_settings().currency)
celery.conf.update(
    imports=("workers.tasks.registered",),
    worker_pool="workers.pool:Processes",
    worker_max_tasks_per_child=TASKS_PER_CHILD,
    worker_cancel_long_running_tasks_on_connection_loss=False,
)

_stopping = mmap.mmap(-1, 1)  # anonymous and shared: the children inherit it


def is_stopping() -> bool:
    """Whether this worker has been asked to stop."""
    return _stopping[0] != 0


@signals.worker_shutting_down.connect
def _shutting_down(**_: Any) -> None:
    _stopping[0] = 1


@signals.worker_process_init.connect
def _start_child(**_: Any) -> None:
    die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the main process decides
    if get_settings().worker_warm:
        threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()


def _warm_up() -> None:
    """Import what the tasks need, so that the first job need not wait for it."""
    with importing():
        for module in ("workers.tasks.fit", "workers.tasks.train", "workers.tasks.sweep"):
            import_module(module)


def work(concurrency: int) -> None:
    """Work until SIGTERM. Blocks."""
    settings = get_settings()
    logs.configure(settings, LOG_FORMAT)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
    os.nice(max(0, settings.worker_nice - os.nice(0)))
    housekeeper = Housekeeper(settings, process_name())
    signals.worker_ready.connect(lambda **_: housekeeper.start(), weak=False)
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    try:
        celery.worker_main(
            ["--quiet", "worker", f"--concurrency={concurrency}", f"--loglevel={settings.log_level}", *options]
        )
    finally:
        housekeeper.stop()
