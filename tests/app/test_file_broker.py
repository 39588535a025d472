from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from kombu.connection import Connection
from kombu.simple import SimpleQueue

from app.file_broker import REFUSED_SUFFIX
from app.queue import create_celery
from app.settings import Settings

UNREADABLE = {
    "empty": "",
    "half": '{"body": "gAJ9c',
    "text": "not a message",
    "list": "[1]",
    "number": "3",
    "nothing": "{}",
    "envelope": '{"properties": {}}',
    "body": '{"body": "eA==", "properties": {"delivery_tag": "x", "body_encoding": "rot13"}}',
    "headers": '{"body": "", "headers": [1], "properties": {"delivery_tag": "x"}}',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def celery(tmp_path: Path) -> Celery:
    return create_celery(Settings(data_dir=tmp_path))


@pytest.fixture
def connection(celery: Celery) -> Iterator[Connection]:
    with celery.connection_for_write() as connection:
        yield connection


def inbox(connection: Connection) -> SimpleQueue:
    return connection.SimpleQueue("celery", no_ack=True)


def test_messages_come_in_the_order_of_their_sending(connection: Connection, folder: Path) -> None:
    queue = inbox(connection)
    for number in range(5):
        queue.put({"number": number})
    assert len(queue) == 5
    assert [queue.get_nowait().payload["number"] for _ in range(5)] == list(range(5))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_holds_no_message_is_put_aside(content: str, connection: Connection, folder: Path) -> None:
    queue = inbox(connection)
    queue.put({"number": 1})
    (folder / "0_first.celery.msg").write_text(content)
    assert queue.get_nowait().payload == {"number": 1}
    assert [file.name for file in folder.iterdir()] == ["0_first.celery.msg" + REFUSED_SUFFIX]


def test_a_message_is_whole_or_not_there(connection: Connection, folder: Path) -> None:
    queue = inbox(connection)
    queue.put({"number": 1})
    (folder / "0_half.celery.msg.part").write_text("{")
    assert queue.get_nowait().payload == {"number": 1}
    with pytest.raises(queue.Empty):
        queue.get_nowait()


def test_a_folder_that_is_taken_away_comes_back(celery: Celery, folder: Path) -> None:
    with celery.connection_for_write() as connection:
        queue = inbox(connection)
        with pytest.raises(queue.Empty):
            queue.get_nowait()
    celery.send_task("some.task", args=["job"])
    message = json.loads(next(folder.glob("*.msg")).read_text())
    assert message["headers"]["task"] == "some.task"
