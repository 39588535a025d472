"""A gated recurrent network (torch), trained on the least absolute error: alone, or on what an ARIMA leaves."""

from __future__ import annotations

import numpy as np
import torch
from msgspec.structs import replace
from torch import nn

from app.kinds.forecasting.arima import Arima
from app.kinds.forecasting.gru import WINDOW, Gru, Weights, read
from app.kinds.forecasting.series import Floats, Series, scaled, seasons

UNITS, ROUNDS, BATCH, RATE, DECAY, DROPOUT = 16, 25, 32, 5e-3, 1e-3, 0.2
MEMBERS = 4
WARM = WINDOW // 3  # intervals of a window that only prepare
MOST = 20_000  # of the latest intervals are learned from
VALIDATION = 0.15


def fit_gru(series: Series, horizons: tuple[int, ...], seed: int, arima: Arima | None = None) -> Gru:
    """Networks that stop where the end of the series, which they don't learn from, is told best; the share of them is
    what errs least there.
    """
    values = scaled(series.counts)
    known = seasons(len(values), series.seconds)
    gru = Gru(horizons, known, float(values.mean()), float(values.std()) or 1.0, (), np.ones(len(horizons)), arima)
    return replace(gru, members=tuple(_trained(gru, series, seed + member) for member in range(MEMBERS)))


class Network(nn.Module):
    """See ``app.kinds.forecasting.gru.Weights``."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, UNITS, batch_first=True)
        self.drop = nn.Dropout(DROPOUT)
        self.head = nn.Linear(UNITS + inputs, outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        """[b, W, F] → [b, W, H]."""
        state, _ = self.gru(windows)
        return self.head(torch.cat([self.drop(state), windows], dim=-1))

    def exported(self) -> Weights:
        """As plain arrays."""
        named = [*(getattr(self.gru, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))]
        parts = [*named, self.head.weight, self.head.bias]
        return Weights(*(part.detach().double().numpy().copy() for part in parts))


def _trained(gru: Gru, series: Series, seed: int) -> Weights:
    torch.manual_seed(seed)
    inputs, wanted = _prepared(gru, series)
    length, warm = WINDOW, WARM
    count = len(inputs)
    if count < length:
        length, warm = count, count // 4
    first = min(max(gru.seasons, default=0), count // 4)
    held = int(count * (1 - VALIDATION))
    starts = np.arange(first, held - length + 1)
    network = Network(inputs.shape[1], wanted.shape[1])
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    rng = np.random.default_rng(seed)
    updates = max(len(starts) // (length - warm) // BATCH, 8)
    best, kept = np.inf, network.exported()
    x, y = torch.from_numpy(inputs).float(), torch.from_numpy(wanted).float()
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=ROUNDS * updates)
    for _ in range(ROUNDS):
        network.train()
        for _ in range(updates):
            at = rng.choice(starts, BATCH)[:, None] + np.arange(length)
            told = network(x[at])[:, warm:]
            loss = (told - y[at][:, warm:]).abs().nanmean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            scheduler.step()
        network.eval()
        with torch.no_grad():
            tail = slice(max(held - warm, 0), None)
            told = network(x[tail][None])[0]
            error = float((told - y[tail])[min(warm, held) :].abs().nanmean())
        if error < best:
            best, kept = error, network.exported()
    return kept


def _prepared(gru: Gru, series: Series) -> tuple[Floats, Floats]:
    values = scaled(series.counts)
    every = np.arange(len(values))
    inputs, base = read(gru, series, every)
    wanted = np.full(base.shape, np.nan)
    for column, ahead in enumerate(gru.horizons):
        wanted[: len(values) - ahead, column] = values[ahead:] - base[: len(values) - ahead, column]
    return inputs[-MOST:], (wanted / gru.spread)[-MOST:]
