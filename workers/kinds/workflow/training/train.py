"""The training of a scheduler from traces, in chunks: PPO, search, a portfolio with its gate, an inspector, a verdict.

The traces are split in time: what is judged on lies after what was learned
from, so that no job of a sequence that is judged was seen before.
"""

from functools import partial
from typing import Any

import numpy as np

from app.kinds.workflow.policies.artifact import SHIPPED, Scheduler, load, save
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.dispatch import MECHANISMS
from app.kinds.workflow.scheduling.observation import FEATURES, STATE_WIDTH, WIDTH
from app.kinds.workflow.scheduling.rules import RULES, SJF
from app.kinds.workflow.spec import AGENT, Spec
from app.kinds.workflow.trace import Seconds, Trace, independent
from workers.evaluation.equivalence import MARGIN
from workers.inputs import Samples
from workers.kinds.workflow.simulator.agents import NETWORK, Agent, agent_of, networks, parameters
from workers.kinds.workflow.simulator.environment import Episode, WorkflowSimulator
from workers.kinds.workflow.training.gate import fitted, forked
from workers.kinds.workflow.training.judge import compiled, judge, measured, point_of, rule
from workers.kinds.workflow.training.objective import objective_weights
from workers.kinds.workflow.training.pictures import pictures
from workers.kinds.workflow.training.proximal import Proximal, named
from workers.kinds.workflow.training.search import Search, Settings, mixed
from workers.kinds.workflow.training.sequences import Sequence, Source, drawn, piece
from workers.kinds.workflow.training.widths import JOINT, WIDE
from workers.learning.execution import checkpoint as blob
from workers.learning.training.driver import Stage, TrainedAgent, Training
from workers.learning.training.request import Untrainable

FEWEST_TASKS = 64
LENGTH = 256  # tasks of a sequence, at most
LEARNING = 0.7  # share of a trace, in order of submission, that is learned from
BUDGET = 1_500_000  # picks
VALIDATED, FORKED, JUDGED = 16, 12, 40
PROXIMAL_SHARE = 0.3
LANES = 32
EFFORT = Settings(pairs=8, sequences=8)
KEPT = ("point", "best", "first", "second")
SEARCHED = 0.8  # share of the budget at which the inspector's search begins
SPREAD = 0.4  # of the first layers' random start, where the search begins


class SchedulerTrainer:
    """What the training of a scheduler does; see ``Trainer``.

    Args:
        spec: the workload's; its mechanism is the one that is learned for.
        traces: past executions by name; those of batch jobs on one machine.
        seed: of everything drawn.
        budget: tasks that are picked in simulations; None: as many as take about a minute.
        champion: the artifact that answers now; it must be beaten to be replaced.
        margin: of practical equivalence, in the verdict.

    Raises:
        Untrainable: there are too few tasks, or they do not fit on one machine.
    """

    def __init__(
        self,
        spec: Spec,
        traces: Samples,
        seed: int,
        budget: int | None = None,
        *,
        champion: bytes | None = None,
        margin: float = MARGIN,
    ) -> None:
        self.spec, self.seed, self.margin, self.objective = spec, seed, margin, objective_weights(spec)
        self.champion = SHIPPED.read_bytes() if champion is None and spec.strategy == AGENT else champion
        self.machine = max(node.processors for node in spec.nodes)
        name = spec.backfilling if spec.backfilling in MECHANISMS[:3] else "easy"
        self.mechanism = MECHANISMS.index(name)
        self.sources, self.unseen = self._split(traces)
        self.length = min(LENGTH, *(source.trace.tasks // 2 for source in self.sources))
        self.rng = np.random.default_rng(seed)
        self.budget, self.spent = budget or BUDGET, 0
        self.proximal: dict[str, Any] = {}
        self.search = self._searching(self._begin())
        self.inspecting: Search | None = None
        self.learner: Proximal | None = None

    def _split(self, traces: Samples) -> tuple[list[Source], list[Source]]:
        """What is learned from, and what is judged on."""
        learned, unseen = [], []
        for _, trace in traces:
            known = np.flatnonzero((trace.runtime >= 0) & (trace.processors <= self.machine))
            if len(known) < FEWEST_TASKS:
                continue
            filled = trace._replace(estimate=np.maximum(trace.expected, trace.runtime))
            filled = _chosen(filled, known)
            cut = int(LEARNING * filled.tasks)
            learned.append(Source(piece(filled, 0, cut), self.machine, bool((filled.user >= 0).any())))
            unseen.append(Source(piece(filled, cut, filled.tasks - cut), self.machine, False))
        if not learned:
            raise Untrainable(
                f"a scheduler is learned from at least {FEWEST_TASKS} finished tasks of one trace that fit on a node "
                f"of {self.machine} processors; the longest of {len(traces)} traces has "
                f"{max((trace.tasks for _, trace in traces), default=0)}"
            )
        return learned, unseen

    def _begin(self) -> Seconds:
        """Where the search begins: at the network that ships, or at one that adds nothing, whichever does better."""
        shipped = load(SHIPPED.read_bytes())
        options = [blank(self.rng), *([point_of(shipped)] if isinstance(shipped, ScorerPolicy) else [])]
        tried = self._sequences(self.sources, VALIDATED, np.random.default_rng(self.seed + 1))
        losses = [float(measured(network(point), tried).mean()) for point in options]
        self.started = "shipped" if losses[-1] < losses[0] else "base"
        return options[int(np.argmin(losses))]

    def _sequences(self, sources: list[Source], count: int, rng: np.random.Generator) -> list[Sequence]:
        found = []
        for i in range(count):
            source = sources[i % len(sources)]
            length = min(self.length, source.trace.tasks)
            found.append(Sequence(drawn(source, length, rng), self.machine, self.mechanism, self.objective))
        return found

    def _searching(self, start: Seconds) -> Search:
        validation = self._sequences(self.sources, VALIDATED, np.random.default_rng(self.seed + 1))
        draw = self._draw
        return Search(network, draw, validation, start, self.rng, EFFORT)

    def _draw(self, count: int) -> list[Sequence]:
        self.spent += count * self.length * (2 * EFFORT.pairs + 1)
        return self._sequences(self.sources, count, self.rng)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """See ``Trainer``; all share the budget."""
        ends = (0.0, PROXIMAL_SHARE, SEARCHED, 1.0)
        steps = {"proximal": self._proximal, "search": self._search, "inspector": self._inspect}
        return tuple(
            Stage(name, end - begin, step, partial(self._gone, begin, end))
            for (name, step), begin, end in zip(steps.items(), ends[:-1], ends[1:], strict=True)
        )

    def _gone(self, begin: float, end: float) -> float:
        """Share of the part of the budget between two shares of it that is spent."""
        return min(1.0, max(0.0, (self.spent / self.budget - begin) / (end - begin)))

    @property
    def eta_seconds(self) -> float | None:
        """Not told: chunks are short."""
        return None

    @property
    def live(self) -> dict[str, Any]:
        """The loss of the best so far over the base strategy's."""
        return {"ratio": self.search.ratio, "steps": self.search.steps}

    def _proximal(self) -> bool:
        """A rollout of PPO, which learns first. It is not part of checkpoints: it begins anew."""
        steps = int(PROXIMAL_SHARE * self.budget)
        self.learner = self.learner or self._learner(steps)
        self.learner.advance()
        self.spent = int(min(1.0, self.learner.progress) * steps)
        if self.learner.progress < 1.0:
            return False
        self._go_on_from(self.learner.parameters(), steps)
        return True

    def _learner(self, steps: int) -> Proximal:
        played = self._sequences(self.sources, LANES, self.rng)
        episodes = [Episode(s.trace, s.processors, s.mechanism, s.fill) for s in played]
        weights = (self.spec.weights.slowdown, self.spec.weights.wait)
        weights = weights if any(weights) else (1.0, 0.0)  # what else counts is not settled task by task
        simulator = WorkflowSimulator(episodes, LANES, network(self.search.point), self.seed, weights=weights)
        return Proximal(simulator, steps, self.seed)

    def _go_on_from(self, point: Seconds, steps: int) -> None:
        """Let the search go on from what PPO has found where it is better than the base strategy."""
        ratio = mixed(self.search.validation, self.search.measured(point), self.search.reference)
        self.proximal = {"ratio": ratio, "steps": steps}
        if ratio < self.search.ratio:
            self.search.point, self.search.best, self.search.ratio = point, point.copy(), ratio

    def _search(self) -> bool:
        """A step of the search for the network."""
        self.search.advance(min(1.0, self.spent / self.budget))
        return self.spent >= SEARCHED * self.budget

    def _inspect(self) -> bool:
        """A step of the search for an inspector of the best rule."""
        inspecting = self._inspector()
        inspecting.advance(min(1.0, self.spent / self.budget))
        return self.spent >= self.budget

    def _inspector(self) -> Search:
        """The search for it; it begins with one that accepts everything."""
        if self.inspecting is None:
            start = blank(self.rng)
            start[-1] = 0.3
            best = RULES.index(self._best_rule())
            nothing = np.zeros((1, parameters(WIDE, JOINT)))

            def build(point: Seconds) -> Agent:
                own = networks(point[None], WIDE, JOINT)
                return agent_of([best], networks(nothing, WIDE, JOINT), inspector=own)

            self.inspecting = Search(build, self._draw, self.search.validation, start, self.rng, EFFORT)
        return self.inspecting

    def _best_rule(self) -> str:
        scores = {name: float(measured(rule(name), self.search.validation).mean()) for name in RULES}
        return min(scores, key=lambda name: scores[name])

    def conclude(self) -> TrainedAgent:
        """Network, portfolio, inspector and best rule compete; the best is judged on jobs that none has seen."""
        scorer = scorer_of(self.search.best)
        best = StrategyPolicy({"rule": self._best_rule()})
        contenders: dict[str, Scheduler] = {"scorer": scorer, "strategy": best}
        portfolio, calibration = self._portfolio(scorer, best)
        contenders["portfolio"] = portfolio
        if self.inspecting is not None:
            contenders["inspector"] = InspectorPolicy(best, scorer_of(self.inspecting.best, advice=False))
        fresh = self._sequences(self.sources, VALIDATED, np.random.default_rng(self.seed + 2))
        scores = {name: float(measured(compiled(policy), fresh).mean()) for name, policy in contenders.items()}
        chosen = min(scores, key=lambda name: scores[name])
        artifact = save(contenders[chosen])
        unseen = self._sequences(self.unseen, JUDGED, np.random.default_rng(self.seed + 3))
        report = {"algorithm": chosen, "seed": self.seed, **self._judged(artifact, unseen)}
        report |= {"candidates": scores, "gate": calibration, "proximal": self.proximal, "picks": self.spent}
        report |= {"started_from": self.started}
        report |= {"curve": [list(point) for point in self.search.curve], "mechanism": MECHANISMS[self.mechanism]}
        report |= {"pictures": pictures(self.spec, unseen, artifact, report["best_heuristic"], self.champion)}
        return TrainedAgent(artifact, report)

    def _judged(self, artifact: bytes, unseen: list[Sequence]) -> dict[str, Any]:
        return judge(artifact, unseen, self.champion, answering=self.spec.strategy, margin=self.margin)

    def _portfolio(self, scorer: ScorerPolicy, best: StrategyPolicy) -> tuple[PortfolioPolicy, list[dict[str, float]]]:
        """The network, the best rule and the shortest first, the best of them first, with a fitted gate."""
        members: list[ScorerPolicy | StrategyPolicy] = [scorer, best]
        members += [] if best.name == RULES[SJF] else [StrategyPolicy({"rule": RULES[SJF]})]
        order = np.argsort([measured(compiled(m), self.search.validation).mean() for m in members])
        ranked = tuple(members[i] for i in order)
        ungated = PortfolioPolicy(ranked, np.zeros((len(ranked), STATE_WIDTH)), np.zeros(len(ranked)))
        rng = np.random.default_rng(self.seed + 4)
        forks = [forked(self._sequences(self.sources, FORKED, rng), compiled(ungated)) for _ in range(2)]
        gate = fitted(*forks)
        return PortfolioPolicy(ranked, gate.weights, gate.margin), gate.calibration

    def close(self) -> None:
        """Let go of nothing: it all is in this process."""

    def checkpoint(self) -> bytes:
        """Bytes to go on from; empty while PPO learns."""
        if not self.proximal:
            return b""
        found = {"search": self.search} | ({} if self.inspecting is None else {"inspecting": self.inspecting})
        arrays = {f"{name}.{key}": getattr(s, key) for name, s in found.items() for key in KEPT}
        progress = {name: [s.steps, s.ratio, s.curve] for name, s in found.items()}
        values = {"spent": self.spent, "told": progress, "proximal": self.proximal}
        return blob.pack(arrays, values | {"rng": self.rng.bit_generator.state})

    def restore(self, data: bytes) -> None:
        """Go on from a checkpoint of the same arguments."""
        arrays, values = blob.unpack(data)
        if "inspecting" in values["told"]:
            self._inspector()
        for name, (steps, ratio, curve) in values["told"].items():
            search: Search = getattr(self, name)
            search.steps, search.ratio, search.curve = steps, ratio, [(int(s), float(r)) for s, r in curve]
            for key in KEPT:
                setattr(search, key, arrays[f"{name}.{key}"])
        self.spent, self.proximal = values["spent"], values["proximal"]
        self.rng.bit_generator.state = values["rng"]


def training(
    spec: Spec,
    traces: Samples,
    seed: int,
    budget: int | None = None,
    checkpoint: bytes | None = None,
    *,
    champion: bytes | None = None,
) -> Training:
    """The training of a scheduler in this process; see ``SchedulerTrainer``."""
    return Training(SchedulerTrainer(spec, traces, seed, budget, champion=champion), checkpoint)


def blank(rng: np.random.Generator, wide: int = WIDE, joint: int = JOINT) -> Seconds:
    """A network that adds nothing to the base strategy, with first layers that can learn, [P]."""
    point, first, inner = np.zeros(parameters(wide, joint)), WIDTH * wide, wide * joint
    point[:first] = rng.normal(0.0, SPREAD, first)
    point[first + wide : first + wide + inner] = rng.normal(0.0, SPREAD, inner)
    return point


def network(point: Seconds, wide: int = WIDE, joint: int = JOINT) -> Agent:
    """An agent that asks the network of parameters [P]."""
    return agent_of([NETWORK], networks(point[None], wide, joint))


def scorer_of(point: Seconds, wide: int = WIDE, joint: int = JOINT, *, advice: bool = True) -> ScorerPolicy:
    """Parameters [P] as a policy."""
    config = {
        "algorithm": "scorer",
        "features": list(FEATURES),
        "layers": [wide],
        "joint": [joint],
        "context": "none",
        "activation": "relu",
        "advice": [0, 1] if advice else None,
    }
    return ScorerPolicy.build(config, {name: np.asarray(a) for name, a in named(point, wide, joint).items()})


def _chosen(trace: Trace, rows: Any) -> Trace:
    """Some of a trace's tasks, without parents."""
    columns = (trace.submit, trace.runtime, trace.estimate, trace.processors, trace.user)
    submit, runtime, estimate, processors, user = (column[rows] for column in columns)
    return independent(submit, runtime, estimate, processors, user)
