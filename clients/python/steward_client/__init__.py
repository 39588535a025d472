"""The Python client of Steward.

``Run`` is what the launcher of an iterative job needs, ``QueueRun`` what that of batch jobs and workflows needs.
``Client`` with the functions below ``steward_client.generated.api`` is the whole API, generated from its schema.
"""

from .errors import StewardError, Unreachable
from .generated import AuthenticatedClient, Client
from .queue import QueueRun
from .retry import Retry
from .run import Run

__all__ = ["AuthenticatedClient", "Client", "QueueRun", "Retry", "Run", "StewardError", "Unreachable"]
