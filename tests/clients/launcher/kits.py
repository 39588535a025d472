"""The kit for actuators whose commands are run by a double: a shell's commands, for they start in no time."""

from __future__ import annotations

from steward_client.launcher.actuators.kit import ActuatorKit


class QuickKit(ActuatorKit):
    """As the kit; ``running`` and ``ending`` are commands of a shell."""

    def running(self) -> list[str]:
        return ["/bin/sh", "-c", "echo ready; exec sleep 60"]

    def ending(self, status: int) -> list[str]:
        return ["/bin/sh", "-c", f"exit {status}"]
