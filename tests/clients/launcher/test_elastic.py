"""The actuator for PyTorch Elastic: the kit with a double of torchrun; with torchrun itself where that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, Range, Unavailable

from tests.clients.launcher.kits import QuickKit
from tests.servers import wait_until

DOUBLE = """#!/bin/sh
while [ "$1" != --no-python ]; do shift; done
shift
exec "$@"
"""
Make = Callable[[], Actuator]


class TestElastic(QuickKit):
    wanted: ClassVar[dict[str, Range]] = {"workers": Range(1, 3)}

    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        double = tmp_path / "torchrun"
        double.write_text(DOUBLE)
        double.chmod(0o755)
        return lambda: registry.create("elastic", self.wanted, {"torchrun": str(double)})

    def test_agents_come_and_go(self, make: Make, tmp_path: Path) -> None:
        observation = tmp_path / "agents"
        observation.mkdir()
        program = f"trap 'rm -f {observation}/$$; exit 143' TERM; touch {observation}/$$; while :; do sleep 0.05; done"
        with self.started(make, ["/bin/sh", "-c", program]) as actuator:
            for number in (1, 3, 2):
                actuator.apply({"workers": number})
                wait_until(partial(self.are, number, observation), what=f"{number} agents")
        assert list(observation.iterdir()) == []

    def are(self, number: int, path: Path) -> bool:
        return len(list(path.iterdir())) == number

    def test_without_torchrun_it_says_so(self) -> None:
        with pytest.raises(Unavailable, match="none is not on PATH: pip install torch"):
            registry.create("elastic", self.wanted, {"torchrun": "none"})
