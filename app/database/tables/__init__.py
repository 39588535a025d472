"""All tables, one per file; importing this fills the metadata."""

from app.database.tables.adaptation import Adaptation
from app.database.tables.agent import Agent
from app.database.tables.audit import AuditEntry
from app.database.tables.champion import Champion
from app.database.tables.evaluation import Evaluation
from app.database.tables.execution import Execution
from app.database.tables.exogenous import ExogenousRow
from app.database.tables.idempotency import IdempotencyKey
from app.database.tables.iteration import Iteration
from app.database.tables.job import Job
from app.database.tables.job_event import JobEvent
from app.database.tables.key import Key, RunToken
from app.database.tables.lease import Lease
from app.database.tables.model import DomainModel
from app.database.tables.promotion import Promotion
from app.database.tables.run import Run
from app.database.tables.trial import Trial
from app.database.tables.worker import Worker
from app.database.tables.workload import Workload

__all__ = [
    "Adaptation",
    "Agent",
    "AuditEntry",
    "Champion",
    "DomainModel",
    "Evaluation",
    "Execution",
    "ExogenousRow",
    "IdempotencyKey",
    "Iteration",
    "Job",
    "JobEvent",
    "Key",
    "Lease",
    "Promotion",
    "Run",
    "RunToken",
    "Trial",
    "Worker",
    "Workload",
]
