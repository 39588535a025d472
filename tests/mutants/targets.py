"""The modules that decide, publish and guard, and the tests that are to notice a fault in each."""

ESTIMATORS = ("tests/workers/estimators/test_pieces.py", "tests/workers/estimators/test_selection.py")
EVALUATION = "tests/workers/kinds/iterative"
TARGETS: dict[str, tuple[str, ...]] = {
    "app.kinds.iterative.policies": ("tests/app/kinds/iterative/policies",),
    "app.kinds.iterative.observation": ("tests/app/kinds/iterative/test_reward.py",),
    "app.kinds.workflow.advance": ("tests/app/kinds/workflow/queue",),
    "app.runs.reporter": ("tests/app/runs",),
    "app.runs.deciding": ("tests/app/runs",),
    "app.http.idempotency": ("tests/app/http/idempotency",),
    "app.jobs.lease": ("tests/app/jobs", "tests/workers/tasks/test_base.py"),
    "app.jobs.repository": ("tests/app/jobs/test_family.py", "tests/app/jobs/test_sweeps.py"),
    "app.jobs.sweeps": ("tests/app/jobs/test_sweeps.py",),
    "workers.tasks.trained": ("tests/workers/tasks/test_sweep.py",),
    "workers.kinds.iterative.judge": (f"{EVALUATION}/test_judge.py",),
    "workers.kinds.iterative.off_policy": (f"{EVALUATION}/test_off_policy.py",),
    "workers.estimators.residuals": ESTIMATORS,
    "workers.estimators.selection": ESTIMATORS,
}
