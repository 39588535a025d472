"""Steward over HTTP: registered, sampled, fitted and asked as a launcher would, a closed loop in real processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steward_demos.service import Json, RefusedError, Steward

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples import column_names
from benchmarks.held_out.engine import advice_of, features_told
from benchmarks.held_out.play import Advice, Learner, Policy, Report
from benchmarks.held_out.world import Floats, Profile

CALLERS, ATTEMPTS = 4, 2


def served(steward: Steward, training: Json | None = None) -> Learner:
    """Steward as it answers with a model, or, given what to say to ``POST …/agents``, after that training.

    Whether what was trained is promoted is the service's to say. Its runs are left unfinished, so none of what is
    judged on becomes a sample.
    """

    def learner(profile: Profile) -> Policy:
        return Served(steward, profile, training)

    return learner


class Served:
    """E runs of one workload of a running service, each reported and answered by itself.

    Attributes:
        agent: report of the agent that was trained, or why there is no model; else empty.
    """

    def __init__(self, steward: Steward, profile: Profile, training: Json | None) -> None:
        self.name, self.agent = "Steward", dict[str, Any]()
        self.layout, self._steward = Layout(profile.spec), steward
        self._workload = profile.spec.name + ("" if training is None else "-trained")
        steward.register(profile.spec.model_dump(mode="json") | {"name": self._workload})
        steward.upload(self._workload, as_csv(profile))
        try:
            self._follow(steward.fit(self._workload))
        except RefusedError as error:
            self.name, self.agent = "Steward, no model", {"problem": str(error)}
            return
        if training is not None:
            self._train(training)

    def _train(self, training: Json) -> None:
        """Train, and wait until a request sees who answers now; some targets can't be trained for."""
        try:
            version = self._follow(self._steward.train(self._workload, **training))["agent"]
        except RefusedError as error:
            self.name, self.agent = f"{self.name}, no agent", {"problem": str(error)}
            return
        self.agent = self._steward.agent(self._workload, version)
        champion = self._steward.call("GET", f"/workloads/{self._workload}/agents/{version}")["champion"]
        self.name += f", {self.agent['algorithm']}" + ("" if champion else " not promoted")
        while champion and self._steward.start(self._workload)["decision"]["agent"] != version:
            pass

    def _follow(self, job: str) -> Json:
        *_, ended = self._steward.follow(job)
        return dict(ended["result"])

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """Start E runs."""
        values = zip(features.tolist(), upcoming.tolist(), strict=True)
        starts = [{"workload": self._workload, **features_told(self.layout, *row)} for row in values]
        with ThreadPoolExecutor(CALLERS) as pool:
            started = list(pool.map(lambda start: self._steward.call("POST", "/runs", json=start), starts))
        self._runs = [one["id"] for one in started]
        return advice_of(self.layout, [one["decision"] for one in started])

    def next(self, report: Report) -> Advice:
        """Report an iteration of each."""
        columns = report.allocation, report.metrics, report.features, report.upcoming
        rows = zip(*(column.tolist() for column in columns), strict=True)
        bodies = [
            {
                "allocation": dict(zip(self.layout.resources, allocation, strict=True)),
                "metrics": dict(zip(self.layout.metrics, metrics, strict=True)),
                **features_told(self.layout, features, upcoming),
            }
            for allocation, metrics, features, upcoming in rows
        ]
        with ThreadPoolExecutor(CALLERS) as pool:
            put = pool.map(self._put, self._runs, [report.iteration] * len(bodies), bodies)
            return advice_of(self.layout, list(put))

    def _put(self, run: str, iteration: int, body: Json) -> Json:
        """Report; what timed out on a busy machine is said again, as a launcher would."""
        for _ in range(ATTEMPTS):
            try:
                return self._steward.report(run, iteration, body)
            except RefusedError as error:
                if not str(error).startswith("Timed out"):
                    raise
        return self._steward.report(run, iteration, body)


def as_csv(profile: Profile) -> str:
    """The executions as the service reads them."""
    lines = [",".join(column_names(Layout(profile.spec)))]
    for name, data in profile.executions.items:
        lines += [",".join([name, str(int(row[0])), *map(repr, row[1:].tolist())]) for row in data]
    return "\n".join(lines) + "\n"
