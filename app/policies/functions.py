"""Forward passes as pure functions of the Python array API, shared by serving, learning and tests."""

from collections.abc import Mapping
from typing import Any

import array_api_compat
import numpy as np

Array = Any


def namespace_of(x: Array) -> Any:
    """Return the array API namespace of ``x``: NumPy itself, or another library's by array_api_compat."""
    return np if isinstance(x, np.ndarray) else array_api_compat.array_namespace(x)


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """Compute x·weightᵀ + bias, [B, out], for B rows ``x`` [B, in], ``weight`` [out, in] and ``bias`` [out]."""
    return x @ weight.T + bias


def relu(x: Array) -> Array:
    """Compute max(x, 0), elementwise; by ``clip``, which is many times faster than ``where`` in NumPy and torch."""
    return x.clip(0.0)


def tanh(x: Array) -> Array:
    """Compute the hyperbolic tangent of each element, by the array's own library."""
    return namespace_of(x).tanh(x)


def dueling(value: Array, advantage: Array, mask: Array) -> Array:
    """Compute Q [B, N] of N actions in B rows: value [B, 1] plus advantage [B, N] less its mean over legal actions.

    ``mask`` [B, N] is True for legal actions (Wang et al. 2016, eq. 9)."""
    count = mask.sum(axis=1, keepdims=True, dtype=advantage.dtype)
    mean = (advantage * mask).sum(axis=1, keepdims=True) / count
    return value + advantage - mean


def mask_actions(values: Array, mask: Array) -> Array:
    """Return ``values`` [B, N] of N actions in B rows, −∞ where ``mask`` [B, N] is False."""
    xp = namespace_of(values)
    return xp.where(mask, values, -xp.inf)


ACTIVATIONS = {"relu": relu, "tanh": tanh}


def sigmoid(x: Array) -> Array:
    """Compute 1 / (1 + exp(−x)), elementwise, without overflow."""
    return 0.5 * namespace_of(x).tanh(0.5 * x) + 0.5


def gru_step(inputs: Array, memory: Array, arrays: Mapping[str, Array]) -> Array:
    """Compute one step of a gated recurrent unit (Cho et al., 2014): the next hidden state, [B, H].

    ``inputs`` [B, D] has D features in B rows, ``memory`` [B, H] the state of H units. ``arrays``: ``input.weight``
    [3H, D], ``input.bias`` [3H], ``memory.weight`` [3H, H] and ``memory.bias`` [3H], each for reset, update and new
    gate, in this order."""
    return gated_by(linear(inputs, arrays["input.weight"], arrays["input.bias"]), memory, arrays)


def gated_by(array: Array, memory: Array, arrays: Mapping[str, Array]) -> Array:
    """Compute the next hidden state [B, H] of ``gru_step``, cheaper for a whole sequence. ``array`` [B, 3H]: linear map
    of the inputs, with bias; ``memory`` [B, H]: present state; ``arrays``: ``memory.weight`` [3H, H] and
    ``memory.bias`` [3H]."""
    wide = memory.shape[1]
    recurrent = linear(memory, arrays["memory.weight"], arrays["memory.bias"])
    reset = sigmoid(array[:, :wide] + recurrent[:, :wide])
    update = sigmoid(array[:, wide : 2 * wide] + recurrent[:, wide : 2 * wide])
    new = namespace_of(array).tanh(array[:, 2 * wide :] + reset * recurrent[:, 2 * wide :])
    return new + update * (memory - new)


def masked_mean(hidden: Array, mask: Array) -> Array:
    """Average ``hidden`` [B, K, H] over the candidates with ``mask`` [B, K], to [B, 1, H]; 0 if there are none."""
    xp = namespace_of(hidden)
    legal = xp.astype(mask, hidden.dtype)[:, :, None]
    return xp.sum(hidden * legal, axis=1, keepdims=True) / xp.sum(legal, axis=1, keepdims=True).clip(1.0)


def attend(hidden: Array, mask: Array, query: Array, key: Array, value: Array) -> Array:
    """Compute dot-product attention of K candidates over those with ``mask`` [B, K]: ``hidden`` [B, K, H] → [B, K, H].

    ``query``, ``key`` and ``value`` are [H, H] (Vaswani et al. 2017, eq. 1, one head)."""
    xp = namespace_of(hidden)
    scores = (hidden @ query.T) @ xp.matrix_transpose(hidden @ key.T) / hidden.shape[2] ** 0.5
    scores = xp.where(mask[:, None, :], scores, xp.full_like(scores, -1e30))
    weights = xp.exp(scores - xp.max(scores, axis=2, keepdims=True))
    weights = weights * xp.astype(mask, hidden.dtype)[:, None, :]
    weights = weights / xp.sum(weights, axis=2, keepdims=True).clip(1e-30)
    return weights @ (hidden @ value.T)


def encode_candidates(observation: Array, mask: Array, arrays: Mapping[str, Array], config: Mapping[str, Any]) -> Array:
    """Encode F features of K candidates in B rows: ``observation`` [B, K, F] → [B, K, H], equivariant to their order.

    ``mask`` [B, K]: legal candidates. ``config``: ``layers``, widths of the network applied to each candidate;
    ``context``, the summary of all legal ones that is added: ``none``, their ``mean`` (Zaheer et al. 2017) or
    ``attention``; ``joint``, widths of the network over both. ``arrays``: ``each.{i}``, ``joint.{i}`` with ``.weight``
    and ``.bias``; for a context ``context.weight``; for attention ``query.weight``, ``key.weight``, ``value.weight``.
    """
    activation, hidden = ACTIVATIONS[config["activation"]], observation
    for i in range(len(config["layers"])):
        hidden = activation(linear(hidden, arrays[f"each.{i}.weight"], arrays[f"each.{i}.bias"]))
    history = None
    if config["context"] == "mean":
        history = masked_mean(hidden, mask)
    elif config["context"] == "attention":
        history = attend(hidden, mask, arrays["query.weight"], arrays["key.weight"], arrays["value.weight"])
    for i in range(len(config["joint"])):
        hidden = linear(hidden, arrays[f"joint.{i}.weight"], arrays[f"joint.{i}.bias"])
        if i == 0 and history is not None:
            hidden = hidden + history @ arrays["context.weight"].T
        hidden = activation(hidden)
    return hidden


def scores(observation: Array, mask: Array, arrays: Mapping[str, Array], config: Mapping[str, Any]) -> Array:
    """Compute scores [B, K] of K candidates with F features in B rows, ``observation`` [B, K, F]; equivariant to order.

    ``mask`` [B, K]: legal candidates. ``config`` and ``arrays``: those of ``encode_candidates``, with
    ``advantage.weight`` [1, H] and ``advantage.bias`` [1]. If ``config["advice"]`` is the range [start, stop] of a
    feature, of width one, that feature is added to the scores.
    """
    hidden = encode_candidates(observation, mask, arrays, config)
    result = linear(hidden, arrays["advantage.weight"], arrays["advantage.bias"])[:, :, 0]
    return result if config["advice"] is None else result + observation[:, :, config["advice"][0]]
