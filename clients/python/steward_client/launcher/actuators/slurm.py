"""Slurm jobs, by the programs ``sbatch``, ``scontrol``, ``scancel`` and ``squeue``.

A pending job is changed in place. A running job can give nodes back in place; for any other change it is requeued with
its new size, and must continue from a checkpoint of its own: a launch that doesn't resume keeps the size with which it
was submitted. If the launcher is killed, the job runs on until the same run is started again (see `leftovers`);
``scancel --me --name steward-WORKLOAD`` ends it.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from .contract import UNITS, ActuatorError, Allocation, CannotSet, Launch, Range, Settable, Sink, Unavailable, Waiting
from .leftovers import Leaving, Leftover, launcher
from .remote import KILLED, Remote

PROGRAMS = ("sbatch", "scontrol", "scancel", "squeue")
TIMEOUT_SECONDS, LOOK_TIMEOUT_SECONDS, TAIL_SECONDS = 60.0, 10.0, 0.05
RESTART_SECONDS, HELD_SECONDS = 60.0, 0.2
AGAIN_SECONDS, TRIES = 1.0, 5
REVOKED_SECONDS = 2.0
"""A node kills a job that starts within a second after it left the node, because its credential counts as revoked."""
SCRIPT = "#!/bin/sh\n"
START, ROOM_SECONDS = re.compile(r"to start at (\d\S+)"), 5.0
"""What ``sbatch --test-only`` says, and how soon a job must start for there to be room now."""
NEVER = {"BadConstraints", "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit"}
OF_A_JOB = "PerJob"
"""Reasons for which a job never starts; others are limits of one job, such as ``QOSMaxCpuPerJobLimit``."""
OF_NODES = ("ReqNodeNotAvail", "Nodes_required_for_job_are_DOWN")
"""Reasons that say that nodes are down, but also that they are reserved for others: ``sbatch --test-only`` knows."""
NEVER_SECONDS, TEST_SECONDS, NO_START = 4.0, 30.0, "allocation failure"
"""How long such a reason must last, as a node that comes back counts as down for a second, and its next test."""
WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"}
ENDED = {
    "COMPLETED": "",
    "FAILED": "",
    "CANCELLED": "cancelled from outside (scancel)",
    "TIMEOUT": "the job's time limit was reached; --option sbatch=--time=… sets another",
    "NODE_FAIL": "a node of the job failed",
    "OUT_OF_MEMORY": "the job used more memory than it had",
    "DEADLINE": "the job's deadline at Slurm (sbatch --deadline) has passed",
    "BOOT_FAIL": "a node of the job could not be booted",
    "PREEMPTED": "preempted by a job of higher priority",
}
"""States in which a job has ended, and what ended it, in words; empty: the command itself."""
UNKNOWN_JOB, BUSY = "Invalid job id", "try again"
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
    look_seconds = 2.0
    apart = True

    def __init__(self, wanted: Mapping[str, Range], shared: str = "no", partition: str = "", sbatch: str = "") -> None:
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            raise Unavailable(f"{missing[0]} is not on PATH: run this on a login node of the cluster")
        if shared not in ("yes", "no"):
            raise ActuatorError(f"shared={shared}: yes or no is accepted")
        super().__init__(_settable(), wanted)
        mixed = sorted(OF_ONE_NODE & wanted.keys())
        if mixed and wanted.keys() - OF_ONE_NODE:
            minimum = wanted[mixed[0]].minimum
            raise CannotSet(
                mixed[0], minimum, "Slurm counts it by node or task; set it by sbatch=…, beside nodes and workers"
            )
        self.shares_files = self.passes_output = shared == "yes"
        self._more = [*([f"--partition={partition}"] if partition else []), *shlex.split(sbatch)]
        self._job, self._output = "", Path(os.devnull)
        self._resumes = False
        self._stopping = self._held = False
        self._seen = JobStatus()
        self._tasks_of_node = 1.0
        self._submitted, self._told = 0.0, ""
        self.waiting: Waiting | None = None
        self._ran, self._never_since, self._tested = False, math.inf, ("", False, 0.0)

    def _round(self, name: str, value: float) -> float:
        return max(100.0, round(value / 100) * 100.0) if name == "cpu" else float(round(value))

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        if self.shares_files and launch.folder is not None:
            self._output = launch.folder / "slurm"
            self._output.touch()
        self._resumes, self._submitted = launch.resumes, time.monotonic()
        options = _resource_options(allocation)
        paths = [f"--output={self._output}", f"--error={self._error}", "--open-mode=append"]
        name = [f"--job-name={launch.name}", f"--comment={launcher()}", "--parsable", "--export=ALL"]
        name.append("--requeue" if launch.resumes else "--no-requeue")
        script = f"{SCRIPT}exec {shlex.join(launch.command)}\n"
        number = _run(["sbatch", *name, *options, *paths, *self._more], script, {**os.environ, **launch.environment})
        self._job = number.strip().partition(";")[0]
        if not self._job.isdecimal():
            raise ActuatorError(f"sbatch answered no number of a job: {number[:80]!r}")
        try:
            self._seen = _job_status(self._job)
        except ActuatorError:  # else it would run on, and nobody would know of it
            with suppress(ActuatorError):
                _run(["scancel", self._job])
            raise
        self.waiting = Waiting(self._seen.reason)
        self._tasks_of_node = self._seen.tasks / allocation.get("nodes", 1)

    @property
    def _error(self) -> Path:
        return self._output if str(self._output) == os.devnull else self._output.with_name("slurm-errors")

    def _set(self, allocation: Allocation) -> str | None:
        """Give a job its new size; one that runs keeps the old one while a requeue would only make it wait.

        Returns why it has to wait; None: it has its new size. Raises CannotSet if Slurm refuses the size, or the job
        runs without ``--checkpoint``; ActuatorError if Slurm doesn't respond, or the job neither waits nor runs."""
        before, after = dict(self._current), {**self._current, **allocation}
        if allocation.keys() == {"nodes"} and after["nodes"] < before["nodes"]:
            job_status = _job_status(self._job)
            if job_status.state == "RUNNING":
                self._refusable([*self._update, f"NumNodes={after['nodes']:.0f}"], allocation)
                return None
        self._refusable(["sbatch", "--test-only", *_resource_options(after), *self._more], allocation, SCRIPT)
        job_status = _job_status(self._job)
        if job_status.state == "PENDING":
            self._resize(job_status, allocation, before, after)
            return None
        if job_status.state != "RUNNING":  # to requeue a job that has just ended would start it again
            raise ActuatorError(f"job {self._job} is {job_status.state} at Slurm just now, and keeps its size")
        if not self._resumes:
            name, value = next(iter(allocation.items()))
            raise CannotSet(name, value, "the job runs, and without --checkpoint it isn't requeued under another size")
        if waits := self._no_room(job_status, before, after):
            return waits
        self._held = True
        _run(["scontrol", "requeuehold", self._job])
        self._told, self._submitted, left = "requeued", time.monotonic(), time.monotonic()
        self.restarts += 1
        try:
            ends = time.monotonic() + TIMEOUT_SECONDS
            while (job_status := _job_status(self._job)).state not in WAITING and time.monotonic() < ends:
                time.sleep(HELD_SECONDS)  # until it has left its nodes
            left = time.monotonic()
            self._resize(job_status, allocation, before, after)
        finally:
            time.sleep(max(left + REVOKED_SECONDS - time.monotonic(), 0.0))
            self._release()
        return None

    def _waits(self, allocation: Allocation) -> str:
        return self._set(allocation) or ""

    def _no_room(self, job: JobStatus, before: Allocation, after: Allocation) -> str:
        """When there would be room for a running job's new size, if not now; empty: there is, or Slurm doesn't say.

        A requeued job gives up what it has: there is room if all of the new size is free, or what it has more.
        """
        more = {name: value - before.get(name, 0.0) for name, value in after.items() if value > before.get(name, 0.0)}
        if not more:
            return ""
        here = [f"--nodelist={job.nodes}"] if more.keys() <= OF_ONE_NODE and job.nodes else []
        latest = datetime.now() + timedelta(seconds=ROOM_SECONDS)  # noqa: DTZ005 - Slurm's times are local
        starts = []
        for size, where in ((after, []), (more, here)):
            with suppress(ActuatorError):  # it would never fit so
                _, output = _outputs(["sbatch", "--test-only", *_resource_options(size), *self._more, *where], SCRIPT)
                if (match := START.search(output)) is None:
                    return ""
                if datetime.fromisoformat(match[1]) <= latest:
                    return ""
                starts.append(match[1])
        return f"Resources: there is room at {min(starts)} at the latest" if starts else "Resources"

    @property
    def _update(self) -> list[str]:
        return ["scontrol", "update", f"JobId={self._job}"]

    def _release(self) -> None:
        """End the hold of a change; if nobody answers, it is tried again at each look, else the job would never run."""
        _run(["scontrol", "release", self._job])
        self._held = False
        self._start_now()

    def _start_now(self) -> None:
        """Let a requeued job start as soon as there is room: Slurm gives it a begin time some 120 s later."""
        _run([*self._update, "StartTime=now"])

    def _resize(self, job: JobStatus, allocation: Allocation, before: Allocation, after: Allocation) -> None:
        """Change a pending job; raises CannotSet if Slurm refuses, and the job keeps its former size."""
        try:
            self._refusable([*self._update, *self._size(after, job)], allocation)
        except CannotSet:  # Slurm applies the part of an update that comes before its refusal
            with suppress(ActuatorError):
                _run([*self._update, *self._size(before, job)])
            raise

    def _size(self, allocation: Allocation, job: JobStatus) -> list[str]:
        """Arguments of ``scontrol update`` that give a pending job an allocation.

        ``NumNodes`` needs both bounds, else one above the former maximum is refused. ``NumCPUs`` doesn't follow from
        the others: without it the job starts with as many as before.
        """
        options = []
        if "nodes" in allocation:
            options.append(f"NumNodes={allocation['nodes']:.0f}-{allocation['nodes']:.0f}")
        if allocation.keys() & {"nodes", "workers"}:
            tasks = allocation.get("workers") or allocation["nodes"] * self._tasks_of_node
            options += [f"NumTasks={tasks:.0f}", f"NumCPUs={tasks * job.width:.0f}"]
        if "cpu" in allocation:
            cores = _amount("cpu", allocation["cpu"])
            options += [f"CPUsPerTask={cores}", f"NumCPUs={cores}"]
        if "memory" in allocation:
            options.append(f"MinMemoryNode={allocation['memory']:.0f}")  # in MiB, without a unit
        if "gpus" in allocation:
            options.append(f"Gres={_amount('gpus', allocation['gpus'])}")
        return options

    def _refusable(self, command: Sequence[str], allocation: Allocation, text: str | None = None) -> None:
        """Run a command that sets ``allocation``, again while Slurm is busy; raises CannotSet after ``TRIES``
        failures."""
        for left in reversed(range(TRIES)):
            try:
                _run(command, text)
            except ActuatorError as error:
                if BUSY in str(error) and left:
                    time.sleep(AGAIN_SECONDS)
                    continue
                name = next(iter(allocation))
                raise CannotSet(name, allocation[name], f"Slurm refused it: {error}") from error
            return

    def _look(self) -> int | None:
        before = self._seen
        job_status = self._seen = _job_status(self._job)
        self._note(before, job_status)
        self._ran = self._ran or job_status.state not in WAITING
        self.waiting = (
            None
            if self._ran or self._held
            else Waiting(job_status.reason, self._never(job_status), behind=job_status.reason == "Priority")
        )
        if job_status.state not in ENDED:
            return None
        if not self._stopping:
            self.reason = job_status.why or ENDED[job_status.state]
        if job_status.state == "CANCELLED":
            return 128 + self._ending
        return job_status.status if job_status.state == "COMPLETED" else job_status.status or KILLED

    def _never(self, job: JobStatus) -> bool:
        """Whether a job that waits can't start as the cluster is, by its reason or a test, for some seconds by now."""
        now, (reason, refused, at) = time.monotonic(), self._tested
        if job.reason.startswith(OF_NODES) and (reason != job.reason or now >= at + TEST_SECONDS):
            try:
                _run(["sbatch", "--test-only", *_resource_options(self._current), *self._more], SCRIPT)
                refused = False
            except ActuatorError as error:
                refused = NO_START in str(error)
            self._tested = job.reason, refused, now
        refused = refused and job.reason.startswith(OF_NODES)
        never = refused or job.reason in NEVER or OF_A_JOB in job.reason
        self._never_since = min(self._never_since, now) if never else math.inf
        return now >= self._never_since + NEVER_SECONDS

    def _note(self, before: JobStatus, job: JobStatus) -> None:
        """Write down what Slurm did with the job since the look ``before``."""
        if job.limit != before.limit and job.state == before.state == "RUNNING":  # a start sets the partition's
            self._news.append(f"job {self._job}: its time limit is {job.limit} now, was {before.limit}")
        if job.restarts > self.restarts:
            self.restarts = job.restarts
            self._submitted = time.monotonic()
            self._news.append(f"job {self._job} was requeued by Slurm (preempted, a failed node, or scontrol requeue)")
            self._told = "requeued"
        if job.state in WAITING:
            if self._held:
                self._release()
            elif job.reason == "BeginTime" and time.monotonic() > self._submitted + REVOKED_SECONDS:
                self._start_now()
            elif job.reason not in ("None", "", "BeginTime") and job.reason != self._told:
                self._told = job.reason
                self._news.append(f"job {self._job} waits: {job.reason} (squeue --job {self._job})")
        elif job.state == "RUNNING" and self._told != "running":
            if self._told:
                waited = time.monotonic() - self._submitted
                self._news.append(f"job {self._job} runs on {job.nodes or 'its nodes'}, after {waited:.0f} s")
            self._told = "running"

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # Slurm has its own: KillWait
        self._stopping = True
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
    """A job as Slurm reports it.

    Attributes:
        state: its state, such as ``RUNNING``.
        status: its exit status.
        reason: why it waits, such as ``Resources``.
        restarts: how often it was requeued.
        nodes: the nodes on which it runs.
        limit: its time limit.
        tasks, width: number of its tasks, and CPUs of each.
        why: what ended it, in words, where the state doesn't tell.
    """

    state: str = "UNKNOWN"
    status: int = 0
    reason: str = ""
    restarts: int = 0
    nodes: str = ""
    limit: str = ""
    tasks: int = 1
    width: int = 1
    why: str = ""


def _job_status(job: str) -> JobStatus:
    """A job's state by ``scontrol``, or by ``sacct`` once the controller has forgotten the job.

    Raises:
        ActuatorError: the controller doesn't respond.
    """
    try:
        text = _run(["scontrol", "show", "job", job, "--oneliner"], seconds=LOOK_TIMEOUT_SECONDS)
    except ActuatorError as error:
        if UNKNOWN_JOB not in str(error):
            raise
        return _accounted_status(job)
    fields = {name: value for name, value in re.findall(r"([\w/:]+)=(\S*)", text) if value != "(null)"}
    counts = [fields.get(name, "") for name in ("NumTasks", "CPUs/Task")]
    tasks, width = (int(count) if count.isdecimal() else 1 for count in counts)
    return JobStatus(
        fields.get("JobState", "UNKNOWN"),
        _status(fields.get("ExitCode", "0:0")),
        fields.get("Reason", ""),
        int(fields.get("Restarts", 0)),
        fields.get("NodeList", ""),
        fields.get("TimeLimit", ""),
        tasks,
        width,
    )


def _accounted_status(job: str) -> JobStatus:
    """The state of a job that the controller has forgotten, from Slurm's accounts."""
    try:
        rows = _run(["sacct", "-X", "-n", "-P", "-j", job, "-o", "State,ExitCode"]).split("\n")
    except ActuatorError:
        rows = [""]
    state, _, code = rows[0].partition("|")
    if code:
        return JobStatus(state.split(" ")[0], _status(code))
    why = "Slurm has forgotten the job, and its accounts (sacct) don't say how it ended"
    return JobStatus("FAILED", KILLED, why=why)


def _status(code: str) -> int:
    """Exit status from Slurm's ``ExitCode`` STATUS:SIGNAL; 128 + n for signal n, 137 for an empty text."""
    status, _, number = code.partition(":")
    return 128 + int(number) if number not in ("", "0") else int(status or KILLED)


def _settable() -> dict[str, Settable]:
    how = "sbatch; scontrol update, after a requeue if the job runs"
    least = {name: 100.0 if name == "cpu" else 1.0 for name in ASKED}
    return {name: Settable(UNITS[name], least[name], None, how, RESTART_SECONDS, restarts=True) for name in ASKED}


def _resource_options(allocation: Allocation) -> list[str]:
    return [f"{ASKED[name]}={_amount(name, value)}" for name, value in allocation.items()]


def _amount(name: str, value: float) -> str:
    if name in ("memory", "gpus"):
        return f"{value:.0f}M" if name == "memory" else f"gpu:{value:.0f}"
    return f"{value / 100:.0f}" if name == "cpu" else f"{value:.0f}"


def _run(
    command: Sequence[str],
    text: str | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> str:
    """Run a program of Slurm's and return its standard output.

    Raises:
        ActuatorError: it fails, or takes more than ``seconds``; with the program's own message.
    """
    return _outputs(command, text, environment, seconds)[0]


def _outputs(
    command: Sequence[str],
    text: str | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> tuple[str, str]:
    """Run a program of Slurm's; return output and errors. Raises ActuatorError if it fails or exceeds ``seconds``."""
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=seconds, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActuatorError(f"{command[0]} does not answer: {error}") from error
    if done.returncode:
        raise ActuatorError(f"{command[0]}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout, done.stderr
