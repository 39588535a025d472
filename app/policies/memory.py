"""What recurrent policies remember of a run between two reports, by the version of the agent.

Whoever decides for a run remembers for itself: the champion, and the shadow. Each sees a report once, so each advances
its own once; an agent that joins a run late remembers nothing of what came before.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Memory = NDArray[np.float32]
Memories = Mapping[int, Memory]
"""Hidden state [H] by the agent's version."""
NOTHING: Memories = MappingProxyType({})


def recalled(memories: Sequence[Memories], version: int | None) -> Memory | None:
    """What an agent remembers of B runs, [B, H], zeros where nothing; None where it remembers nothing of any."""
    if version is None or not any(memories):
        return None
    known = [one.get(version) for one in memories]
    width = next((len(one) for one in known if one is not None), 0)
    return np.array([np.zeros(width) if one is None else one for one in known], np.float32) if width else None


def kept(memories: Memories, versions: Iterable[int | None]) -> dict[int, Memory]:
    """Of these agents alone."""
    return {version: memories[version] for version in versions if version is not None and version in memories}


def stored(memories: Memories) -> dict[int, list[float]]:
    """As JSON has it."""
    return {version: memory.tolist() for version, memory in memories.items()}


def restored(given: Mapping[str, Any]) -> Memories:
    """Undo ``stored``, to the bit, once it has been through JSON."""
    return {int(version): np.array(memory, np.float32) for version, memory in given.items()}


def weight(memories: Memories) -> int:
    """Bytes of its numbers."""
    return sum(memory.nbytes for memory in memories.values()) if memories else 0
