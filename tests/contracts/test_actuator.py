"""What every actuator must do, run over those that are installed and can be used here."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, Unavailable
from steward_client.launcher.actuators.kit import ActuatorKit

ELSEWHERE = {"docker", "elastic", "kubernetes", "kubernetes-scale", "ray", "slurm"}
"""Those that need a daemon or a cluster: they pass the kit in modules of their own, against doubles."""
CHOICES: list[tuple[str, dict[str, str]]] = [
    *((name, {}) for name in registry.installed() if name not in ELSEWHERE),
    ("local", {"cpu_method": "duty"}),
]


class TestInstalled(ActuatorKit):
    """Each of them, as its defaults have it; those that have a choice, by each."""

    options: ClassVar[dict[str, str]] = {}

    @pytest.fixture(params=CHOICES, ids=str)
    def make(self, request: pytest.FixtureRequest) -> Callable[[], Actuator]:
        name, options = request.param
        try:
            registry.create(name, self.wanted, options).close()
        except Unavailable as missing:
            pytest.skip(str(missing))
        return lambda: registry.create(name, self.wanted, options)
