"""NumPy's interface over a traced array, so that what is written once for NumPy is compiled too.

The functions of ``app.kinds`` are written for NumPy's speed: they reuse storage (``out=``, ``+=``, slices of one
array), which a compiler's immutable arrays don't have. A `Traced` gives it to them: it answers NumPy's own functions
(NEP 13 and NEP 18) with those of ``jax.numpy``, a write replaces the array that it holds, and a slice remembers whose
part it is, so that a write goes through to the whole. The compiler sees pure operations and fuses them.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.lib.mixins import NDArrayOperatorsMixin

Key = Any


class Traced(NDArrayOperatorsMixin):
    """A NumPy-like array whose values are known to the compiler only.

    Raises:
        TypeError: NumPy's function has no counterpart, or a value is asked for that is not known yet.
    """

    def __init__(self, value: Any, whole: "Traced | None" = None, key: Key = None) -> None:
        self._value, self._whole, self._key = value, whole, key

    @property
    def value(self) -> Any:
        """The array behind it, as it stands."""
        return self._value if self._whole is None else self._key.read(self._whole.value)

    def write(self, value: Any) -> None:
        """Replace all values, in the array's own type."""
        here = self.value
        value = jnp.broadcast_to(jnp.asarray(value), here.shape).astype(here.dtype)
        if self._whole is None:
            self._value = value
        else:
            self._whole.write(self._key.written(self._whole.value, value))

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy's."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """As NumPy's."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As NumPy's."""
        return np.dtype(self.value.dtype)

    @property
    def T(self) -> "Traced":  # noqa: N802  (NumPy's name)
        """As NumPy's: a view."""
        return Traced(None, self, _Turned())

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator["Traced"]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, key: Any) -> "Traced":
        key = plain(key)
        if _views(key):
            return Traced(None, self, _Part(key))
        return Traced(self.value[_indices(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        key, value, here = plain(key), plain(value), self.value
        if getattr(key, "dtype", None) == np.bool_:
            self.write(jnp.where(key, value, here))
        elif _views(key):
            self[key].write(value)
        else:
            self.write(here.at[_indices(key)].set(jnp.asarray(value).astype(here.dtype)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **given: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"{ufunc.__name__}.{method} can't be traced")
        (out,) = given.pop("out", (None,))
        given.pop("casting", None)
        found = getattr(jnp, ufunc.__name__)(*map(plain, inputs), **given)
        return _put(found, out)

    def __array_function__(self, function: Any, _: Any, inputs: Any, given: dict[str, Any]) -> Any:
        if function is np.copyto:
            return _copyto(*inputs, **given)
        out = given.pop("out", None)
        given = {name: _typed(name, plain(value)) for name, value in given.items()}
        if function is np.empty_like:
            return Traced(jnp.zeros(given.get("shape", self.shape), given.get("dtype", self.dtype)))
        found = getattr(jnp, function.__name__)(*_plain_all(inputs), **given)
        return _put(found, out)

    def astype(self, dtype: Any, *, copy: bool = True) -> "Traced":
        """As NumPy's, in the compiler's own width."""
        del copy
        return Traced(self.value.astype(_typed("dtype", dtype)))

    def copy(self, order: str = "C") -> "Traced":
        """As NumPy's."""
        del order
        return Traced(self.value)

    def take(self, indices: Any, axis: int | None = None) -> "Traced":
        """As NumPy's, for indices within bounds."""
        return Traced(jnp.take(self.value, plain(indices), axis=axis, mode="clip"))

    def reshape(self, *shape: Any) -> "Traced":
        """As NumPy's, copying."""
        return Traced(self.value.reshape(*shape))

    def sum(self, axis: int | None = None, out: "Traced | None" = None, *, keepdims: bool = False) -> Any:
        """As NumPy's."""
        return _put(self.value.sum(axis=axis, keepdims=keepdims), out)

    def max(self, axis: int | None = None) -> "Traced":
        """As NumPy's."""
        return Traced(self.value.max(axis=axis))

    def any(self, axis: int | None = None) -> "Traced":
        """As NumPy's."""
        return Traced(self.value.any(axis=axis))

    def __bool__(self) -> bool:
        raise TypeError("a traced value is not known before the program runs: use where, or a mask")


class _Part:
    """A slice of a whole."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def read(self, whole: Any) -> Any:
        return whole[self.key]

    def written(self, whole: Any, value: Any) -> Any:
        starts, shape = _block(self.key, whole.shape)
        return lax.dynamic_update_slice(whole, value.reshape(shape), starts)


class _Turned:
    """The whole, transposed."""

    @staticmethod
    def read(whole: Any) -> Any:
        return whole.T

    @staticmethod
    def written(_: Any, value: Any) -> Any:
        return value.T


def plain(value: Any) -> Any:
    """The array behind ``value``, if it is traced; parts of tuples and lists too."""
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, (tuple, list)) and not hasattr(value, "_make"):
        return type(value)(plain(part) for part in value)
    return value


def traced(value: Any) -> Any:
    """``value`` with every array in it traced: a NamedTuple of arrays, or an object that holds some, copied."""
    if isinstance(value, (np.ndarray, jax.Array)):
        return Traced(jnp.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(traced(part) for part in value)
    if isinstance(value, list):
        return [traced(part) for part in value]
    if isinstance(value, dict):
        return {name: traced(part) for name, part in value.items()}
    return value


def _plain_all(inputs: Any) -> list[Any]:
    return [plain(value) for value in inputs]


def _block(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """First index and extent along every axis of the part that ``key``, of whole numbers and slices, stands for."""
    given = key if isinstance(key, tuple) else (key,)
    spans = [
        part.indices(size) if isinstance(part, slice) else (int(part) % size, int(part) % size + 1, 1)
        for part, size in zip(given, shape, strict=False)
    ]
    if any(step != 1 for _, _, step in spans):
        raise TypeError(f"a write into every n-th entry can't be traced: {key}")
    spans += [(0, size, 1) for size in shape[len(given) :]]
    return [first for first, _, _ in spans], [last - first for first, last, _ in spans]


def _views(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(isinstance(part, (int, slice, np.integer)) for part in parts)


def _indices(key: Any) -> Any:
    return np.asarray(key, np.intp) if isinstance(key, list) else key


def _typed(name: str, value: Any) -> Any:
    return jax.dtypes.canonicalize_dtype(value) if name == "dtype" and value is not None else value


def _put(found: Any, out: Any) -> Any:
    if out is None:
        return Traced(found)
    if isinstance(out, tuple):
        (out,) = out
    out.write(found)
    return out


def _copyto(target: Traced, source: Any, where: Any = True) -> None:
    target.write(jnp.where(plain(where), plain(source), target.value))
