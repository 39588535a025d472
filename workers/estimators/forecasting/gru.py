"""Forecasts by a gated recurrent network (torch) of the counts or of an ARIMA's residuals, by absolute error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from msgspec.structs import replace
from torch import nn

from app.kinds.forecasting.families import WINDOW, Arima, Gru, Weights, network_inputs
from app.kinds.forecasting.series import Series, seasons

UNITS, ROUNDS, BATCH, RATE, DECAY, DROPOUT = 16, 25, 32, 5e-3, 1e-3, 0.2
MEMBERS = 4
WARM = WINDOW // 3  # intervals of a window without loss, to warm up the state
MOST = 20_000  # latest intervals to train on
VALIDATION = 0.15
LEAST_UPDATES = 8  # per round


def fit_gru(series: Series, horizons: tuple[int, ...], seed: int, arima: Arima | None = None) -> Gru:
    """Fit 4 networks (`MEMBERS`) to a series, each with the weights of least error on the series' held-out end.

    Args:
        series: counts per interval.
        horizons: numbers of intervals ahead.
        seed: seed of initial weights and batches.
        arima: model whose residuals are learned; None: the counts themselves.
    """
    values = series.scaled
    known = seasons(len(values), series.seconds)
    gru = Gru(horizons, known, float(values.mean()), float(values.std()) or 1.0, (), arima)
    return replace(
        gru, members=tuple(_train_network(gru, series, MEMBERS * seed + member) for member in range(MEMBERS))
    )


class Network(nn.Module):
    """GRU with a linear head: from F inputs per interval to H horizons per interval."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, UNITS, batch_first=True)
        self.drop = nn.Dropout(DROPOUT)
        self.head = nn.Linear(UNITS + inputs, outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """Predict standardised targets [b, W, H] at H horizons, from b windows [b, W, F] of W intervals, F inputs."""
        state, _ = self.gru(windows)
        return self.head(torch.cat([self.drop(state), windows], dim=-1))

    def exported(self) -> Weights:
        """Return a copy of the weights as float64 arrays, for inference without torch."""
        named = [*(getattr(self.gru, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))]
        parts = [*named, self.head.weight, self.head.bias]
        return Weights(*(part.detach().double().numpy().copy() for part in parts))


class Sequence(NamedTuple):
    """Data of n intervals: F inputs ``read`` [n, F]; standardised ``targets`` [n, H] at H horizons, NaN beyond the end.

    Intervals from ``first`` to before ``held_out`` are trained on; those from ``held_out`` on are held out.
    """

    read: torch.Tensor
    targets: torch.Tensor
    first: int
    held_out: int


def _train_network(gru: Gru, series: Series, seed: int) -> Weights:
    sequence = _training_sequence(gru, series)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(sequence.read.shape[1], sequence.targets.shape[1])
        return _fit_network(network, sequence, np.random.default_rng(seed))


def _fit_network(network: Network, sequence: Sequence, rng: np.random.Generator) -> Weights:
    """Train the network for 25 rounds; return its weights of the round with the least held-out error."""
    starts = np.arange(sequence.first, sequence.held_out - WINDOW + 1)
    updates = max(len(starts) // (WINDOW - WARM) // BATCH, LEAST_UPDATES)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=ROUNDS * updates)
    best, weights = np.inf, network.exported()
    for _ in range(ROUNDS):
        network.train()
        for _ in range(updates):
            at = torch.from_numpy(rng.choice(starts, BATCH)[:, None] + np.arange(WINDOW))
            _update(network, optimiser, sequence.read[at], sequence.targets[at])
            scheduler.step()
        error = _held_out(network, sequence)
        if error < best:
            best, weights = error, network.exported()
    return weights


def _update(network: Network, optimiser: torch.optim.Optimizer, read: torch.Tensor, wanted: torch.Tensor) -> None:
    loss = (network(read)[:, WARM:] - wanted[:, WARM:]).abs().nanmean()
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()


def _held_out(network: Network, sequence: Sequence) -> float:
    """Return the mean absolute error on the held-out intervals, in standard deviations of the series."""
    network.eval()
    tail = slice(sequence.held_out - WARM, None)
    with torch.no_grad():
        forecast_values = network(sequence.read[tail][None])[0]
    return float((forecast_values - sequence.targets[tail])[WARM:].abs().nanmean())


def _training_sequence(gru: Gru, series: Series) -> Sequence:
    values = series.scaled
    inputs, base = network_inputs(gru, series, np.arange(len(values)))
    wanted = np.full(base.shape, np.nan)
    for column, ahead in enumerate(gru.horizons):
        wanted[: len(values) - ahead, column] = values[ahead:] - base[: len(values) - ahead, column]
    forecasts = [torch.from_numpy(part[-MOST:]).float() for part in (inputs, wanted / gru.spread)]
    count = len(forecasts[0])
    first = min(max(gru.seasons, default=0), count // 4)
    return Sequence(forecasts[0], forecasts[1], first, int(count * (1 - VALIDATION)))
