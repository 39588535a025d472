"""Charts of policies that serve the same requests, for ``workers.evaluation.report.plots``.

Distributions are over all episodes. Courses over time, of the episode with the most requests, and policy maps compare a
few policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from workers.kinds.inference.evaluation.problem import GIVEN_UP, ServedRequests

Json = dict[str, Any]
Floats = NDArray[np.float64]
MOST_LINES = 6
"""Most policies, users or variants in one chart, for legibility."""
BINS = 40
RATES = 8
SHARES = np.concatenate([np.linspace(0, 0.98, 50), 1 - np.geomspace(0.015, 1e-3, 8)])
QUALITIES = np.linspace(0, 1, 101)
TITLE = "Requests, one by one"
TOLD = (
    "All requests of {episodes} episodes in which seeds alone differ, as each of these policies answers them; over "
    "time, the episode with the most requests, under {compared}."
)
WAITS, NOBODY = "waits", "dropped"
SLACK = 1e-9


def pictures(layout: Layout, played: Mapping[str, ServedRequests], compared: Sequence[str]) -> Json:
    """Make all charts of an evaluation, as JSON values.

    Args:
        layout: the workload's layout.
        played: recordings by policy's name, in display order, at least one; all with the same requests.
        compared: names of the policies charted over time and as a map.
    """
    shown = {name: played[name] for name in list(played)[:MOST_LINES]}
    beside = {name: played[name] for name in compared}
    requests = next(iter(played.values())).requests
    text = TOLD.format(episodes=len(requests.first), compared=" and ".join(compared))
    over_time = OverTime(layout, next(iter(played.values())))
    plots = [quality(shown), delay(shown), over_time.load()]
    plots += [over_time.quality(beside), over_time.variants(beside), over_time.batches(beside)]
    return {"title": TITLE, "told": text, "plots": [*plots, policy_map(layout, beside)]}


def quality(played: Mapping[str, ServedRequests]) -> Json:
    """Chart the share of requests with at least a given response quality (0…1), one line per policy."""
    panel = []
    for name, one in played.items():
        qualities = np.sort(one.quality)
        share = 1 - np.searchsorted(qualities, QUALITIES - SLACK) / max(len(qualities), 1)
        panel.append(_series(name, QUALITIES, share))
    return {
        "heading": "Response quality",
        "caption": "Share of the requests with a response quality of at least that; dropped requests have none",
        "form": "steps",
        "x": {"title": "response quality", "domain": [0, 1]},
        "y": {"title": "share of requests", "share": True, "domain": [0, 1]},
        "panels": [{"name": "", "series": panel}],
    }


def delay(played: Mapping[str, ServedRequests]) -> Json:
    """Chart the share of requests answered within a given number of seconds, one line per policy."""
    panel = []
    for name, one in played.items():
        answered = one.delay[~np.isnan(one.delay)]
        if len(answered):
            shares = np.append(SHARES, 1.0)
            panel.append(_series(name, np.quantile(answered, shares), shares * len(answered) / len(one.delay)))
    return {
        "heading": "Delay",
        "caption": "Share of the requests that are answered within that time; the rest of each line was dropped",
        "form": "lines",
        "x": {"title": "seconds from arrival to answer", "log": True},
        "y": {"title": "share of requests", "share": True, "domain": [0, 1]},
        "panels": [{"name": "", "series": panel}],
    }


class OverTime:
    """Charts of the episode with the most requests, in equal bins of arrival time.

    Args:
        layout: the workload's layout.
        one: any recording, for the requests.
    """

    def __init__(self, layout: Layout, one: ServedRequests) -> None:
        self.layout, episode = layout, one.requests.episode
        self.rows = np.flatnonzero(episode == np.bincount(episode, minlength=1).argmax())
        self.seconds = layout.spec.episode_seconds
        self.edges = np.linspace(0, self.seconds, BINS + 1)
        time = one.requests.time[self.rows]
        self.bin = np.minimum((time / self.seconds * BINS).astype(np.int64), BINS - 1)
        self.user = one.requests.user[self.rows]
        counts = np.bincount(self.user, minlength=len(layout.users))
        self.users = sorted(np.argsort(-counts, kind="stable")[:MOST_LINES].tolist())

    def load(self) -> Json:
        """Chart the requests per second by user over the episode."""
        wide = self.seconds / BINS
        series = [
            self._line(self.layout.users[user], np.bincount(self.bin[self.user == user], minlength=BINS) / wide)
            for user in self.users
        ]
        plot = self._plot("Load", "Requests a second, by user", "steps", "requests/s", [{"name": "", "series": series}])
        return {**plot, "y": {**plot["y"], "zero": True}}

    def quality(self, played: Mapping[str, ServedRequests]) -> Json:
        """Chart the mean response quality by user over the episode, one panel per policy."""
        panels = [
            {"name": name, "series": [self._line(*line) for line in self._qualities(one)]}
            for name, one in played.items()
        ]
        caption = "Mean response quality of the requests of each user, by when they came"
        plot = self._plot("Quality by user", caption, "steps", "response quality", panels)
        return {**plot, "y": {**plot["y"], "domain": [0, 1]}}

    def _qualities(self, one: ServedRequests) -> Iterator[tuple[str, Floats]]:
        result = one.quality[self.rows]
        for user in self.users:
            own = self.user == user
            yield self.layout.users[user], self._means(self.bin[own], result[own])

    def variants(self, played: Mapping[str, ServedRequests]) -> Json:
        """Chart the share of requests that each variant answers over the episode, one panel per policy."""
        panels = [{"name": name, "series": [*self._mix(one)]} for name, one in played.items()]
        plot = self._plot("Variants", "Variants that answer, by when the requests came", "areas", "requests", panels)
        return {**plot, "y": {**plot["y"], "share": True, "domain": [0, 1]}, "neutral": NOBODY}

    def _mix(self, one: ServedRequests) -> Iterator[Json]:
        total = np.maximum(np.bincount(self.bin, minlength=BINS), 1)
        result = one.variant[self.rows]
        used = np.argsort(-np.bincount(result[result != GIVEN_UP], minlength=len(self.layout.variants)), kind="stable")
        chosen = sorted(used[: MOST_LINES - 2].tolist())
        groups = {self.layout.variants[variant]: result == variant for variant in chosen}
        groups |= {"other variants": ~np.isin(result, [*chosen, GIVEN_UP]), NOBODY: result == GIVEN_UP}
        for name, own in ((name, own) for name, own in groups.items() if own.any()):
            yield self._line(name, np.bincount(self.bin[own], minlength=BINS) / total)

    def batches(self, played: Mapping[str, ServedRequests]) -> Json:
        """Chart the mean number of requests per batch over the episode, one line per policy."""
        series = []
        for name, one in played.items():
            size = one.size[self.rows]
            own = size > 0
            series.append(self._line(name, self._means(self.bin[own], size[own])))
        caption = "Requests that are answered at once, mean by when they came"
        return self._plot("Batches", caption, "steps", "requests in a batch", [{"name": "", "series": series}])

    def _means(self, where: NDArray[np.int64], values: NDArray[Any]) -> Floats:
        counts = np.bincount(where, minlength=BINS)
        total = np.bincount(where, values, minlength=BINS)
        return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)

    def _line(self, name: str, values: Floats) -> Json:
        """Make a step line of ``values`` [BINS] over seconds, with the last step extended to the end."""
        return _series(name, self.edges, np.append(values, values[-1]))

    def _plot(self, heading: str, caption: str, form: str, title: str, panels: Sequence[Json]) -> Json:
        axes = {"x": {"title": "seconds", "domain": [0, self.seconds]}, "y": {"title": title}}
        return {"heading": heading, "caption": caption, "form": form, **axes, "panels": list(panels)}


def policy_map(layout: Layout, played: Mapping[str, ServedRequests]) -> Json:
    """Chart the variant started most often and its mean batch size, by waiting requests and requests per second."""
    every = np.concatenate([one.decisions.rate for one in played.values()])
    low, high = np.quantile(every, [0.01, 0.99]) if len(every) else (0.0, 1.0)
    rates = np.linspace(low, max(high, low + SLACK), RATES + 1)
    most = max((int(one.decisions.waiting.max(initial=1)) for one in played.values()), default=1)
    sizes = 2 ** np.arange(int(np.log2(max(most, 1))) + 1)
    return {
        "heading": "Policy map",
        "caption": "The variant that is started most often, with the mean size of its batches, by waiting requests "
        "and arrivals; blank where no server was requested",
        "form": "tiles",
        "x": {"title": "requests/s"},
        "y": {"title": "waiting requests"},
        "columns": _between(rates),
        "rows": _doubling(sizes),
        "names": [*layout.variants, WAITS],
        "neutral": WAITS,
        "panels": [{"name": name, "cells": [*_cells(layout, one, rates, sizes)]} for name, one in played.items()],
    }


def _cells(layout: Layout, one: ServedRequests, rates: Floats, sizes: NDArray[np.int64]) -> Iterator[Json]:
    """Yield one policy's tiles, by bins between ``rates`` (requests/s) and of queues from each of ``sizes`` (requests)
    on."""
    decisions, columns, rows = one.decisions, _between(rates), _doubling(sizes)
    column = np.clip(np.searchsorted(rates, decisions.rate, side="right") - 1, 0, RATES - 1)
    row = np.searchsorted(sizes, np.maximum(decisions.waiting, 1), side="right") - 1
    for x, y in sorted(set(zip(column.tolist(), row.tolist(), strict=True))):
        own = (column == x) & (row == y)
        variant = int(np.bincount(decisions.variant[own] + 1, minlength=2).argmax()) - 1
        mean = decisions.size[own][decisions.variant[own] == variant].mean()
        named = WAITS if variant == GIVEN_UP else layout.variants[variant]
        yield {"x": columns[x], "y": rows[y], "name": named, "text": "" if variant == GIVEN_UP else f"{mean:.2g}"}


def _doubling(sizes: NDArray[np.int64]) -> list[str]:
    return [f"{size}" if size == 1 else f"{size}–{2 * size - 1}" for size in sizes.tolist()]


def _between(edges: Floats) -> list[str]:
    return [f"{low:.3g}–{high:.3g}" for low, high in pairwise(edges)]


def _series(name: str, x: NDArray[Any], y: NDArray[Any]) -> Json:
    """Convert a line through the points ``x``, ``y`` [n] to JSON values; NaN becomes None."""
    values = [None if np.isnan(value) else round(float(value), 5) for value in y]
    return {"name": name, "x": [round(float(value), 5) for value in x], "y": values}
