"""Any component by itself, from samples of its input spaces."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.backends.base import Backend, flatten
from workers.learning.components.base import Component, Memory, Node
from workers.learning.spaces import Spaces, sample
from workers.learning.stages.bind import bind
from workers.learning.stages.complete import complete
from workers.learning.stages.compose import compose


def run_alone(
    component: Component, spaces: Spaces, backend: Backend, batch: int = 8, seed: int = 0, spread: float = 0.0
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Build one component alone and run it on samples of its input spaces; return inputs and outputs as NumPy arrays.

    The same seed gives the same inputs and variables on every backend. `spread` is the standard deviation of what is
    added to the variables' starting values: with it, a head that starts at zero says something too.
    """
    rng = np.random.default_rng(seed)
    inputs = {port: sample(spaces[port], batch, rng) for port in component.takes}
    node = Node("alone", component, {port: port for port in component.takes})
    bound = bind(complete(compose(component.takes, [node]), spaces), backend, rng)
    start = flatten({name: backend.to_numpy(view) for name, view in bound.stores["online"].views.items()})
    drawn = (start + spread * rng.standard_normal(len(start))).astype(np.float32)
    own = {"online": backend.cut(bound.stores["online"].layout, backend.asarray(drawn))}
    ports = tuple(component.results()) or tuple(component.gives(spaces))
    on_host = isinstance(component, Memory)
    feeds = {port: value if on_host else backend.asarray(value) for port, value in inputs.items()}
    with backend.without_gradient():
        found = bound.run(tuple(f"alone.{port}" for port in ports), feeds, own)
    values = {port: found[f"alone.{port}"] for port in ports}
    return inputs, {port: value if on_host else backend.to_numpy(value) for port, value in values.items()}
