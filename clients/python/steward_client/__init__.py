"""The Python client of Steward.

``Run`` is what a job launcher needs. ``Client`` with the functions below ``steward_client.generated.api`` is the whole
API, generated from its schema.
"""

from .errors import StewardError, Unreachable
from .generated import AuthenticatedClient, Client
from .retry import Retry
from .run import Run

__all__ = ["AuthenticatedClient", "Client", "Retry", "Run", "StewardError", "Unreachable"]
