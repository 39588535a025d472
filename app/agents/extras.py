"""What a training may ask for that comes with an extra, and may not be installed where it is to run."""

from __future__ import annotations

from importlib.util import find_spec

from app.agents.schemas import TrainRequest
from app.errors import FieldError, Invalid

EXTRAS = {("executor", "ray"): "ray"}
"""The extra, which is also the package's name, by field and value."""


def require(request: TrainRequest) -> None:
    """Refuse what is not installed here: a worker asks for itself, the API where its workers share its installation.

    Raises:
        Invalid: it names the field, its value, and the command that installs it.
    """
    errors = [
        FieldError(f"/{field}", f"needs the extra {extra!r} where workers run: pip install 'steward[{extra}]'", value)
        for (field, value), extra in EXTRAS.items()
        if getattr(request, field, None) == value and find_spec(extra) is None
    ]
    if errors:
        detail = "; ".join(f"{error.pointer[1:]} {error.value!r} {error.message}" for error in errors)
        raise Invalid(detail, errors=errors)
