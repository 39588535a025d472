"""PyTorch Elastic on this machine: one agent of ``torchrun`` per worker.

Agents find each other by a rendezvous. When one joins or leaves, all workers are restarted and continue from a
checkpoint of their own; workers notice a missing peer by a failing collective operation. The first agent hosts the
rendezvous and is stopped last. ``torchrun`` exits with status 1 whatever status a worker failed with.
"""

from __future__ import annotations

import secrets
import shutil
import socket
from collections.abc import Mapping
from contextlib import closing

from .contract import UNITS, ActuatorError, Allocation, Launch, Range, Settable, Unavailable
from .local import LocalProcesses
from .remote import PARTING_SECONDS, Remote

LAST_CALL_SECONDS, RESTART_SECONDS = 2, 10.0
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Without it an older agent may give a newcomer no address, for which that waits in vain (seen with PyTorch 2.13)."""
MOST_RESTARTS = 1_000  # an agent that goes ends a round by a failure of its peers


class ElasticTorch(Remote):
    """Runs a command under ``torchrun``, with one process per worker.

    Args:
        wanted: the resource ``workers`` (a count).
        torchrun: name or path of the program.
        port: TCP port of the rendezvous; empty: a free one.

    Raises:
        Unavailable: the program is not on PATH.
        ActuatorError: ``port`` is no number.
        CannotSet: another resource is wanted, or not in that range.
    """

    name = "elastic"
    look_seconds = 0.05
    shares_files = True

    def __init__(self, wanted: Mapping[str, Range], torchrun: str = "torchrun", port: str = "") -> None:
        program = shutil.which(torchrun)
        if program is None:
            raise Unavailable(f"{torchrun} is not on PATH: pip install torch, or --option torchrun=/path/of/torchrun")
        if port and not port.isdecimal():
            raise ActuatorError(f"port={port}: a number is accepted")
        how = "agents of torchrun come and go"
        settable = Settable(UNITS["workers"], 1.0, None, how, change_seconds=RESTART_SECONDS, restarts=True)
        super().__init__({"workers": settable}, wanted)
        workers = wanted.get("workers", Range(1, 1))
        self._torchrun = [
            program,
            f"--nnodes={workers.minimum:.0f}:{workers.maximum:.0f}",
            "--nproc-per-node=1",
            "--rdzv-backend=c10d",
            f"--rdzv-endpoint=127.0.0.1:{port or _free_port()}",
            f"--rdzv-id=steward-{secrets.token_hex(8)}",
            f"--rdzv-conf=last_call_timeout={LAST_CALL_SECONDS}",
            f"--max-restarts={MOST_RESTARTS}",
            "--local-addr=127.0.0.1",  # else each looks up its name, for as long as that takes
            "--monitor-interval=0.2",
            "--no-python",
        ]
        self._agents: list[LocalProcesses] = []
        self._launch = Launch((), {})

    def _round(self, name: str, value: float) -> float:  # noqa: ARG002
        return float(round(value))

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        command = [*self._torchrun, *launch.command]
        environment = {**launch.environment, **OWN_STORE}
        self._launch = Launch(command, {}, environment, launch.folder, launch.output, launch.name)
        try:
            self._grow(round(allocation.get("workers", 1)))
        except ActuatorError:
            self._remove()
            raise

    def _grow(self, number: int) -> None:
        while len(self._agents) < number:
            agent = LocalProcesses({})
            agent.start(self._launch)
            self._agents.append(agent)

    def _set(self, allocation: Allocation) -> None:
        number = round(allocation["workers"])
        self.restarts += 1
        self._grow(number)
        for agent in self._agents[number:]:
            agent.stop()
            agent.close()
        del self._agents[number:]

    def _look(self) -> int | None:
        """Exit status of the first agent, None while it runs; once it has ended, the others are stopped."""
        status = self._agents[0].wait(0)
        if status is not None:
            for agent in self._agents[1:]:
                if agent.wait(PARTING_SECONDS if status == 0 else 0) is None:
                    agent.stop()
        return status

    def _signal(self, number: int, seconds: float) -> None:
        for agent in reversed(self._agents):
            agent.stop(number, seconds)

    def _kill(self) -> None:
        self._remove()

    def _remove(self) -> None:
        for agent in reversed(self._agents):
            agent.close()


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
