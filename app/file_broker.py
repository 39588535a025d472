"""The embedded broker: messages as files in a folder, for Celery's `filesystem://` URLs.

Messages appear atomically (written to a temporary file, then renamed), and belong to the process that removes the file.
Unreadable files are renamed and logged; the sweeper restores their jobs. Queue bindings are in each process's memory.
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
    """Kombu channel that sends and receives messages as files, approximately in order of sending."""

    @property
    def folder(self) -> Path:
        """Folder of the messages."""
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
                continue  # another worker was faster
            except (ValueError, TypeError, KeyError, AttributeError):
                with suppress(OSError):
                    file.rename(file.with_name(file.name + REFUSED_SUFFIX))
                    logger.warning("%s holds no message and is put aside; its job, if any, waits for the sweeper", file)
                continue
            try:
                file.unlink()
            except OSError:
                continue
            return message
        raise Empty

    def _messages(self, queue: str) -> list[Path]:
        """Message files of a queue, oldest first; empty if the folder is missing."""
        try:
            return sorted(self.folder.glob(f"*.{queue}.msg"))
        except OSError:  # the folder has been taken away; the next message makes another
            return []

    def _size(self, queue: str) -> int:
        return len(self._messages(queue))

    def _purge(self, queue: str) -> int:
        messages = self._messages(queue)
        for file in messages:
            file.unlink(missing_ok=True)
        return len(messages)


class Transport(virtual.Transport):
    """Kombu transport whose messages are files in a folder, with one state of bindings per process."""

    Channel = Channel
    global_state = virtual.BrokerState()
    driver_type = driver_name = "filesystem"
    implements = virtual.Transport.implements.extend(asynchronous=False, exchange_type=frozenset(["direct"]))

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self.state = self.global_state

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver a message; raises TimeoutError if none comes within ``timeout`` seconds, at most 0.2 (None: 0.2)."""
        super().drain_events(connection, timeout=min(timeout or LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))

    def driver_version(self) -> str:
        """``N/A``, as files need no driver."""
        return "N/A"


def install() -> None:
    """Register this transport for `filesystem://` in this process."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
