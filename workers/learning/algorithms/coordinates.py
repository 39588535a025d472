"""First layers of networks in coordinates in which every entry of an observation has mean 0 and deviation 1.

Entries that hardly vary, or vary around a number far from 0, make the loss steep along some directions of a first
layer and flat along others, which Adam can't tell apart, as it scales each parameter alone (LeCun et al., Efficient
BackProp, 1998, section 4.3). Parameters stay as they are published; only where they begin, and the optimiser's steps,
are those of a network that reads (observation − centre) / scale. So nothing else has to know.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from workers.learning.algorithms.config.shared import Network
from workers.learning.backends.base import Array, Backend, Layout

FIRST = "trunk.0.weight"


class Coordinates:
    """How flat vectors [P] go from one kind of coordinates to the other.

    Args:
        network: its `centre` and `scale`; without them both kinds are the same.
        layout: where each variable stands; a layer's bias follows its weight.
        backend: of the vectors.
    """

    def __init__(self, network: Network, layout: Layout, backend: Backend) -> None:
        self._xp: Any = backend.xp
        self._centre, self._scale = (
            backend.asarray(np.array(part, np.float32)) for part in (network.centre, network.scale)
        )
        firsts = [place for name, place in layout.items() if name.endswith(FIRST)] if network.centre else []
        self._layers = [(place.start, *shape) for place, shape in firsts]

    def published(self, flat: Array) -> Array:
        """Parameters as the network reads observations: of those in the other coordinates."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: (weight / scale, bias - weight @ (centre / scale)))

    def learned(self, flat: Array) -> Array:
        """Parameters in the other coordinates: of published ones."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: (weight * scale, bias + weight @ centre))

    def gradient(self, flat: Array) -> Array:
        """The gradient by parameters in the other coordinates: of that by published ones."""
        centre, scale = self._centre, self._scale
        return self._changed(flat, lambda weight, bias: ((weight - bias[:, None] * centre) / scale, bias))

    def _changed(self, flat: Array, change: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
        if not self._layers:
            return flat
        parts, at = [], 0
        for start, out, wide in self._layers:
            middle, end = start + out * wide, start + out * (wide + 1)
            weight, bias = change(flat[start:middle].reshape(out, wide), flat[middle:end])
            parts += [flat[at:start], weight.reshape(-1), bias]
            at = end
        return self._xp.concat([*parts, flat[at:]])
