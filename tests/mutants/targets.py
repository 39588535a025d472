"""The modules that decide, publish and guard, and the tests that are to notice a fault in each."""

ESTIMATORS = ("tests/workers/estimators/test_pieces.py", "tests/workers/estimators/test_selection.py")
EVALUATION = "tests/workers/kinds/iterative/evaluation"
REPORTS = tuple(
    f"tests/app/runs/test_{name}.py"
    for name in ("live", "started", "named_twice", "reporter", "drift", "aside", "requests", "caps", "waiting")
)
TARGETS: dict[str, tuple[str, ...]] = {
    "app.kinds.iterative.policies": (
        "tests/app/kinds/iterative/policies",
        "tests/app/kinds/iterative/test_caps.py",
        "tests/app/policies/test_artifact.py",
        "tests/app/kinds/iterative/test_answering_rule.py",
        f"{EVALUATION}/test_optimum.py",
    ),
    "app.kinds.iterative.observation": (
        "tests/app/kinds/iterative/test_reward.py",
        "tests/app/kinds/iterative/test_outlook.py",
        "tests/app/kinds/iterative/test_representation.py",
        "tests/app/kinds/iterative/test_upcoming.py",
        "tests/app/kinds/iterative/test_chance.py",
    ),
    "app.kinds.workflow.advance": ("tests/app/kinds/workflow/queue",),
    "app.runs.reporter": REPORTS,
    "app.runs.deciding": REPORTS,
    "app.http.idempotency": ("tests/app/http/idempotency",),
    "app.jobs.lease": ("tests/app/jobs", "tests/workers/tasks/test_base.py", "tests/workers/test_housekeeping.py"),
    "app.jobs.repository": ("tests/app/jobs",),
    "app.jobs.sweeps": ("tests/app/jobs/test_sweeps.py",),
    "workers.tasks.trained": ("tests/workers/tasks/test_train.py", "tests/workers/tasks/test_sweep.py"),
    "workers.kinds.iterative.judge": (f"{EVALUATION}/test_judge.py", f"{EVALUATION}/test_cross_fit.py"),
    "workers.kinds.iterative.off_policy": (f"{EVALUATION}/test_off_policy.py", f"{EVALUATION}/test_outcomes.py"),
    "workers.estimators.residuals": (*ESTIMATORS, "tests/workers/kinds/iterative/estimation/test_fit.py"),
    "workers.estimators.selection": ESTIMATORS,
}
