"""What a compiled loop is made of besides array functions: repetition, choice, storage that is written to, and luck.

Only for programs of the jax backend; everything here is traced.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as xp
import numpy as np
from jax import lax
from jax.experimental.compilation_cache import compilation_cache

Array = Any
Tree = Any
"""A pytree of arrays: a NamedTuple, dict, list or array."""


def program(function: Callable[..., Any], *, given_up: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Compile a function of trees, once for their shapes; arguments `given_up` may be overwritten by the result."""
    return jax.jit(function, donate_argnums=given_up)


def repeat(count: Array, body: Callable[[Array, Tree], Tree], carry: Tree) -> Tree:
    """Apply `body(index, carry)` `count` times; `count` need not be known when it is compiled."""
    return lax.fori_loop(0, count, body, carry)


def gather(count: int, body: Callable[[Tree], tuple[Tree, Tree]], carry: Tree) -> tuple[Tree, Tree]:
    """Apply `body(carry)`, which gives a carry and a slab, `count` times; also return the slabs, [count, …]."""
    return lax.scan(lambda kept, _: body(kept), carry, None, length=count)


def choose(condition: Array, then: Callable[[Tree], Tree], carry: Tree) -> Tree:
    """Apply `then` where the condition holds, else leave the carry as it is."""
    return lax.cond(condition, then, lambda kept: kept, carry)


def put(ring: Array, place: Array, value: Array) -> Array:
    """The ring [K, …] with `value` […] at `place`."""
    return lax.dynamic_update_index_in_dim(ring, value.astype(ring.dtype), place, 0)


def at(values: Array, index: Array) -> Array:
    """The row at an index."""
    return lax.dynamic_index_in_dim(values, index, 0, keepdims=False)


def rows(values: Array, index: Array) -> Array:
    """Rows at indices that are within bounds."""
    return values.at[index].get(mode="promise_in_bounds")


def luck(seed: int) -> Array:
    """The state of a generator."""
    return jax.random.key_data(jax.random.key(seed))


class Draws:
    """What is drawn in one go from a generator; `left` is its state afterwards."""

    def __init__(self, state: Array, count: int) -> None:
        self.left, *self._keys = jax.random.split(jax.random.wrap_key_data(state), count + 1)
        self.left = jax.random.key_data(self.left)

    def normal(self, *shape: int) -> Array:
        """From the standard normal distribution."""
        return jax.random.normal(self._keys.pop(), shape)

    def uniform(self, *shape: int) -> Array:
        """From [0, 1)."""
        return jax.random.uniform(self._keys.pop(), shape)

    def below(self, bound: Array, *shape: int) -> Array:
        """Whole numbers from 0 to below the bound (less than 2²⁴)."""
        drawn = xp.floor(self.uniform(*shape) * bound).astype(xp.int32)
        return xp.minimum(drawn, bound - 1)

    def order(self, count: int) -> Array:
        """The numbers below `count`, shuffled."""
        return jax.random.permutation(self._keys.pop(), count)


def leaves(tree: Tree) -> list[np.ndarray[Any, Any]]:
    """The arrays of a tree on the host, in an order that depends on its structure alone."""
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def rebuilt(tree: Tree, values: list[np.ndarray[Any, Any]]) -> Tree:
    """A tree of the same structure from other `leaves`."""
    like, structure = jax.tree.flatten(tree)
    found = [xp.asarray(value).reshape(old.shape) for value, old in zip(values, like, strict=True)]
    return jax.tree.unflatten(structure, found)


def on_device(tree: Tree) -> Tree:
    """The tree, its arrays on the device."""
    return jax.tree.map(xp.asarray, tree)


def keep_programs(folder: Path | None) -> None:
    """Keep compiled programs in a folder (or no longer): who needs one again reads it in a fraction of the time."""
    compilation_cache.reset_cache()  # else the folder that was set first stays
    jax.config.update("jax_compilation_cache_dir", None if folder is None else str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
