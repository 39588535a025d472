"""What agents may be trained by: `auto`, `planner`, `online`, the entry points of `steward.algorithms`, kinds' own.

Only their names are read, from the metadata of what is installed; what they name is imported by workers alone.
"""

from importlib.metadata import entry_points
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from app.kinds.registry import KINDS

GROUP = "steward.algorithms"
AUTO_SEEDS = 3
"""Seeds that `auto` tries where a request gives no number."""
ONLINE = "online"
"""A training that goes on, from one window of what runs report to the next."""
CONTESTS = ("auto", "planner", ONLINE)
"""Several algorithms and the planner; the planner alone; one algorithm, again and again."""


def own() -> frozenset[str]:
    """Algorithms of single kinds."""
    return frozenset(name for kind in KINDS.values() for name in kind.training.own)


def names() -> tuple[str, ...]:
    """Everything that may be asked for, as installed now."""
    return (*CONTESTS, *sorted({point.name for point in entry_points(group=GROUP)} | own()))


def _known(name: str) -> str:
    known = names()
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return name


class _Installed:
    """Validates, and describes, a name as what is installed says."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(_known, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "enum": list(names())}


Algorithm = Annotated[str, _Installed()]
