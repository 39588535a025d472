"""A network that can be parted: a namespace behind a pair of interfaces, in which a server runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

SILENT = ("rule", "add", "blackhole")
HEARD = ("rule", "del", "blackhole")


@dataclass(frozen=True)
class Namespace:
    """A network namespace, and the address at which the outer one finds it."""

    name: str
    address: str

    @property
    def within(self) -> tuple[str, ...]:
        """What a command that runs in it begins with."""
        return ("ip", "netns", "exec", self.name)

    def part(self) -> None:
        """From now on what is sent either way is dropped, and nobody is told."""
        _ip("-n", self.name, *SILENT)

    def join(self) -> None:
        """What is sent arrives again."""
        _ip("-n", self.name, *HEARD)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A namespace of this process's own; skips where making one isn't allowed."""
    number = os.getpid() % 16_000  # addresses of 10.213.0.0/16, four of them each
    base = f"10.213.{number // 64}.{number % 64 * 4}".rsplit(".", 1)
    ours, theirs = (f"{base[0]}.{int(base[1]) + last}" for last in (1, 2))
    name, outside, inside = f"steward-{number}", f"st{number}", f"sn{number}"
    try:
        _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    try:
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        _ip("addr", "add", f"{ours}/30", "dev", outside)
        _ip("link", "set", outside, "up")
        _ip("-n", name, "addr", "add", f"{theirs}/30", "dev", inside)
        _ip("-n", name, "link", "set", inside, "up")
        yield Namespace(name, theirs)
    finally:
        _ip("netns", "del", name)  # and with it the pair
