"""Limit on the memory of a command and its descendants, in MiB, by a control group."""

from __future__ import annotations

from .groups import Group

MEBIBYTE = 1 << 20


class InUse(Exception):
    """The limit is below the memory in use, so that the kernel would kill the command."""


class MemoryLimit:
    """Memory limit of a control group; lowering it first makes the kernel release caches.

    Attributes:
        how: name of the method for messages, e.g. ``cgroup v2 limit``.
    """

    def __init__(self, group: Group) -> None:
        self.how, self._group = f"cgroup v{group.version} limit", group

    def set(self, mebibytes: float) -> None:
        """Limit the group's memory to ``mebibytes`` from now on.

        Raises:
            InUse: more memory is in use, or the limit can't be written; the limit is unchanged.
        """
        wanted = str(round(mebibytes * MEBIBYTE))
        try:
            self._write(wanted)
        except OSError as error:
            raise InUse(f"the command has {self.used:.0f} MiB in use") from error

    @property
    def used(self) -> float:
        """Memory in use by the group, in MiB; raises OSError if the group was removed."""
        name = "memory.usage_in_bytes" if self._group.version == 1 else "memory.current"
        return int(self._group.read(name)) / MEBIBYTE

    def _write(self, wanted: str) -> None:
        if self._group.version == 1:
            self._group.write("memory.limit_in_bytes", wanted)  # EBUSY where that much can't be freed
            return
        before = self._group.read("memory.high")
        self._group.write("memory.high", wanted)  # frees what it can
        if int(self._group.read("memory.current")) > int(wanted):
            self._group.write("memory.high", before)
            raise OSError(wanted)
        self._group.write("memory.max", wanted)
        self._group.write("memory.high", "max")
