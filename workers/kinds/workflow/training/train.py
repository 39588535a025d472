"""Training of schedulers: a search for priorities, the choice among candidates, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from app.kinds.workflow.policies import SHIPPED, PriorityPolicy, Scheduler, StrategyPolicy, load, save
from app.kinds.workflow.run_times import Predictor
from app.kinds.workflow.scheduling.dispatch import CONSERVATIVE, MECHANISMS
from app.kinds.workflow.scheduling.planning import AGEING, PREDICTION, SAF, WEIGHTS
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.spec import AGENT, Spec
from app.kinds.workflow.trace import Seconds, Trace, select_tasks
from workers.evaluation.headroom import Headroom, knowable_returns, share_won
from workers.evaluation.statistics import MARGIN, mean_interval
from workers.inputs import Samples
from workers.kinds.workflow.evaluation.episodes import distort_estimates
from workers.kinds.workflow.run_times import predict_traces, refit
from workers.kinds.workflow.training.judge import judge, pictures
from workers.kinds.workflow.training.sequences import (
    Sequence,
    Source,
    draw_sequence,
    least_loss,
    measure_losses,
    objective_weights,
    piece,
    pieces,
)
from workers.learning.execution import base as blob
from workers.learning.training.driver import Stage, TrainedAgent, Training
from workers.learning.training.request import Untrainable

# A search for priorities on the exact objective: the cross-entropy method (Rubinstein 1999).
#
# Candidates are drawn around the previous elite, and played on common sequences. Each is scored by the mean log ratio
# of its losses to those of the initial weights, in which heavy sequences don't dominate.


POPULATION, ELITE, SEQUENCES = 16, 5, 12
SPREAD = (0.25, 0.25, 0.15, 1.5, 0.3, 0.4, 0.3)  # first deviations, in the order of ``priority.NAMES``
NARROWEST = 0.1  # smallest share of the initial spread
INERTIA = 0.3


class Search:
    """A cross-entropy search for the priority weights of one backfilling mechanism.

    Args:
        weights: initial weights, [``WEIGHTS``].
        draw: function that draws a given number of sequences.
        mechanism: index into ``MECHANISMS``.
        rng: random generator.

    Attributes:
        middle: mean of the next candidates, [``WEIGHTS``].
        spread: standard deviation of the next candidates, [``WEIGHTS``].
        curve: after each generation, the number of candidates played, and the geometric mean over its elite of the
            ratio of losses to those of the initial weights.
    """

    def __init__(
        self, weights: Seconds, draw: Callable[[int], list[Sequence]], mechanism: int, rng: np.random.Generator
    ) -> None:
        self.start, self.draw, self.mechanism, self.rng = weights.copy(), draw, mechanism, rng
        self.middle, self.spread = weights.copy(), np.array(SPREAD)
        self.steps, self.curve = 0, [(0, 1.0)]

    def policy(self, weights: Seconds) -> PriorityPolicy:
        """Make the policy that has the same ``weights`` [``WEIGHTS``] under the mechanisms none, rls and easy."""
        return PriorityPolicy(np.tile(weights, (3, 1)))

    def advance(self) -> None:
        """Play one generation of candidates, and move towards its elite."""
        played = self.draw(SEQUENCES)
        reference = measure_losses(self.policy(self.start), played)
        drawn = clip_weights(self.middle + self.spread * self.rng.normal(size=(POPULATION, WEIGHTS)))
        drawn[0] = self.middle
        ratios = [float(np.log(measure_losses(self.policy(one), played) / reference).mean()) for one in drawn]
        elite = drawn[np.argsort(ratios)[:ELITE]]
        self.middle = INERTIA * self.middle + (1.0 - INERTIA) * elite.mean(axis=0)
        shrunk = INERTIA * self.spread + (1.0 - INERTIA) * elite.std(axis=0)
        self.spread = np.maximum(shrunk, NARROWEST * np.array(SPREAD))
        self.steps += 1
        self.curve.append((self.steps * POPULATION, float(np.exp(np.mean(sorted(ratios)[:ELITE])))))


def clip_weights(weights: Seconds) -> Seconds:
    """Clip candidates' weights [n, ``WEIGHTS``] in place: ageing ≥ 0, trust in predictions 0…1.2."""
    weights[:, AGEING] = np.maximum(weights[:, AGEING], 0.0)
    weights[:, PREDICTION] = np.clip(weights[:, PREDICTION], 0.0, 1.2)
    return weights


# The training in chunks: headroom, search, choice, verdict.
#
# Each trace is split in time: data for the choice follow those of the search, and data for the verdict follow both, so
# no job is used twice. Choice and verdict use disjoint pieces.


FEWEST_TASKS = 64
LENGTH = 1_000  # most tasks of a sequence
SEARCHED, CHOSEN = 0.5, 0.7  # shares of a trace, by submission, at which search and choice end
BUDGET = 5_000_000  # simulated tasks
KEPT = ("middle", "spread", "start")


class Compared(NamedTuple):
    """The headroom (gain that is still possible), and the best rule's returns on the N sequences of the final
    judgement, with planned (``tuned``) and with true run times (``knowing``), [N] each."""

    room: Headroom
    tuned: Seconds
    knowing: Seconds


class SchedulerTrainer:
    """The ``Trainer`` of schedulers.

    Each trace is split by time: into tasks for the search, for the choice of an agent, and for the judgement of it.

    Args:
        spec: the workload's spec; the agent is trained for its backfilling mechanism.
        traces: (name, past execution) pairs. Their finished tasks that fit on the largest node are used, as independent
            jobs on that node; a trace with fewer than 64 of them is not used.
        seed: seed of all draws.
        budget: number of tasks to simulate in the search; None: 5 million, about a minute's worth.
        champion: the serving artifact, which a new one must beat; None: there is none, or the shipped agent serves.
        margin: margin of practical equivalence in the judgement, as a share of the best rule's loss.
        predictor: predictor of run times that the service plans with; it is refitted to the tasks before those of the
            judgement. None: the service uses users' estimates.
        force: whether to search even if the rules' return can be improved by less than the margin.

    Raises:
        Untrainable: backfilling is conservative, or no trace can be used."""

    def __init__(
        self,
        spec: Spec,
        traces: Samples,
        seed: int,
        budget: int | None = None,
        *,
        champion: bytes | None = None,
        margin: float = MARGIN,
        predictor: Predictor | None = None,
        force: bool = False,
    ) -> None:
        self.spec, self.seed, self.margin, self.objective = spec, seed, margin, objective_weights(spec)
        self.predictor, self.force = predictor, force
        self.champion = SHIPPED.read_bytes() if champion is None and spec.strategy == AGENT else champion
        self.machine = max(node.processors for node in spec.nodes)
        if spec.backfilling not in MECHANISMS[:CONSERVATIVE]:
            raise Untrainable(
                f"backfilling {spec.backfilling!r}: no agent is trained for it, because none can be judged as it would "
                f"be served; agents are trained for {', '.join(MECHANISMS[:CONSERVATIVE])}"
            )
        self.mechanism, self.fill = MECHANISMS.index(spec.backfilling), RULES.index(spec.backfill_order or "fcfs")
        self.parts = self._split(traces)
        self.length = min(LENGTH, *(source.trace.tasks // 2 for source in self.parts[0]))
        self.rng = np.random.default_rng(seed)
        self.budget, self.spent = budget or BUDGET, 0
        self.shipped = load_shipped_policy()
        self.search = Search(self.shipped.under(self.mechanism), self._draw, self.mechanism, self.rng)
        self.begun, self.already = perf_counter(), 0

    def _split(self, traces: Samples) -> tuple[list[Source], list[Source], list[Source]]:
        """Split each trace by submission into sources for search (50 % of tasks), choice (20 %) and judgement (30 %).

        Raises:
            Untrainable: no trace has 64 finished tasks that fit on a node.
        """
        columns: tuple[list[Source], list[Source], list[Source]] = ([], [], [])
        usable: list[Trace] = []
        most = 0
        for _, trace in traces:
            known = (trace.runtime >= 0) & (trace.processors <= self.machine)
            most = max(most, int(known.sum()))
            if known.sum() < FEWEST_TASKS:
                continue
            usable.append(select_tasks(trace, known))
        for one in self._predict_run_times(usable):
            cuts = [0, int(SEARCHED * one.tasks), int(CHOSEN * one.tasks), one.tasks]
            for part, begin, end in zip(columns, cuts[:-1], cuts[1:], strict=True):
                users = bool((one.user >= 0).any())
                part.append(Source(piece(one, begin, end - begin), self.machine, users))
        if not columns[0]:
            raise Untrainable(
                f"a scheduler is learned from at least {FEWEST_TASKS} finished tasks of one trace that fit on a node "
                f"of {self.machine} processors; the longest of {len(traces)} traces has {most}"
            )
        return columns

    def _predict_run_times(self, traces: list[Trace]) -> list[Trace]:
        """Predict the traces' run times by a predictor that is not fitted to the part for the final judgement."""
        if self.predictor is None:
            return predict_traces(traces, Predictor())
        before = [select_tasks(trace, slice(int(CHOSEN * trace.tasks))) for trace in traces]
        return predict_traces(traces, refit(self.predictor, before))

    def _sequence(self, trace: Trace) -> Sequence:
        return Sequence(trace, self.machine, self.mechanism, self.fill, self.objective)

    def _draw(self, count: int) -> list[Sequence]:
        sources = [self.parts[0][i % len(self.parts[0])] for i in range(count)]
        return [self._sequence(draw_sequence(source, self.length, self.rng)) for source in sources]

    def _pieces(self, part: int) -> list[Sequence]:
        return [self._sequence(trace) for source in self.parts[part] for trace in pieces(source, LENGTH)]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The training's stages: the headroom is measured; then the search, until the budget of tasks is used."""
        return (
            Stage("planning", 0.0, self._plan, lambda: 0.0),
            Stage("search", 1.0, self._search, self._share),
        )

    def _plan(self) -> bool:
        """Measure the headroom (the gain that is still possible); return True, as the stage is done."""
        return self.compared is not None

    @cached_property
    def _rule_losses(self) -> dict[str, Seconds]:
        """Losses of each rule, by name, on the N sequences for the choice of an agent, [N] each."""
        return self._measure_rules(1)

    def _measure_rules(self, part: int) -> dict[str, Seconds]:
        played = self._pieces(part)
        return {name: measure_losses(StrategyPolicy({"rule": name}), played) for name in RULES}

    @cached_property
    def compared(self) -> Compared:
        """Returns on the sequences of the final judgement of the default policy, of the best rule on all earlier data,
        and of that rule with true run times."""
        before = self._measure_rules(0)
        best = min(RULES, key=lambda name: float(np.concatenate([before[name], self._rule_losses[name]]).mean()))
        rule, unseen = StrategyPolicy({"rule": best}), self._pieces(2)
        known = [one._replace(trace=distort_estimates(one.trace, 0.0)) for one in unseen]
        tuned = -measure_losses(rule, unseen)
        knowing = knowable_returns(-measure_losses(rule, known), tuned)
        name = self.spec.strategy if self.spec.strategy in RULES else best  # as in the verdict
        served: Scheduler = StrategyPolicy({"rule": name})
        if self.spec.strategy == AGENT:
            name, served = "shipped", self.shipped
        room = Headroom.of(
            name,
            -measure_losses(served, unseen),
            tuned,
            knowing,
            margin=self.margin,
            beyond=np.array([-least_loss(one) for one in unseen]) - tuned,
            knows="the true run times",
            best=best,
            published=False,
        )
        return Compared(room, tuned, knowing)

    def _share(self) -> float:
        return min(1.0, self.spent / self.budget)

    @property
    def eta_seconds(self) -> float | None:
        """Estimated seconds until the search ends; None before its first generation."""
        gone = self.spent - self.already
        return (perf_counter() - self.begun) / gone * max(self.budget - self.spent, 0) if gone else None

    @property
    def live(self) -> dict[str, Any]:
        """``ratio`` of the best candidates' loss to the initial weights', and ``steps``: candidates tried."""
        tried, ratio = self.search.curve[-1]
        return {"ratio": ratio, "steps": tried}

    def _search(self) -> bool:
        over = self.spent >= self.budget  # as in a checkpoint from the search's end
        if over or (self.compared.room.nothing_to_win() and not self.force):
            return True
        self.search.advance()
        self.spent += (POPULATION + 1) * SEQUENCES * self.length
        return self.spent >= self.budget

    def conclude(self) -> TrainedAgent:
        """Choose the agent, and judge it on jobs that neither search nor choice used. The report is JSON-like.

        Raises:
            IncompatibleArtifact: the champion can't be read.
        """
        chosen, evidence = self._choose_policy()
        artifact = save(chosen)
        unseen = self._pieces(2)
        report = {
            "algorithm": chosen.name,
            "seed": self.seed,
            **judge(artifact, unseen, self.champion, answering=self.spec.strategy, margin=self.margin),
        }
        room, won = self.compared.room.report(), -measure_losses(chosen, unseen)
        share = share_won(won, self.compared.tuned, self.compared.knowing)
        report |= {"headroom": {**room, "agent": mean_interval(won), "share_won": share}}
        report |= {"candidates": evidence, "tasks": self.spent, "mechanism": MECHANISMS[self.mechanism]}
        report |= {"curve": [list(point) for point in self.search.curve]}
        report |= {"pictures": pictures(self.spec, unseen, artifact, report["best_heuristic"], self.champion)}
        return TrainedAgent(artifact, report)

    def _choose_policy(self) -> tuple[Scheduler, dict[str, float]]:
        """Return the shipped agent, or the tuned one or a rule if surely (95 %) better; and all mean losses by name."""
        played = self._pieces(1)
        weights = self.shipped.weights.copy()
        weights[self.mechanism] = self.search.middle
        contenders: dict[str, Scheduler] = {"shipped": self.shipped, "tuned": PriorityPolicy(weights)}
        losses = {name: measure_losses(policy, played) for name, policy in contenders.items()} | self._rule_losses
        contenders |= {name: StrategyPolicy({"rule": name}) for name in RULES}
        best = "shipped"
        for name in ("tuned", *RULES):
            ahead = _ahead(losses[name], losses["shipped"], len(contenders) - 1)
            if ahead and losses[name].mean() < losses[best].mean():
                best = name
        return contenders[best], {name: float(values.mean()) for name, values in losses.items()}

    def close(self) -> None:
        """Do nothing: the training holds no resources."""

    def checkpoint(self) -> bytes:
        """Serialise the state of the search."""
        arrays = {key: getattr(self.search, key) for key in KEPT}
        values = {"spent": self.spent, "steps": self.search.steps, "curve": self.search.curve}
        return blob.pack(arrays, values | {"rng": self.rng.bit_generator.state})

    def restore(self, data: bytes) -> None:
        """Continue from a checkpoint of a trainer with the same arguments.

        Raises:
            CheckpointError: the bytes are broken.
        """
        arrays, values = blob.unpack(data)
        for key in KEPT:
            setattr(self.search, key, arrays[key])
        self.search.steps = values["steps"]
        self.search.curve = [(int(tried), float(ratio)) for tried, ratio in values["curve"]]
        self.spent = self.already = values["spent"]
        self.rng.bit_generator.state = values["rng"]


def load_shipped_policy() -> PriorityPolicy:
    """Load the priority policy in this package; smallest area first if the package has another kind of policy."""
    policy = load(SHIPPED.read_bytes())
    return policy if isinstance(policy, PriorityPolicy) else PriorityPolicy(np.tile(np.array(SAF), (3, 1)))


def _ahead(losses: Seconds, others: Seconds, tests: int) -> bool:
    """Return whether ``losses`` [N] are lower on average than ``others`` [N] with 95 % confidence, Bonferroni over
    ``tests``; False for fewer than two."""
    if len(losses) < 2:
        return False
    from scipy.special import stdtrit

    differences = losses - others
    error = float(differences.std(ddof=1)) / len(differences) ** 0.5
    bound = float(stdtrit(len(differences) - 1, 1.0 - 0.05 / tests))
    return mean_interval(differences)["mean"] + bound * error < 0.0


def training(
    spec: Spec,
    traces: Samples,
    seed: int,
    budget: int | None = None,
    checkpoint: bytes | None = None,
    *,
    champion: bytes | None = None,
) -> Training:
    """Make the ``Training`` of a scheduler in this process.

    Args:
        spec: the workload's spec.
        traces: past executions by name.
        seed: seed of all draws.
        budget: number of simulated tasks; None: 5 million, about a minute's worth.
        checkpoint: state of an interrupted training to resume; None: begin anew.
        champion: the serving artifact, which a new one must beat; None: there is none.

    Raises:
        Untrainable: backfilling is conservative, or too few tasks fit on one node.
        CheckpointError: the checkpoint can't be read.
    """
    return Training(SchedulerTrainer(spec, traces, seed, budget, champion=champion), checkpoint)
