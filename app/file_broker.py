"""The embedded broker: messages as files of one folder, for Celery by its `filesystem://` URLs.

A message appears whole or not at all (it is written aside, then renamed), and belongs to whoever removes its file. A
file that holds no message is put aside and told in the log: whatever it was, it is the sweeper that brings jobs back.
Queues are bound in each process's memory, as senders and workers declare the same ones.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.utils.json import dumps, loads

REFUSED_SUFFIX = ".unreadable"
LONGEST_WAIT_SECONDS = 0.2  # a worker looks only between two waits whether it is to stop

logger = logging.getLogger(__name__)


class Channel(virtual.Channel):
    """Takes and gives messages, in about the order of their sending."""

    @property
    def folder(self) -> Path:
        """Where the messages are."""
        return Path(self.connection.client.transport_options["folder"])

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        name = f"{time.time_ns()}_{uuid4()}.{queue}.msg"
        aside = self.folder / f"{name}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            aside.write_text(dumps(message))
            aside.rename(self.folder / name)
        except OSError as error:
            with suppress(OSError):
                aside.unlink()
            raise ChannelError(f"no message can be written to {self.folder}: {error}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ARG002 - kombu's signature
        for file in self._messages(queue):
            try:
                message: dict[str, Any] = loads(file.read_text())
                virtual.Message(message, channel=self)
            except OSError:
                continue  # somebody else was faster
            except (ValueError, TypeError, KeyError, AttributeError):
                self._put_aside(file)
                continue
            try:
                file.unlink()
            except OSError:
                continue
            return message
        raise Empty

    def _messages(self, queue: str) -> list[Path]:
        """Files of a queue, oldest first."""
        try:
            return sorted(self.folder.glob(f"*.{queue}.msg"))
        except OSError:  # the folder has been taken away; the next message makes another
            return []

    @staticmethod
    def _put_aside(file: Path) -> None:
        with suppress(OSError):
            file.rename(file.with_name(file.name + REFUSED_SUFFIX))
            logger.warning("%s holds no message and is put aside; its job, if any, waits for the sweeper", file)

    def _size(self, queue: str) -> int:
        return len(self._messages(queue))

    def _purge(self, queue: str) -> int:
        messages = self._messages(queue)
        for file in messages:
            file.unlink(missing_ok=True)
        return len(messages)


class Transport(virtual.Transport):
    """Kombu's view of the folder; one state of bindings for each process."""

    Channel = Channel
    global_state = virtual.BrokerState()
    driver_type = driver_name = "filesystem"
    implements = virtual.Transport.implements.extend(asynchronous=False, exchange_type=frozenset(["direct"]))

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self.state = self.global_state

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Wait for a message.

        Raises:
            TimeoutError: none came for a while.
        """
        super().drain_events(connection, timeout=min(timeout or LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))

    def driver_version(self) -> str:
        """``N/A``: kombu asks for the version of a driver, and files need none."""
        return "N/A"


def install() -> None:
    """Have `filesystem://` mean this transport in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
