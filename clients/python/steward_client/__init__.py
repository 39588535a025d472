"""The Python client of Steward.

``Run`` is what the launcher of an iterative job needs, ``QueueRun`` what that of batch jobs and workflows needs.
``Policy`` and ``CarriedRun`` decide in the caller's own process which inference requests start.
``Client`` with the functions below ``steward_client.generated.api`` is the whole API, generated from its schema.
"""

from .errors import StewardError, Unreachable
from .generated import AuthenticatedClient, Client
from .journal import JournalError
from .policy import CarriedRun, Policy
from .queue import QueueRun
from .retry import Retry
from .run import Run

__all__ = [
    "AuthenticatedClient",
    "CarriedRun",
    "Client",
    "JournalError",
    "Policy",
    "QueueRun",
    "Retry",
    "Run",
    "StewardError",
    "Unreachable",
]
