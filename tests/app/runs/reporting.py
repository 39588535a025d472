"""Runs on a database of the test, reported to as the API does it, without HTTP."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from app.database.engine import Database
from app.database.tables import Iteration
from app.decisions.service import CompiledWorkloads
from app.kinds.iterative.report import IterationReport
from app.kinds.iterative.spec import Spec
from app.runs import service
from app.runs.outcomes import Staleness
from app.runs.reporter import Reporter
from app.runs.service import RunPatch
from app.workloads import service as workloads
from app.workloads.snapshot import WorkloadCache
from tests.batched import SPEC as EXAMPLE

TENANT = "default"


def compiled_workloads(database: Database) -> CompiledWorkloads:
    """A process's own view of the workloads."""
    return CompiledWorkloads(WorkloadCache(database, 0.5))


def reporter(database: Database) -> Reporter:
    """What takes the reports of one process."""
    return Reporter(database, compiled_workloads(database))


def register(database: Database, **changes: Any) -> str:
    """A workload like the example; its name."""
    spec = Spec.model_validate(EXAMPLE | changes)
    workloads.register(database, TENANT, spec)
    return spec.name


def start(database: Database, workload: str = "resnet18", **body: Any) -> str:
    """A new run's id."""
    compiled = compiled_workloads(database).fetch(workload, TENANT)
    return service.start(database, TENANT, compiled, {"workload": workload, **body}).id


def end(database: Database, run: str, state: Literal["finished", "failed", "cancelled"], reason: str = "") -> None:
    """End a run."""
    fetch = compiled_workloads(database).fetch
    patch = RunPatch(state=state, reason=reason or None)
    service.end(database, TENANT, run, patch, lambda workload: fetch(workload, TENANT), Staleness(10, 300))


def report(seconds: float = 31.5, gpus: float = 4, batch: float = 128) -> bytes:
    """What an iteration used and measured."""
    return msgspec.json.encode(IterationReport({"gpus": gpus}, {"iteration_seconds": seconds}, {"batch": batch}))


def decide_anew(row: Iteration, **changes: Any) -> None:
    """Change members of a stored decision."""
    row.packed = Iteration.of(row.run_id, row.iteration, row.report, row.decision | changes).packed
