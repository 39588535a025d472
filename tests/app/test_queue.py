from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from app import queue
from app.settings import Settings
from tests.servers import free_port, redis_server


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = list(queue._active)
    yield
    queue._active[:] = before


def messages(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*.msg")]


def test_the_embedded_broker_is_a_folder(tmp_path: Path) -> None:
    queue.use(Settings(data_dir=tmp_path))
    assert queue.broker_problem() is None
    queue.enqueue(queue.FIT, "job-1")
    parts = messages(tmp_path / "broker")
    assert len(parts) == 1
    assert queue.FIT in parts[0]


def test_a_group_is_a_message_for_each(tmp_path: Path) -> None:
    queue.use(Settings(data_dir=tmp_path))
    queue.enqueue_group(queue.TRIAL, ["job-1", "job-2", "job-3"])
    parts = messages(tmp_path / "broker")
    assert len(parts) == 3
    assert all(queue.TRIAL in message for message in parts)
    queue.enqueue_group(queue.TRIAL, [])
    assert len(messages(tmp_path / "broker")) == 3


def test_two_services_in_one_process_keep_their_brokers_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        queue.use(Settings(data_dir=tmp_path / name))
        queue.enqueue(queue.TRAIN, name)
    assert len(messages(tmp_path / "a" / "broker")) == len(messages(tmp_path / "b" / "broker")) == 1


@pytest.mark.servers
def test_redis_is_a_broker_by_its_url_alone(redis_url: str, tmp_path: Path) -> None:
    queue.use(Settings(data_dir=tmp_path, broker_url=redis_url))
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        assert queue.broker_problem() is None
        queue.enqueue(queue.FIT, "job-1")
        assert client.llen("celery") == 1


def test_a_dead_broker_is_logged_and_never_raised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queue.use(Settings(data_dir=tmp_path, broker_url=f"redis://127.0.0.1:{free_port()}/0"))
    started = time.monotonic()
    queue.enqueue(queue.FIT, "job-1")
    assert time.monotonic() - started < 10
    assert "job-1" in caplog.text
    assert queue.broker_problem() is not None


@pytest.mark.servers
def test_a_broker_that_takes_no_message_or_does_not_answer_is_told(tmp_path: Path) -> None:
    with redis_server() as url, redis.Redis.from_url(url) as client, redis_server() as other:
        queue.use(Settings(data_dir=tmp_path, broker_url=url))
        assert queue.broker_problem() is None
        client.config_set("maxmemory", 1)
        full = queue.broker_problem()
        assert full is not None
        assert "OutOfMemory" in full or "OOM" in full
        client.config_set("maxmemory", 0)
        assert queue.broker_problem() is None
        client.execute_command("CLIENT", "PAUSE", "60000", "ALL")
        begun = time.monotonic()
        assert queue.broker_problem() is not None
        assert time.monotonic() - begun < 30, "it waits for a second each, and not for the pause"
        queue.use(Settings(data_dir=tmp_path, broker_url=other))
        assert queue.broker_problem() is None
