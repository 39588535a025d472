"""Networks that can be parted: namespaces behind pairs of interfaces, in which servers run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

SILENT = ("rule", "add", "blackhole")
HEARD = ("rule", "del", "blackhole")
NAMED = 'hostname "$0" && exec "$@"'


@dataclass(frozen=True)
class Namespace:
    """A network namespace, and the address at which the outer one finds it."""

    name: str
    address: str

    @property
    def within(self) -> tuple[str, ...]:
        """What a command that runs in it begins with: its host's name is the namespace's."""
        return ("ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", NAMED, self.name)

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
    outside = f"st{number}"
    with ExitStack() as stack:
        result = _made(stack, f"steward-{number}", theirs, 30, outside)
        _ip("addr", "add", f"{ours}/30", "dev", outside)
        yield result


@contextmanager
def network(names: Sequence[str]) -> Iterator[tuple[Namespace, ...]]:
    """Hosts with a bridge between them, on which this process is, too; skips where making one isn't allowed."""
    number = os.getpid() % 16_000
    base, bridge = f"10.{214 + number // 250 % 40}.{number % 250}", f"sb{number}"
    with ExitStack() as stack:
        try:
            _ip("link", "add", bridge, "type", "bridge")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no bridge can be made here: {error}")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{base}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        hosts = list[Namespace]()
        for last, name in enumerate(names, 10):
            outside = f"so{number}-{last}"
            hosts.append(_made(stack, f"{name}-{number}", f"{base}.{last}", 24, outside))
            _ip("link", "set", outside, "master", bridge)
        yield tuple(hosts)


def _made(stack: ExitStack, name: str, address: str, bits: int, outside: str) -> Namespace:
    """A namespace with an address, and its interface's other end ``outside``; removed at the end of ``stack``."""
    try:
        _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no network namespace can be made here: {error}")
    stack.callback(_ip, "netns", "del", name)  # and with it the pair
    inside = "inside"
    _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
    _ip("link", "set", outside, "up")
    _ip("-n", name, "addr", "add", f"{address}/{bits}", "dev", inside)
    _ip("-n", name, "link", "set", inside, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    return Namespace(name, address)
