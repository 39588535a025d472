"""A real Slurm on this machine: a controller and two nodes on loopback, in a folder of their own.

Debian's packages ``slurm-wlm`` and ``munge`` have the programs; nothing of what they install is started or changed.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.engines.required import PATH, require
from tests.servers import free_port, stop, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel", "sinfo")
NODES = ("n1", "n2")
CONFIGURATION = """\
ClusterName=steward
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
MailProg=/bin/true
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=1000
PartitionName=low Nodes=n1,n2 Default=YES State=UP PriorityTier=1
PartitionName=high Nodes=n1,n2 State=UP PriorityTier=10
"""
"""Two nodes with two cores each, whatever the machine has; jobs in ``high`` preempt those in ``low``."""


@dataclass(frozen=True)
class SlurmEngine:
    """A running Slurm; ``folder`` has its configuration ``slurm.conf``, logs and state, ``version`` is its version."""

    folder: Path
    version: str
    controller: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Slurm's programs find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATH}

    def call(self, *command: str) -> str:
        """Standard output of a program of Slurm's; fails the test with its message."""
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **self.environment})
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def job(self, number: str) -> dict[str, str]:
        """The fields of a job, by name."""
        return dict(
            part.partition("=")[::2]
            for part in self.call("scontrol", "show", "job", number, "--oneliner").split()
            if "=" in part
        )

    def jobs(self) -> list[str]:
        """Numbers of the jobs that wait or run."""
        return self.call("squeue", "--noheader", "--format=%i").split()

    def idle(self) -> bool:
        """Whether both nodes are there, and free."""
        return self.call("sinfo", "--noheader", "--Node", "--format=%N %T").split("\n")[:-1] == [
            f"{node} idle" for node in NODES for _ in range(2)
        ]

    def await_idle(self) -> None:
        """Cancel all jobs, and wait until both nodes are free."""
        for job in self.jobs():
            self.call("scancel", job)
        wait_until(lambda: not self.jobs() and self.idle(), 60, "both nodes to be idle")


@contextmanager
def slurm(folder: Path) -> Iterator[SlurmEngine]:
    """Context manager: a Slurm in an empty ``folder``; at its end none of its processes is left."""
    (folder / "state").mkdir()
    ports = [free_port() for _ in range(3)]
    settings = {"host": socket.gethostname(), "user": getpass.getuser(), "folder": folder, "ports": ports}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(**settings))
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    places = [f"--{name}={folder}/munge.{end}" for name, end in PLACES.items()]
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
    with ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[bytes]:
            program = shutil.which(command[0], path=PATH) or command[0]
            log = stack.enter_context((folder / f"{command[0]}.out").open("ab"))
            process = subprocess.Popen([program, *command[1:]], stdout=log, stderr=log, env=environment)
            stack.callback(stop, process, seconds=10)
            return process

        start("munged", "--foreground", "--force", *places)
        wait_until((folder / "munge.socket").exists, 30, "munged to listen")
        stack.callback(_end_all, folder / "slurm.conf")
        controller = start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for node in NODES:
            start("slurmd", "-D", "-N", node, "-f", str(folder / "slurm.conf"))
        version = subprocess.run(["sbatch", "--version"], env=environment, capture_output=True, text=True).stdout
        engine = SlurmEngine(folder, version.strip(), controller)
        wait_until(lambda: _answers(environment) and engine.idle(), 60, f"Slurm to start, see {folder}")
        stack.callback(engine.await_idle)
        yield engine


PLACES = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}


def _answers(environment: dict[str, str]) -> bool:
    return subprocess.run(["sinfo"], env=environment, capture_output=True).returncode == 0


def _end_all(configuration: Path) -> None:
    """End what was started with this configuration and still runs: steps of jobs outlive their daemons."""
    for process in psutil.process_iter():
        try:
            if process.environ().get("SLURM_CONF") == str(configuration) and process.pid != os.getpid():
                process.kill()
        except psutil.Error:
            continue


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmEngine]:
    """A real Slurm for the tests of a session; skips where it isn't installed."""
    require(PROGRAMS)
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def cluster(engine: SlurmEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmEngine]:
    """The Slurm of the session, without jobs, which this process's programs find."""
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    yield engine
    engine.await_idle()


def until_state(engine: SlurmEngine, job: str, states: Sequence[str], seconds: float = 30) -> float:
    """Wait until a job has one of these states; returns the seconds that this took."""
    began = time.monotonic()
    wait_until(lambda: engine.job(job)["JobState"] in states, seconds, f"job {job} to be {' or '.join(states)}")
    return time.monotonic() - began
