"""A limit of the memory of a command and all that it starts, in MiB: a control group's."""

from __future__ import annotations

from .groups import Group

MEBIBYTE = 1 << 20


class InUse(Exception):
    """Less than the command has in use: it would be killed for it."""


class MemoryLimit:
    """What a control group may use; what is taken off must be free, or be given up by the kernel's caches.

    Attributes:
        how: what it is, in words.
    """

    def __init__(self, group: Group) -> None:
        self.how, self._group = f"cgroup v{group.version} limit", group

    def set(self, mebibytes: float) -> None:
        """Limit it from now on.

        Raises:
            InUse: the command has more; its limit is as it was.
        """
        wanted = str(round(mebibytes * MEBIBYTE))
        try:
            self._write(wanted)
        except OSError as error:
            raise InUse(f"the command has {self.used:.0f} MiB in use") from error

    @property
    def used(self) -> float:
        """MiB in use now."""
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
