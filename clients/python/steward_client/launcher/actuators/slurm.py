"""Slurm jobs, by the programs ``sbatch``, ``scontrol`` and ``scancel``.

A pending job is changed in place. A running job can give nodes back in place; for any other change it is requeued with
its new size, and must continue from a checkpoint of its own. If the launcher is killed, the job runs on until the same
run is started again (see `leftovers`); ``scancel --me --name steward-WORKLOAD`` ends it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from .contract import UNITS, ActuatorError, Allocation, CannotSet, Launch, Range, Settable, Sink, Unavailable
from .leftovers import Leaving, Leftover, launcher
from .remote import KILLED, Remote

PROGRAMS = ("sbatch", "scontrol", "scancel", "squeue")
TIMEOUT_SECONDS, TAIL_SECONDS = 60.0, 0.05
RESTART_SECONDS, HELD_SECONDS = 60.0, 0.2
SCRIPT = "#!/bin/sh\n"
HELD = {"PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT"}
ENDED = {
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "DEADLINE",
    "BOOT_FAIL",
    "PREEMPTED",
}
UPDATED = {"nodes": "NumNodes", "workers": "NumTasks", "cpu": "CPUsPerTask", "memory": "MinMemoryNode", "gpus": "Gres"}
ASKED = {"nodes": "--nodes", "workers": "--ntasks", "cpu": "--cpus-per-task", "memory": "--mem", "gpus": "--gres"}
OF_ONE_NODE = frozenset({"cpu", "memory", "gpus"})


class SlurmJob(Remote, Leaving):
    """Runs a command as a Slurm batch job.

    Args:
        wanted: the resources to be set: for a job on one node ``cpu`` (percent of a core, in whole cores), ``memory``
            (MiB) and ``gpus``; for a larger one ``nodes`` and ``workers`` (tasks).
        shared: ``yes`` if the nodes share the launcher's file system; only then does the launcher get the job's output.
        partition: partition for the job; empty: the default.
        sbatch: further options of ``sbatch`` as one text: ``--time=4:00:00 --account=lab``.

    Raises:
        Unavailable: a program of Slurm's is not on PATH.
        ActuatorError: ``shared`` is neither ``yes`` nor ``no``.
        CannotSet: another resource is wanted, not in that range, or resources of both groups together.
    """

    name = "slurm"
    look_seconds = 5.0

    def __init__(self, wanted: Mapping[str, Range], shared: str = "no", partition: str = "", sbatch: str = "") -> None:
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise Unavailable(f"{missing[0]} is not on PATH: run this on a login node of the cluster")
        if shared not in ("yes", "no"):
            raise ActuatorError(f"shared={shared}: yes or no is accepted")
        super().__init__(_settable(), wanted)
        mixed = sorted(OF_ONE_NODE & wanted.keys())
        if mixed and wanted.keys() - OF_ONE_NODE:
            asked = wanted[mixed[0]].minimum
            raise CannotSet(
                mixed[0], asked, "Slurm counts it by node or task; set it by sbatch=…, beside nodes and workers"
            )
        self.shares_files = self.passes_output = shared == "yes"
        self._more = [*([f"--partition={partition}"] if partition else []), *shlex.split(sbatch)]
        self._job, self._output = "", Path(os.devnull)

    def _round(self, name: str, value: float) -> float:
        return max(100.0, round(value / 100) * 100.0) if name == "cpu" else float(round(value))

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        if self.shares_files and launch.folder is not None:
            self._output = launch.folder / "slurm"
            self._output.touch()
        asked = _resource_options(allocation)
        paths = [f"--output={self._output}", f"--error={self._error}", "--open-mode=append"]
        name = [f"--job-name={launch.name}", f"--comment={launcher()}", "--parsable", "--requeue", "--export=ALL"]
        script = f"{SCRIPT}exec {shlex.join(launch.command)}\n"
        told = _run(["sbatch", *name, *asked, *paths, *self._more], script, {**os.environ, **launch.environment})
        self._job = told.strip().partition(";")[0]
        if not self._job.isdecimal():
            raise ActuatorError(f"sbatch answered no number of a job: {told[:80]!r}")

    @property
    def _error(self) -> Path:
        return self._output if str(self._output) == os.devnull else self._output.with_name("slurm-errors")

    def _set(self, allocation: Allocation) -> None:
        changes = [f"{UPDATED[name]}={_update(name, value)}" for name, value in allocation.items()]
        update = ["scontrol", "update", f"JobId={self._job}", *changes]
        if self._in_place(allocation):
            self._change(update, allocation)
            return
        possible = ["sbatch", "--test-only", *_resource_options({**self._current, **allocation}), *self._more]
        self._change(possible, allocation, SCRIPT)  # before it is ended
        _run(["scontrol", "requeuehold", self._job])
        self._wait_for_release()
        try:
            self._change(update, allocation)
        finally:
            _run(["scontrol", "release", self._job])

    def _wait_for_release(self) -> None:
        """Wait until the job has left its nodes, for at most 60 s."""
        ends = time.monotonic() + TIMEOUT_SECONDS
        while _job_status(self._job).state not in HELD and time.monotonic() < ends:
            time.sleep(HELD_SECONDS)

    def _change(self, command: Sequence[str], allocation: Allocation, text: str | None = None) -> None:
        try:
            _run(command, text)
        except ActuatorError as error:
            name = next(iter(allocation))
            raise CannotSet(name, allocation[name], f"Slurm refused it: {error}") from error

    def _in_place(self, allocation: Allocation) -> bool:
        """Whether Slurm can apply the change without a restart: the job is pending, or only gives nodes back."""
        fewer = allocation.keys() == {"nodes"} and allocation["nodes"] < self._current["nodes"]
        return fewer or _job_status(self._job).state == "PENDING"

    def _look(self) -> int | None:
        seen = _job_status(self._job)
        if seen.state not in ENDED:
            return None
        return 128 + self._ending if seen.state == "CANCELLED" else seen.status

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # Slurm has its own: KillWait
        _run(["scancel", self._job])

    def _kill(self) -> None:
        _run(["scancel", "--signal=KILL", "--full", self._job])

    def _remove(self) -> None:
        """Do nothing: an ended job leaves only Slurm's own records."""

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        lines = _run(["squeue", "--me", f"--name={name}", "--noheader", "--format=%i|%k"]).splitlines()
        return [Leftover(*(part.strip() for part in line.split("|", 1))) for line in lines if "|" in line]

    @override
    def discard(self, one: Leftover) -> None:
        _run(["scancel", one.id])

    def _follow(self, sink: Sink) -> None:
        if not self.shares_files:
            return
        with self._output.open("rb") as out, self._error.open("ab+") as errors:
            errors.seek(0)
            while True:
                ended = self._status is not None
                pieces = [("stdout", out.read()), ("stderr", errors.read())]
                for stream, piece in pieces:
                    if piece:
                        sink("stdout" if stream == "stdout" else "stderr", piece)
                if ended:
                    return
                time.sleep(TAIL_SECONDS)


class JobStatus(NamedTuple):
    """State of a job as Slurm reports it, such as ``RUNNING``, and its exit status."""

    state: str
    status: int


def _job_status(job: str) -> JobStatus:
    """A job's state by ``scontrol``, or by ``sacct`` once the controller has forgotten the job.

    Raises:
        ActuatorError: neither program knows the job.
    """
    try:
        told = _run(["scontrol", "show", "job", job, "--oneliner"])
    except ActuatorError:
        return _accounted_status(job)
    fields = dict(re.findall(r"(\w+)=(\S*)", told))
    return JobStatus(fields.get("JobState", "UNKNOWN"), _status(fields.get("ExitCode", "0:0")))


def _accounted_status(job: str) -> JobStatus:
    rows = _run(["sacct", "-X", "-n", "-P", "-j", job, "-o", "State,ExitCode"]).split("\n")
    state, _, code = rows[0].partition("|")
    if not code:
        raise ActuatorError(f"Slurm knows no job {job}")
    return JobStatus(state.split(" ")[0], _status(code))


def _status(code: str) -> int:
    """Exit status from Slurm's ``ExitCode`` STATUS:SIGNAL; 128 + n for signal n, 137 for an empty text."""
    status, _, number = code.partition(":")
    return 128 + int(number) if number not in ("", "0") else int(status or KILLED)


def _settable() -> dict[str, Settable]:
    restart = {"how": "scontrol requeuehold, update, release", "change_seconds": RESTART_SECONDS, "restarts": True}
    found = {name: Settable(UNITS[name], 1.0, None, **restart) for name in ("nodes", "workers")}  # type: ignore[arg-type]
    found["cpu"] = Settable(UNITS["cpu"], 100.0, None, **restart)  # type: ignore[arg-type]
    found["memory"] = Settable(UNITS["memory"], 1.0, None, **restart)  # type: ignore[arg-type]
    found["gpus"] = Settable(UNITS["gpus"], 1.0, None, **restart)  # type: ignore[arg-type]
    return found


def _resource_options(allocation: Allocation) -> list[str]:
    return [f"{ASKED[name]}={_amount(name, value)}" for name, value in allocation.items()]


def _amount(name: str, value: float) -> str:
    if name in ("memory", "gpus"):
        return f"{value:.0f}M" if name == "memory" else f"gpu:{value:.0f}"
    return f"{value / 100:.0f}" if name == "cpu" else f"{value:.0f}"


def _update(name: str, value: float) -> str:
    """A value for ``scontrol update``, which takes memory in MiB without a unit."""
    return f"{value:.0f}" if name == "memory" else _amount(name, value)


def _run(command: Sequence[str], text: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a program of Slurm's and return its standard output.

    Raises:
        ActuatorError: it fails, or takes more than 60 s; with the program's own message.
    """
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActuatorError(f"{command[0]} does not answer: {error}") from error
    if done.returncode:
        raise ActuatorError(f"{command[0]}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout
