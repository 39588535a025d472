"""Forward passes as pure functions over the Python array API: one source for acting, learning and checking."""

from typing import Any

from array_api_compat import array_namespace

Array = Any


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """Affine map of ``x`` [B, in] by ``weight`` [out, in] and ``bias`` [out] → [B, out]."""
    return x @ weight.T + bias


def relu(x: Array) -> Array:
    """max(x, 0), elementwise; by ``clip``, which is many times faster than ``where`` in NumPy and torch."""
    return x.clip(0.0)


def tanh(x: Array) -> Array:
    """Hyperbolic tangent, elementwise."""
    return array_namespace(x).tanh(x)


def dueling(value: Array, advantage: Array, mask: Array) -> Array:
    """Value [B, 1] plus advantage [B, N] less its mean over the legal ``mask`` [B, N] (Wang et al. 2016, eq. 9)."""
    xp = array_namespace(advantage)
    legal = xp.astype(mask, advantage.dtype)
    mean = xp.sum(advantage * legal, axis=1, keepdims=True) / xp.sum(legal, axis=1, keepdims=True)
    return value + advantage - mean


def masked(values: Array, mask: Array) -> Array:
    """``values`` [B, N] with −∞ where ``mask`` [B, N] forbids."""
    xp = array_namespace(values)
    return xp.where(mask, values, xp.full_like(values, -xp.inf))


ACTIVATIONS = {"relu": relu, "tanh": tanh}
