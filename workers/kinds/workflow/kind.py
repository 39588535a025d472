"""The learning half of kind ``workflow`` as one object, whose methods import what they need when they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workers.kinds.contract import Evaluation, FittedModel, LearnedKind, Spaces

if TYPE_CHECKING:
    from app.kinds.contract.policy import Policy
    from app.kinds.workflow.run_times import Predictor
    from app.kinds.workflow.trace import Trace
    from workers.inputs import Conditions, HoldOut, LoggedRun, Samples, Workload
    from workers.kinds.workflow.training.train import SchedulerTrainer
    from workers.learning.simulator import Simulator
    from workers.learning.training.driver import PlannedPolicy
    from workers.learning.training.request import Request

ONE_TRACE = "there is one trace only, and agents may have learned from it: upload another for L3"
LOGGED = "tasks that really ran are in the traces, which all strategies play"
CANDIDATES = "policies of workloads of kind workflow pick among candidates, any number of them: give their shape"
OWN_LEARNERS = "schedulers are trained by learners of their own, in simulators of theirs"
NO_PLAN = "no one plan suits many episodes"


class Workflow(LearnedKind):
    """The learning half of kind ``workflow``; agents learn from the samples (traces) alone, not from a domain model."""

    name = "workflow"
    algorithms: Sequence[str] = ("auto",)
    reads_runs = False

    def spaces(self, spec: Any) -> Spaces:
        """Raise ValueError, because a policy chooses among any number of waiting tasks, not in fixed spaces."""
        del spec
        raise ValueError(CANDIDATES)

    def fit(self, workload: Workload, seed: int) -> FittedModel:
        """Fit a predictor of run times; ``seed`` is not used.

        Raises:
            TooLittleData: fewer than 50 tasks with a run time.
        """
        from workers.kinds.workflow.run_times import fit_run_times

        del seed
        fitted = fit_run_times(workload.samples)
        return FittedModel(fitted.predictor.to_bytes(), fitted.report)

    def simulator(self, workload: Workload, conditions: Conditions) -> Simulator:
        """Make the world of an evaluation; ``conditions.held_out`` are traces.

        Raises:
            ValueError: the purpose is learning, no task has a run time, or a task fits no node.
        """
        from workers.kinds.workflow.evaluation.problem import WorkflowProblem

        if conditions.purpose == "learning":
            raise ValueError(OWN_LEARNERS)
        problem = WorkflowProblem(workload.spec, *_predicted_traces(workload, workload.samples, conditions.held_out))
        return problem.world(conditions.batch, conditions.seed)

    def baselines(self, workload: Workload) -> Mapping[str, Policy]:
        """Return the schedulers that suit the traces, by name, as policies that always pick the same scheduler.

        Raises:
            ValueError: no task has a run time, or a task fits no node.
        """
        from workers.kinds.workflow.evaluation.problem import WorkflowProblem

        return WorkflowProblem(workload.spec, [trace for _, trace in workload.samples]).heuristics

    def reference(self, workload: Workload) -> PlannedPolicy:
        """Return a ``PlannedPolicy`` without artifact; ``why_not`` says that one plan can't suit many episodes."""
        from workers.learning.training.driver import PlannedPolicy

        del workload
        return PlannedPolicy(why_not=NO_PLAN)

    def trainer(self, workload: Workload, request: Request, champion: bytes | None) -> SchedulerTrainer:
        """Make the trainer that searches priorities on the traces, chooses among candidates, and judges the best.

        Raises:
            Untrainable: backfilling is conservative, or too few tasks fit on one node.
        """
        from workers.kinds.workflow.training.train import SchedulerTrainer

        return SchedulerTrainer(
            workload.spec,
            workload.samples,
            request.seed,
            request.budget,
            champion=champion,
            margin=request.equivalence_margin,
            predictor=_predictor(workload),
            force=request.force,
        )

    def evaluation(self, workload: Workload, held_out: HoldOut | None, seed: int) -> Evaluation:
        """Prepare an evaluation whose levels L3 and L4 play held-out traces, and the levels before them the others.

        Raises:
            ValueError: no task has a run time, or a task fits no node.
        """
        from workers.evaluation.protocol import NOT_REQUESTED, choose, not_requested
        from workers.kinds.workflow.evaluation.problem import WorkflowProblem

        traces = dict(workload.samples)
        if held_out is None:
            values, _ = _predicted_traces(workload, workload.samples)
            return Evaluation(WorkflowProblem(workload.spec, values, without=NOT_REQUESTED), not_requested())
        chosen = choose([*traces], held_out, seed, most=max(len(traces) - 1, 0))
        split = [traces.pop(name) for name in chosen.names]
        note = (
            f"L3 and L4 play what was held out: {len(split)} of the traces, of which {chosen.unseen} came after the "
            "agents were trained."
        )
        report = chosen.report(None, note) if split else chosen.report(ONE_TRACE, None)
        values, others = _predicted_traces(workload, list(traces.items()), split)
        return Evaluation(WorkflowProblem(workload.spec, values, others, ONE_TRACE), report)

    def off_policy(self, workload: Workload, artifact: bytes, runs: Sequence[LoggedRun]) -> dict[str, Any]:
        """Return ``{"reason": …}`` only, because schedulers can't be scored on logged runs."""
        del workload, artifact, runs
        return {"reason": LOGGED}


def _predictor(workload: Workload) -> Predictor | None:
    from app.kinds.workflow.run_times import Predictor

    return Predictor.from_bytes(workload.model) if workload.model else None


def _predicted_traces(
    workload: Workload, samples: Samples, held_out: Sequence[Trace] = ()
) -> tuple[Sequence[Trace], Sequence[Trace]]:
    """Return (the samples' traces, held-out traces) with run times predicted by a predictor fitted to the samples."""
    from app.kinds.workflow.run_times import Predictor
    from workers.kinds.workflow.run_times import predict_traces, refit

    traces, model = [trace for _, trace in samples], _predictor(workload)
    predictor = Predictor() if model is None else refit(model, traces)
    return predict_traces(traces, predictor), predict_traces(held_out, predictor)


KIND = Workflow()
