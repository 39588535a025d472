"""Throughput of data-parallel training: gradient computation and synchronisation, partly overlapping.

Shapes: n measured steps. Source: Qiao et al., “Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep
Learning”, OSDI 2021.
"""

from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from typing_extensions import override

from workers.estimators.base import Floats, Inputs, Integers, Prediction, Predictor, collapse, from_logs, spread

SMALL = 1e-8
STEP = 1e-8  # of a forward difference
CLEARLY = 0.8
Batch = Literal["local", "global"]


class Parameters(NamedTuple):
    """Pollux's parameters: constant α (seconds) and slope β (seconds per unit) of a step's three parts, and overlap γ.

    Parts: computation (c; slope per example), synchronisation across nodes (n) and within a node (r; slopes per replica
    beyond the second). γ = 1 is no overlap, γ = 10 almost full overlap.
    """

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float


def computation_seconds(p: Parameters, batch: Floats) -> Floats:
    """Return T_acc [n], the seconds to compute the gradients of a ``batch`` [n] (examples per replica)."""
    return p.alpha_c + p.beta_c * batch


def network_seconds(p: Parameters, nodes: Floats, replicas: Floats) -> Floats:
    """Return T_net [n], the seconds to synchronise ``replicas`` [n] placed on ``nodes`` [n]."""
    across, within = nodes > 1, replicas > 1
    constant = np.where(across, p.alpha_n, np.where(within, p.alpha_r, SMALL))
    slope = np.where(across, p.beta_n, np.where(within, p.beta_r, SMALL))
    return np.asarray(constant + slope * np.maximum(replicas - 2, SMALL), np.float64)


def step_seconds(p: Parameters, nodes: Floats, replicas: Floats, batch: Floats) -> Floats:
    """Return an optimiser step's seconds [n], from counts ``nodes`` and ``replicas``, ``batch`` per replica, [n] each.

    They are (T_acc^γ + T_net^γ)^{1/γ}, with the seconds of computation T_acc and of synchronisation T_net.
    """
    computing, network = np.log(computation_seconds(p, batch)), np.log(network_seconds(p, nodes, replicas))
    return np.asarray(np.exp(np.logaddexp(p.gamma * computing, p.gamma * network) / p.gamma), np.float64)


def fit_parameters(
    nodes: Floats,
    replicas: Floats,
    batch: Floats,
    seconds: Floats,
    computing: Floats | None = None,
    start: Parameters | None = None,
) -> Parameters:
    """Fit parameters to step durations ``seconds`` [n], and, unless None, to their ``computing`` parts [n] in seconds.

    Each step has ``replicas`` [n] on ``nodes`` [n], and a ``batch`` [n] per replica. The fit minimises RMSLE + 1e-3
    (γ−1)² + 1e-2 Σ (β/α)² over γ and the logarithms of α and β by L-BFGS-B with forward differences, from ``start``,
    or else from three guesses. Durations are scaled by the longest step, so that the unit of time does not matter.
    """
    unit = float(seconds.max())
    seconds, computing = seconds / unit, None if computing is None else computing / unit
    bounds = [(np.log(SMALL), np.log(1e3))] * 6 + [(1.0, 10.0)]
    highest = np.array([high for _, high in bounds])

    def losses(points: Floats) -> Floats:  # [k, 7] → [k]
        p = Parameters._make([*np.exp(points[:, :6]).T[:, :, None], points[:, 6:]])
        logs = np.log(step_seconds(p, nodes, replicas, batch))  # [k, n]
        error = np.sqrt(np.mean((logs - np.log(seconds)) ** 2, axis=1) + 1e-12)
        if computing is not None:
            logs = np.log(computation_seconds(p, batch))
            error += np.sqrt(np.mean((logs - np.log(computing)) ** 2, axis=1) + 1e-12)
        ratios = np.minimum(np.exp(points[:, [3, 5]] - points[:, [2, 4]]), 1e3)
        return np.asarray(error + 1e-3 * (points[:, 6] - 1) ** 2 + 1e-2 * (ratios**2).sum(axis=1), np.float64)

    def loss(v: Floats) -> tuple[float, Floats]:
        steps = np.where(v + STEP > highest, -STEP, STEP)
        values = losses(np.vstack([v, v + np.diag(steps)]))
        return float(values[0]), (values[1:] - values[0]) / steps

    results = []
    for guess in _guesses(batch, seconds) if start is None else [_rescale_time(start, 1 / unit)]:
        first = np.append(np.log(np.maximum(guess[:6], SMALL)), guess[6])
        results.append(minimize(loss, first, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 150}))
    best = min(results, key=lambda result: float(result.fun)).x
    return _rescale_time(Parameters._make([*np.exp(best[:6]).tolist(), float(best[6])]), unit)


def _rescale_time(p: Parameters, factor: float) -> Parameters:
    """Return the parameters in another unit of time, all but γ multiplied by ``factor``."""
    return Parameters._make([*(factor * value for value in p[:6]), p.gamma])


def _guesses(batch: Floats, seconds: Floats) -> list[Parameters]:
    low, high = max(float(seconds.min()), 1e-9), float(seconds.max())
    size, most = max(float(np.median(batch)), 1e-9), max(float(batch.max()), 1e-9)
    shares = (0.02 * high, 0.2 * high)
    guesses = [Parameters(low / 2, low / 2 / size, net, 0.01 * high, net, 0.01 * high, 2.0) for net in shares]
    net, slope = 0.05 * low, 1e-3 * low
    return [*guesses, Parameters(0.9 * low, 0.9 * high / most, net, slope, net, slope, 2.0)]


class Throughput(Predictor):
    """Pollux's model on named columns: replicas, nodes (if any), and the batch size (if it is a feature).

    The batch size is per replica if its name contains “local”, in total if “global”, else whichever fits better;
    without such a feature the global batch is constant. A metric that behaves like a throughput (it grows with
    replicas, and its reciprocal fits clearly better) is modelled by its reciprocal.
    """

    name = "throughput"

    def __init__(self, inputs: Inputs, batch: Batch | None = None, start: Parameters | None = None) -> None:
        self.inputs, self.batch, self.start = inputs, batch, start
        nodes = [i for i, name in enumerate(inputs.resources) if any(w in name for w in ("node", "machine", "host"))]
        self.nodes = nodes[0] if nodes and len(inputs.resources) > 1 else None
        self.replicas = next(i for i in range(len(inputs.resources)) if i != self.nodes)
        sizes = [i for i, name in enumerate(inputs.features) if "batch" in name or "bsz" in name]
        self.size = len(inputs.resources) + sizes[0] if sizes else None

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.sd_ = np.inf
        for sign in (1.0, -1.0) if _grows(cells.X[:, self.replicas], cells.logs) else (1.0,):
            for batch in self._batches():
                columns = self._columns(cells.X, batch)
                p = fit_parameters(*columns, np.exp(sign * cells.logs), start=self.start)
                sd = spread(sign * np.log(step_seconds(p, *columns)) - cells.logs, 7)
                if sd < self.sd_ * (CLEARLY if sign < 0 else 1.0):
                    self.sd_, self.sign_, self.batch_, self.parameters_ = sd, sign, batch, p
        return self

    @override
    def predict(self, X: Floats) -> Prediction:
        logs = np.log(step_seconds(self.parameters_, *self._columns(X, self.batch_)))
        return from_logs(self.sign_ * logs, self.sd_)

    @override
    def frozen(self) -> "Throughput":
        return Throughput(self.inputs, getattr(self, "batch_", self.batch), getattr(self, "parameters_", self.start))

    def _batches(self) -> tuple[Batch, ...]:
        if self.batch is not None:
            return (self.batch,)
        if self.size is None:
            return ("global",)
        name = self.inputs.features[self.size - len(self.inputs.resources)]
        if "local" in name:
            return ("local",)
        return ("global",) if "global" in name else ("local", "global")

    def _columns(self, X: Floats, batch: Batch) -> tuple[Floats, Floats, Floats]:
        replicas = np.maximum(X[:, self.replicas], SMALL)
        nodes = np.ones(len(X)) if self.nodes is None else X[:, self.nodes]
        size = np.ones(len(X)) if self.size is None else np.maximum(X[:, self.size], SMALL)
        return nodes, replicas, size / replicas if batch == "global" else size


def _grows(replicas: Floats, logs: Floats) -> bool:
    """Return whether ``logs`` [n] and ln ``replicas`` [n] have positive covariance."""
    return float(((np.log(np.maximum(replicas, SMALL)) - np.log(np.maximum(replicas, SMALL)).mean()) * logs).sum()) > 0
