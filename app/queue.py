"""Messages that wake workers: `enqueue` after a commit. The database is authoritative; a lost message delays a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from celery import Celery, group
from kombu.exceptions import OperationalError

from app import file_broker
from app.settings import Settings, get_settings

logger = logging.getLogger(__name__)

FIT = "workers.tasks.fit_model"
TRAIN = "workers.tasks.train_agent"
TRIAL = "workers.tasks.train_trial"
EVALUATE = "workers.tasks.evaluate_agents"
POLLING_SECONDS = 0.05
PROBE, LOOK_SECONDS = "steward.probe", 1.0
VISIBILITY_SECONDS = 3600

_active: list[Settings] = []


def use(settings: Settings) -> None:
    """Set this process's settings; by default those of the environment are used."""
    _active[:] = [settings]


def configuration(settings: Settings) -> dict[str, Any]:
    """Celery's configuration, shared by senders and workers."""
    return {
        "broker_url": settings.broker_url,
        "broker_transport_options": _transport_options(settings),
        "broker_connection_retry_on_startup": True,
        "broker_connection_timeout": 2.0,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_reject_on_worker_lost": False,  # the sweeper announces such a job again, once its lease is void
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "enable_utc": True,
    }


def _transport_options(settings: Settings) -> dict[str, Any]:
    if settings.files_as_broker:
        file_broker.install()
        return {"folder": str(settings.broker_dir), "polling_interval": POLLING_SECONDS}
    return {
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 2,
        "socket_timeout": 5,
        "retry_on_timeout": False,
    }


def create_celery(settings: Settings) -> Celery:
    """A Celery application with the settings' broker."""
    application = Celery("steward")
    application.conf.update(configuration(settings))
    return application


@lru_cache(maxsize=4)
def _producer(broker_url: str, data_dir: str) -> Celery:
    return create_celery(Settings(broker_url=broker_url, data_dir=data_dir))


def _settings() -> Settings:
    return _active[0] if _active else get_settings()


def reaches_this_host_alone() -> bool:
    """Whether the broker is embedded, so that workers run on this host from the same installation."""
    return _settings().files_as_broker


def _current() -> Celery:
    settings = _settings()
    return _producer(settings.broker_url, str(settings.data_dir))


def enqueue(task_name: str, identifier: str) -> None:
    """Wake a worker for job ``identifier`` by task ``task_name``; a failing broker is logged, never raised."""
    _tell(lambda celery: celery.send_task(task_name, args=[identifier], retry=False), f"{task_name}({identifier})")


def enqueue_group(task_name: str, identifiers: Sequence[str]) -> None:
    """Wake workers for several jobs as one group; a failing broker is logged, never raised."""

    def send(celery: Celery) -> object:
        signatures = [celery.signature(task_name, args=[each], immutable=True) for each in identifiers]
        return group(signatures, app=celery).apply_async(retry=False)

    _tell(send, f"{task_name}({', '.join(identifiers)})")


def _tell(send: Callable[[Celery], object], what: str) -> None:
    try:
        send(_current())
    except (OperationalError, OSError) as error:
        logger.warning("broker away (%s): %s waits for the sweeper", error, what)
    except Exception:  # the job is committed: whatever the broker's client makes of it, the caller's call succeeded
        logger.exception("broker failed: %s waits for the sweeper", what)


def broker_problem() -> str | None:
    """Why the broker is unreachable or rejects messages; None if it works."""
    celery = _current()
    quick = {"socket_timeout": LOOK_SECONDS, "socket_connect_timeout": LOOK_SECONDS}
    options = {} if _settings().files_as_broker else quick
    transport = {**celery.conf.broker_transport_options, **options}
    with celery.connection_for_write(transport_options=transport) as connection:
        try:
            connection.connect()
            if options:  # a Redis that is full, or may not be written to, answers all the same
                connection.default_channel.client.set(PROBE, b"", px=1_000)
        except (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors) as error:
            return f"{type(error).__name__}: {error}"
    return None
