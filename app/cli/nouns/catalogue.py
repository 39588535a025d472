"""Every noun of the service that has commands."""

from __future__ import annotations

from typing import Literal

from app.cli.nouns.contract import Action, Column, Noun, Option
from app.kinds.contract.run_outcome import RunOutcome

AGE = Column("age", "created_at", "age")
OF_WORKLOAD = Option("workload", str, "Filter by workload.")
SEED = Option("seed", int, "The same seed and samples give the same result.")
ROLE = Option("role", str, "Role of the policy, if the workload has several.")
REASON = Option("reason", str, "Reason to record.")
W = "/workloads/{workload}"

WORKLOAD = Noun(
    "workload",
    "Manage workloads.",
    (
        Action(
            "list",
            "GET /workloads",
            "List workloads.",
            columns=(
                Column("name", "name", whole=True),
                Column("kind", "kind"),
                Column("spec", "spec_version"),
                Column("champion", "champion"),
                AGE,
                Column("problem", "problem"),
            ),
        ),
        Action("show", f"GET {W}", "Show a workload and its spec."),
        Action("create", "POST /workloads", "Register a workload from its spec.", fields=True, document=True),
        Action("change", f"PATCH {W}", "Update a workload's prices, weights, targets, …", fields=True),
        Action(
            "delete",
            f"DELETE {W}",
            "Delete a workload and everything in it.",
            options=(Option("force", bool, "Delete even if runs are active or jobs have not ended."),),
            told="workload {workload} is deleted",
        ),
        Action(
            "decide",
            "GET /decision",
            "Get the decision for a state. Nothing is written.",
            given=("workload",),
            fields=True,
        ),
        Action("drift", f"GET {W}/drift", "Show the response to drift and its latest adaptations."),
        Action("respond", f"PUT {W}/drift", "Set the response to drift.", fields=True),
        Action("retention", f"GET {W}/retention", "Show how long a workload's data is kept."),
        Action("retain", f"PUT {W}/retention", "Set how long a workload's data is kept.", fields=True),
    ),
)
SAMPLES = Noun(
    "samples",
    "Manage samples: executions that models are fitted to.",
    (
        Action(
            "list",
            f"GET {W}/samples",
            "List executions, oldest first.",
            columns=(
                Column("execution", "execution", whole=True),
                Column("source", "source"),
                Column("iterations", "iterations"),
                Column("lasted", "seconds", "lasting"),
                AGE,
            ),
        ),
        Action(
            "show",
            f"GET {W}/samples",
            "Show an execution with every report.",
            given=("execution",),
            fixed={"reports": "true"},
        ),
        Action(
            "delete",
            f"DELETE {W}/samples",
            "Delete an execution, or all stored before a time.",
            options=(
                Option("execution", str, "Name of one execution."),
                Option("before", str, "Delete executions stored before, such as 2026-01-31T00:00:00Z."),
            ),
            told="samples of {workload} are deleted",
        ),
    ),
)
SERIES = Noun(
    "series",
    "Manage exogenous series, such as arrivals or prices.",
    (
        Action(
            "list",
            f"GET {W}/exogenous",
            "List a workload's series.",
            columns=(
                Column("series", "series", whole=True),
                Column("rows", "rows"),
                Column("since", "since"),
                Column("until", "until"),
                Column("issued", "issued_at", "age"),
            ),
        ),
        Action(
            "show",
            f"GET {W}/exogenous/{{series}}",
            "List a series: the newest issue for each time.",
            columns=(
                Column("time", "time", whole=True),
                Column("mean", "mean"),
                Column("low", "low"),
                Column("high", "high"),
                Column("issued", "issued_at", "age"),
            ),
            options=(
                Option("since", str, "Start of the time range, inclusive."),
                Option("until", str, "End of the time range, exclusive."),
            ),
        ),
        Action("create", f"PUT {W}/exogenous/{{series}}", "Store an issue of a series.", fields=True),
        Action(
            "delete",
            f"DELETE {W}/exogenous/{{series}}",
            "Delete a series, or its rows before a time.",
            options=(Option("before", str, "Delete only rows for times before, such as 2026-01-31T00:00:00Z."),),
            told="series {series} of {workload} is deleted",
        ),
    ),
)
MODEL = Noun(
    "model",
    "Manage domain models, fitted to a workload's samples.",
    (
        Action(
            "list",
            f"GET {W}/models",
            "List a workload's models, newest first.",
            columns=(Column("version", "version", whole=True), Column("spec", "spec_version"), AGE),
        ),
        Action("show", f"GET {W}/models/{{version}}", "Show a model and how well it fits.", newest=True),
        Action(
            "create",
            f"POST {W}/models",
            "Fit a model to the samples.",
            options=(SEED,),
            fields=True,
            result=f"{W}/models/{{model}}",
        ),
        Action(
            "delete",
            f"DELETE {W}/models/{{version}}",
            "Delete a model.",
            told="model {version} of {workload} is deleted",
        ),
        Action(
            "predict",
            f"GET {W}/models/{{version}}/predict",
            "Predict a run's measurements: allocation.gpus=4.",
            fields=True,
        ),
    ),
)
AGENT = Noun(
    "agent",
    "Manage agents.",
    (
        Action(
            "list",
            f"GET {W}/agents",
            "List a workload's agents, newest first.",
            columns=(
                Column("version", "version", whole=True),
                Column("algorithm", "algorithm"),
                Column("seed", "seed"),
                Column("model", "model_version"),
                Column("status", "status"),
                Column("verdicts", "standing"),
                Column("champion until", "champion_until", "moment"),
                AGE,
            ),
        ),
        Action(
            "delete",
            f"DELETE {W}/agents/{{version}}",
            "Delete an agent.",
            told="agent {version} of {workload} is deleted",
        ),
        Action(
            "promote",
            f"POST {W}/agents/{{version}}/promote",
            "Promote an agent to serve decisions.",
            options=(
                REASON,
                Option("require", list[str], "Required evidence: shadow, off_policy; repeatable."),
                ROLE,
            ),
        ),
        Action(
            "rollback",
            f"POST {W}/agents/{{version}}/rollback",
            "Undo a promotion: its predecessor serves again.",
            options=(REASON, ROLE),
        ),
        Action(
            "promotions",
            f"GET {W}/agents/promotions",
            "List promotions and rollbacks, newest first.",
            columns=(
                Column("champion", "champion", whole=True),
                Column("role", "role"),
                AGE,
                Column("by", "made_by"),
                Column("reason", "reason"),
            ),
        ),
        Action(
            "shadow", f"GET {W}/agents/{{version}}/shadow", "Show what an agent would have decided in shadowed runs."
        ),
        Action(
            "policy",
            f"GET {W}/agents/{{version}}/policy",
            "Download an agent's policy.",
            options=(ROLE,),
            suffix=".safetensors",
        ),
    ),
)
JOBS = {"fit": f"POST {W}/models", "train": f"POST {W}/agents", "evaluate": "POST /evaluations"}
JOB = Noun(
    "job",
    "Manage jobs: fits, trainings and evaluations.",
    (
        Action(
            "list",
            "GET /jobs",
            "List jobs, newest first.",
            columns=(
                Column("id", "id", whole=True),
                Column("type", "type"),
                Column("workload", "workload"),
                Column("state", "state", whole=True),
                Column("priority", "priority"),
                Column("done", "progress", "share"),
                AGE,
            ),
            options=(
                OF_WORKLOAD,
                Option(
                    "state",
                    Literal["queued", "running", "succeeded", "failed", "cancelled"],
                    "Filter by state.",
                ),
            ),
        ),
        Action("show", "GET /jobs/{id}", "Show a job.", newest=True),
        Action("watch", "GET /jobs/{id}", "Follow a job until it ends.", newest=True, result=""),
        Action("cancel", "POST /jobs/{id}/cancel", "Cancel a job."),
        Action("delete", "DELETE /jobs/{id}", "Delete a job that has ended.", told="job {id} is deleted"),
    ),
)
RUN = Noun(
    "run",
    "Manage runs; `steward run -- COMMAND` launches one.",
    (
        Action(
            "list",
            "GET /runs",
            "List runs, newest first.",
            columns=(
                Column("id", "id", whole=True),
                Column("workload", "workload"),
                Column("outcome", "outcome", whole=True),
                Column("iterations", "iterations"),
                Column("agent", "agent"),
                AGE,
            ),
            options=(
                OF_WORKLOAD,
                Option("state", Literal["running", "finished", "failed", "cancelled"], "Filter by state."),
                Option("outcome", RunOutcome, "Filter by outcome."),
            ),
        ),
        Action("show", "GET /runs/{run}", "Show a run and its last decision.", newest=True),
        Action(
            "iterations",
            "GET /runs/{run}/iterations",
            "List a run's iterations with their decisions.",
            columns=(
                Column("iteration", "iteration", whole=True),
                Column("by", "decision.source"),
                Column("age", "reported_at", "age"),
                Column("reason", "decision.reason.text"),
            ),
            newest=True,
        ),
        Action("create", "POST /runs", "Start a run of a workload.", given=("workload",), fields=True),
        Action(
            "report",
            "PUT /runs/{run}/iterations/{iteration}",
            "Report an iteration and get the next step. Example: allocation.gpus=4 metrics.iteration_seconds=21.",
            fields=True,
        ),
        Action(
            "finish",
            "PATCH /runs/{run}",
            "End a run: its iterations become a sample.",
            options=(
                Option("state", Literal["finished", "failed", "cancelled"], "Final state. [default: finished]"),
                Option("reason", str, "Why it ends; stored with its outcome."),
            ),
            fixed={"state": "finished"},
        ),
        Action("delete", "DELETE /runs/{run}", "Delete a run.", told="run {run} is deleted"),
    ),
)
EVALUATION = Noun(
    "evaluate",
    "Manage evaluations; `steward evaluate WORKLOAD` creates one.",
    (
        Action(
            "list",
            "GET /evaluations",
            "List evaluations, newest first.",
            columns=(
                Column("id", "id", whole=True),
                Column("workload", "workload"),
                Column("model", "model_version"),
                Column("agents", "verdicts.agent"),
                Column("class", "verdicts.level"),
                Column("judge", "verdicts.judge"),
                AGE,
            ),
            options=(OF_WORKLOAD,),
        ),
        Action(
            "report",
            "GET /evaluations/{id}/report",
            "Download an evaluation's HTML report.",
            newest=True,
            suffix=".html",
        ),
        Action("delete", "DELETE /evaluations/{id}", "Delete an evaluation.", told="evaluation {id} is deleted"),
    ),
)
