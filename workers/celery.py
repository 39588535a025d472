"""Celery application of the workers, and the life cycle of their processes.

A worker is a main process, which takes messages and runs the housekeeping (heartbeat, sweeper), and prefork children,
which run the tasks. A child dies with the main process; the main process dies with its parent process (`--parent`). On
SIGTERM a flag in shared memory asks the children to save a checkpoint at their next chunk and to return their job to
the queue; a child that does not is killed. No broker error ends a worker: it reconnects until it may consume again.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from typing import Any

from celery import bootsteps, signals
from celery.worker import state

from app.charts.text import use_currency
from app.processes import die_with_parent, importing, process_name
from app.queue import create_celery
from app.settings import get_settings
from app.telemetry import logs
from workers.housekeeping import Housekeeper

TASKS_PER_CHILD = 100
LOST_SECONDS = 1.0
"""Seconds to wait for the result of a killed child before its slot takes another message."""
SETTLED_SECONDS = 2.0
"""Age in seconds from which a broker connection counts as consuming; one that is refused consumption fails earlier."""
LOOK_SECONDS, LOOKS = 1.0, 3
"""Seconds between two checks of the message slots, and the number of failed checks in a row before reconnecting."""
EXIT_STATUS = 1
LOG_FORMAT = "%(asctime)s %(levelname)s %(processName)s %(name)s: %(message)s"

logger = logging.getLogger(__name__)
celery = create_celery(get_settings())
use_currency(get_settings().currency)
celery.conf.update(
    imports=("workers.tasks.registered",),
    worker_pool="workers.pool:Processes",
    worker_max_tasks_per_child=TASKS_PER_CHILD,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_lost_wait=LOST_SECONDS,
    broker_channel_error_retry=True,  # READONLY, NOREPLICAS, OOM, … are temporary
)

_stopping = mmap.mmap(-1, 1)  # anonymous and shared: the children inherit it


def is_stopping() -> bool:
    """Return whether this worker has received SIGTERM, in its main process and its children; never raises."""
    return _stopping[0] != 0


def _check_places(consumer: Any) -> None:
    """Check that this worker has a free message slot or a reserved task; otherwise count one more failed check.

    If the broker goes away as a task ends, kombu (5.7, ``Message.ack_log_error``) logs the failed acknowledgement and
    never repeats it: the slot stays taken, and the worker consumes nothing any more.

    Raises:
        ConnectionResetError: 3 checks in a row failed; Celery then reconnects.
    """
    qos = consumer.task_consumer.channel.qos
    taken = state.reserved_requests or qos.can_consume()
    Consumption.lost = 0 if taken else Consumption.lost + 1
    if Consumption.lost >= LOOKS:
        Consumption.lost = 0
        raise ConnectionResetError("an acknowledgement was lost, and its place with it")


class Consumption(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Celery bootstep that records since when this worker consumes messages; it starts with each broker connection.

    Attributes:
        since: monotonic seconds at which consumption started; −inf for the first connection; None while not consuming.
        began: whether any connection has been made.
        lost: number of checks in a row that found neither a free slot nor a task.
        watch: timer of ``_check_places``; None while not consuming, or with a broker without event loop.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)
    since: float | None = None
    began: bool = False
    lost: int = 0
    watch: Any = None

    def start(self, consumer: Any) -> None:
        """Record the start of consumption (−inf for the first connection), and start the check for lost slots."""
        Consumption.since = time.monotonic() if Consumption.began else -math.inf
        Consumption.began = True
        if consumer.hub is not None:  # the file broker has no hub, and no acknowledgement that could be lost
            Consumption.watch = consumer.hub.call_repeatedly(LOOK_SECONDS, _check_places, consumer)

    def stop(self, _consumer: Any) -> None:
        """Record that no messages are consumed, and cancel the check for lost slots."""
        Consumption.since = None
        if Consumption.watch is not None:
            Consumption.watch.cancel()
            Consumption.watch = None


celery.steps["consumer"].add(Consumption)


def is_consuming() -> bool:
    """Return whether this worker has consumed messages for at least 2 seconds, or consumes on its first connection."""
    since = Consumption.since
    return since is not None and time.monotonic() - since >= SETTLED_SECONDS


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
    """Import the modules of the tasks, so that the first job does not wait for the imports."""
    with importing():
        for module in ("workers.tasks.trained", "workers.tasks.online"):
            import_module(module)


def work(concurrency: int) -> None:
    """Run a worker with ``concurrency`` child processes until SIGTERM; block until then.

    Raises:
        SystemExit: with status 1, where Celery ended without SIGTERM.
    """
    settings = get_settings()
    logs.configure(settings, LOG_FORMAT)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")
    os.nice(max(0, settings.worker_nice - os.nice(0)))
    housekeeper = Housekeeper(settings, process_name(), is_consuming, is_stopping)
    signals.worker_ready.connect(lambda **_: housekeeper.start(), weak=False)
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    try:
        celery.worker_main(
            ["--quiet", "worker", f"--concurrency={concurrency}", f"--loglevel={settings.log_level}", *options]
        )
    finally:
        housekeeper.stop()
    if not is_stopping():  # Celery has logged the reason
        logger.error("this worker ends, though nobody has asked it to")
        sys.exit(EXIT_STATUS)
