"""Base of actuators whose command runs on this machine and controls something elsewhere, which is what is scaled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from typing_extensions import override

from .contract import Allocation, Launch, Range, Settable
from .local import LocalProcesses
from .remote import Remote


class Driven(Remote):
    """Base of actuators that run the command locally; subclasses implement ``_set``, and ``_remove`` if needed.

    The first allocation is set before the command starts.
    """

    shares_files = True

    def __init__(self, settable: Mapping[str, Settable], wanted: Mapping[str, Range]) -> None:
        super().__init__(settable, wanted)
        self._command = LocalProcesses({})

    @abstractmethod
    def _set(self, allocation: Allocation) -> str | None: ...

    def _begin(self, launch: Launch, allocation: Allocation) -> Allocation | None:
        waits = self._set(allocation)
        here = Launch(launch.command, {}, launch.environment, launch.folder, launch.output, launch.name)
        self._command.start(here)
        return self._there(allocation) if waits else None

    @override
    def start(self, launch: Launch) -> None:
        super().start(launch)
        self._follower = None  # the command hands its output on by itself

    @override
    def wait(self, seconds: float | None) -> int | None:
        self._status = self._command.wait(seconds)
        return self._status

    def _look(self) -> int | None:
        return self._command.wait(0)

    def _signal(self, number: int, seconds: float) -> None:
        self._command.stop(number, seconds)

    def _kill(self) -> None:
        self._command.close()

    def _remove(self) -> None: ...

    @override
    def close(self) -> None:
        super().close()
        self._command.close()
