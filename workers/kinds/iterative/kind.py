"""The learning half of kind ``iterative`` as one object, whose methods import what they need when they are called."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workers.kinds.contract import Evaluation, FittedModel
from workers.kinds.simulated import SimulatedKind

if TYPE_CHECKING:
    from app.kinds.contract.policy import Policy
    from app.kinds.iterative.model import ModelTable
    from workers.evaluation.wrappers import World
    from workers.inputs import Conditions, HoldOut, LoggedRun, Samples, Workload
    from workers.kinds.iterative.training import IterativeTraining
    from workers.learning.simulator import Simulator
    from workers.learning.training.driver import PlannedPolicy
    from workers.learning.training.request import Request


logger = logging.getLogger(__name__)


class Iterative(SimulatedKind):
    """The learning half of kind ``iterative``; methods raise IncompatibleModel for a domain model they can't read."""

    name = "iterative"
    reads_runs = True

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        """Fit the response of metrics to allocations, and choose the heuristic that decides where there is no agent.

        A failed comparison of heuristics is logged, and model-predictive control is taken.

        Raises:
            TooLittleData: fewer than two executions, or durations that never differ.
            CriterionMissed: a simulated iteration takes longer than the spec allows.
            EstimationError: a metric is not greater than 0 everywhere.
        """
        from app.kinds.iterative.layout import Layout
        from app.kinds.iterative.prior import prior_table
        from workers.kinds.iterative.fit import fit_domain_model
        from workers.kinds.iterative.grid import Executions, whole_iterations
        from workers.kinds.iterative.judge import chosen_rule

        layout = Layout(workload.spec)
        samples = whole_iterations(layout, workload.samples, prior_table(layout))
        fitted = fit_domain_model(workload.spec, Executions(tuple(samples)), seed)
        if samples is not workload.samples:  # once more, by what is known of their segments now
            samples = whole_iterations(layout, workload.samples, fitted.table)
            fitted = fit_domain_model(workload.spec, Executions(tuple(samples)), seed)
        try:
            table, answers = chosen_rule(workload.spec, samples, fitted.table, seed=seed)
        except Exception as error:
            logger.exception("workload %s: heuristics could not be compared", workload.spec.name)
            reason = f"the comparison of heuristics failed: {type(error).__name__}: {error}"
            table, answers = fitted.table, {"rule": "model_predictive", "reason": reason, "returns": {}}
        return FittedModel(table.to_bytes(), fitted.report | {"answers": answers})

    def simulator(self, workload: Workload, conditions: Conditions) -> Simulator:
        """Make an ``IterativeWorld`` for evaluations; for learners a simulator, by the options ``expected`` (rewards
        are averaged over noise) and the fields of ``Ranges``.

        Raises:
            TypeError: an option is unknown.
        """
        if conditions.purpose == "evaluation":
            return self.world(workload, conditions)
        from app.kinds.iterative.layout import Layout
        from workers.kinds.iterative.simulator import ExpectedSimulator, IterativeSimulator, parse_options

        expected, ranges = parse_options(conditions.options)
        family: Any = ExpectedSimulator if expected else IterativeSimulator
        layout = Layout(workload.spec)
        simulator: Simulator = family(layout, _table(workload), conditions.batch, conditions.seed, ranges)
        return simulator

    def world(self, workload: Workload, conditions: Conditions) -> World:
        """Make a world of episodes under the domain model; ``conditions.held_out``: ``ModelTable`` for level L3. Raises
        IncompatibleModel if the domain model can't be read."""
        from workers.kinds.iterative.problem import IterativeProblem

        problem = IterativeProblem(workload.spec, _table(workload), conditions.held_out)
        return problem.world(conditions.batch, conditions.seed)

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return the kind's heuristics by name, the same for every workload."""
        from app.kinds.iterative.heuristics import HEURISTICS

        del workload
        return HEURISTICS

    def reference(self, workload: Workload) -> PlannedPolicy:
        """Compute the optimum under the domain model, else a plan on a coarser grid; without either, the reason. Raises
        IncompatibleModel if the domain model can't be read."""
        from workers.kinds.iterative.training import IterativeTraining

        return IterativeTraining(workload.spec, _table(workload), 0).plan()

    def training(self, workload: Workload, request: Request) -> IterativeTraining:
        """Make the problem in which all trials of a training learn.

        Raises:
            Untrainable: a metric's target has a probability, which the reward that agents learn from can't express.
        """
        from workers.kinds.iterative.training import IterativeTraining
        from workers.learning.training.request import Untrainable

        sure = [f"{m.name} ({m.probability:g})" for m in workload.spec.metrics if m.probability is not None]
        if sure:
            raise Untrainable(
                f"targets with a probability are decided by model_predictive alone, agents learn from weights: "
                f"{', '.join(sure)}; PATCH the workload's probabilities to null to train for its weights"
            )
        table, improves = _table(workload), request.plans
        return IterativeTraining(workload.spec, table, request.seed, _samples(workload), improves=improves)

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """Prepare an evaluation whose level L3 runs on a domain model fitted to the held-out executions alone.

        If the fit fails, the evaluation has no L3, and its report states the reason.
        """
        from workers.evaluation.protocol import NOT_REQUESTED, not_requested
        from workers.kinds.iterative.judge import held_out_model
        from workers.kinds.iterative.problem import NOTHING_HELD_OUT, IterativeProblem

        spec, table = workload.spec, _table(workload)
        if held_out is None:
            return Evaluation(IterativeProblem(spec, table, without=NOT_REQUESTED), not_requested())
        other, report = held_out_model(spec, _samples(workload), held_out, seed)
        tables = () if other is None else (other,)
        return Evaluation(IterativeProblem(spec, table, tables, report["reason"] or NOTHING_HELD_OUT), report)

    def off_policy(self, workload: Workload, artifact: bytes, runs: Sequence[LoggedRun]) -> dict[str, Any]:
        """Estimate an agent's return in logged runs, by replay under the domain model and by importance sampling.

        The result is ``{"reason": …}`` with fewer than two finished runs. Runs are left out whose reports don't fit the
        present spec, or whose allocation changed within an iteration, as agents don't choose that; the number of the
        latter, which were slower than others, is in ``changed_within_iterations``.

        Raises:
            IncompatibleArtifact: the artifact can't be read.
        """
        from app.kinds.contract.inputs import InvalidInput
        from app.kinds.iterative.layout import Layout
        from app.kinds.iterative.model import from_reports
        from app.kinds.iterative.policies import load
        from workers.kinds.iterative.off_policy import TooFewRuns, score

        layout, logs, changed = Layout(workload.spec), [], 0
        for run in runs:
            if any(report.get("segments") for report in run.reports):
                changed += 1
                continue
            try:
                logs.append(from_reports(layout, run.reports, dict(run.start.get("targets", {}))))
            except InvalidInput:  # the spec has changed since the run
                continue
        try:
            result = score(layout, _table(workload), load(artifact), logs)
        except TooFewRuns as error:
            result = {"reason": str(error)}
        return result | {"changed_within_iterations": changed} if changed else result


def _table(workload: Workload) -> ModelTable:
    from app.kinds.iterative.model import ModelTable
    from app.kinds.iterative.policies import in_force

    return in_force(ModelTable.from_bytes(workload.model), workload.spec)


def _samples(workload: Workload) -> Samples:
    from app.kinds.iterative.layout import Layout
    from workers.kinds.iterative.grid import whole_iterations

    return whole_iterations(Layout(workload.spec), workload.samples, _table(workload))


KIND = Iterative()
