"""The Celery application of the workers, and the life of their processes.

A worker is a main process, which takes messages and keeps house (heartbeat, sweeper), and prefork children, which
work. A child dies with the main process, the main process with who started it (`--parent`). On SIGTERM the children
are told through shared memory: they keep a checkpoint at their next chunk and give their job back; whoever does not
come to one is ended. What the broker answers, errors included, ends no worker: it connects anew until it may consume.
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
"""For which the result of a child that was killed is waited for, before its place takes another message."""
SETTLED_SECONDS = 2.0
"""After which a connection that was made anew counts: one over which nothing may be consumed fails at once."""
LOOK_SECONDS, LOOKS = 1.0, 3
"""Between two looks at the places for messages, and how many in a row find one lost before it is given up."""
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
    broker_channel_error_retry=True,  # READONLY, NOREPLICAS, OOM, … are answered for a while: no reason to end
)

_stopping = mmap.mmap(-1, 1)  # anonymous and shared: the children inherit it


def is_stopping() -> bool:
    """Whether this worker has been asked to stop."""
    return _stopping[0] != 0


def _check_places(consumer: Any) -> None:
    """Connect to the broker anew where it has a place that no task takes.

    An acknowledgement that fails, since the broker went away as a task ended, is logged by kombu (5.7,
    ``Message.ack_log_error``) and never repeated: the place counts as taken, and nothing is consumed any more.

    Raises:
        ConnectionResetError: there is such a place; Celery connects anew.
    """
    qos = consumer.task_consumer.channel.qos
    taken = state.reserved_requests or qos.can_consume()
    Consumption.lost = 0 if taken else Consumption.lost + 1
    if Consumption.lost >= LOOKS:
        Consumption.lost = 0
        raise ConnectionResetError("an acknowledgement was lost, and its place with it")


class Consumption(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no types
    """Since when messages are taken from the broker: begins and ends with each connection that is made for it."""

    requires = ("celery.worker.consumer.tasks:Tasks",)
    since: float | None = None
    began: bool = False
    lost: int = 0
    watch: Any = None

    def start(self, consumer: Any) -> None:
        """Messages are taken from now on; of the first connection it is known that it was made with nothing before."""
        Consumption.since = time.monotonic() if Consumption.began else -math.inf
        Consumption.began = True
        if consumer.hub is not None:  # over files nothing is acknowledged that could fail so
            Consumption.watch = consumer.hub.call_repeatedly(LOOK_SECONDS, _check_places, consumer)

    def stop(self, _consumer: Any) -> None:
        """Messages are no longer taken."""
        Consumption.since = None
        if Consumption.watch is not None:
            Consumption.watch.cancel()
            Consumption.watch = None


celery.steps["consumer"].add(Consumption)


def is_consuming() -> bool:
    """Whether messages are taken from the broker, and have been for a while."""
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
    """Import what the tasks need, so that the first job need not wait for it."""
    with importing():
        for module in ("workers.tasks.trained", "workers.tasks.online"):
            import_module(module)


def work(concurrency: int) -> None:
    """Work until SIGTERM. Blocks; ends the process with a status other than 0 where it ends unasked."""
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
    if not is_stopping():  # Celery has told why
        logger.error("this worker ends, though nobody has asked it to")
        sys.exit(EXIT_STATUS)
