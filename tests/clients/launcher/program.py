"""A command as a double of a container, pod or job runs it: a real process, and what it writes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steward_client.launcher.actuators.contract import Stream

POLL_SECONDS = 0.01


class Program:
    """A process in a group of its own, with its output in two files of a folder."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, within: Path | str | None = None
    ) -> None:
        folder.mkdir(parents=True)
        self._files: dict[Stream, Path] = {"stdout": folder / "out", "stderr": folder / "errors"}
        with self._files["stdout"].open("wb") as out, self._files["stderr"].open("wb") as errors:
            environment = {"PATH": os.environ["PATH"], **environment}
            self._process = subprocess.Popen(
                command, stdout=out, stderr=errors, env=environment, start_new_session=True, cwd=within
            )

    @property
    def status(self) -> int | None:
        """As a shell has it."""
        status = self._process.poll()
        return status if status is None or status >= 0 else 128 - status

    @property
    def resident(self) -> int:
        """Bytes of memory in use."""
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * resource.getpagesize()

    def send(self, number: int) -> None:
        if self.status is None:
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        self.send(signal.SIGKILL)
        self._process.wait()

    def written(self) -> Iterator[tuple[Stream, bytes]]:
        """All that it has written so far."""
        return ((stream, file.read_bytes()) for stream, file in self._files.items())

    def follow(self) -> Iterator[tuple[Stream, bytes]]:
        """What it writes, until it has ended."""
        visited: dict[Stream, int] = dict.fromkeys(self._files, 0)
        ended = False
        while not ended:
            ended = self.status is not None
            for stream, file in self._files.items():
                piece = file.read_bytes()[visited[stream] :]
                visited[stream] += len(piece)
                if piece:
                    yield stream, piece
            time.sleep(0 if ended else POLL_SECONDS)
