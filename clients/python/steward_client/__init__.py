"""The Python client of Steward.

``with steward.run("resnet18") as run: for epoch in run.epochs(90): …`` runs a training loop under decisions;
``steward.register(spec)`` registers its workload first.
``steward.runs("resnet18")`` lists runs as a table, and ``steward.Steward()`` reads all that a service has stored.
Launchers of iterative jobs use ``Run``, launchers of batch jobs and workflows ``QueueRun``.
``Policy`` and ``CarriedRun`` decide in the caller's own process which inference requests start.
``Client`` and the functions in ``steward_client.generated.api`` cover the whole API, generated from its schema.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .epochs import Epoch
    from .errors import CapReached, ClientError, StewardError, Unreachable
    from .frames import RejectedRows, Uploaded, upload, upload_async
    from .generated import AuthenticatedClient, Client
    from .iterative import Run
    from .jobs import Job, JobFailed, evaluate, fit, train
    from .journal import JournalError
    from .policy import CarriedRun, Policy, carry
    from .queue import QueueRun
    from .retry import Retry
    from .stored import Agent, Rows, Steward, StoredRun, Workload, runs
    from .training import EpochRun, Epochs, run
    from .workloads import register

_HOMES = {
    "Epoch": "epochs",
    "CapReached": "errors",
    "ClientError": "errors",
    "StewardError": "errors",
    "Unreachable": "errors",
    "RejectedRows": "frames",
    "Uploaded": "frames",
    "upload": "frames",
    "upload_async": "frames",
    "AuthenticatedClient": "generated",
    "Client": "generated",
    "Run": "iterative",
    "Job": "jobs",
    "JobFailed": "jobs",
    "evaluate": "jobs",
    "fit": "jobs",
    "train": "jobs",
    "JournalError": "journal",
    "CarriedRun": "policy",
    "Policy": "policy",
    "carry": "policy",
    "QueueRun": "queue",
    "Retry": "retry",
    "Agent": "stored",
    "Rows": "stored",
    "Steward": "stored",
    "StoredRun": "stored",
    "Workload": "stored",
    "runs": "stored",
    "EpochRun": "training",
    "Epochs": "training",
    "run": "training",
    "register": "workloads",
}
"""Module of each exported name; it is imported on first use, so that this package's commands start quickly."""

__all__ = [
    "Agent",
    "AuthenticatedClient",
    "CapReached",
    "CarriedRun",
    "Client",
    "ClientError",
    "Epoch",
    "EpochRun",
    "Epochs",
    "Job",
    "JobFailed",
    "JournalError",
    "Policy",
    "QueueRun",
    "RejectedRows",
    "Retry",
    "Rows",
    "Run",
    "Steward",
    "StewardError",
    "StoredRun",
    "Unreachable",
    "Uploaded",
    "Workload",
    "carry",
    "evaluate",
    "fit",
    "register",
    "run",
    "runs",
    "train",
    "upload",
    "upload_async",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
