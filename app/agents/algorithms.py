"""Names of the algorithms that a training request may give.

These are `auto`, `planner`, `online`, the entry points of group `steward.algorithms`, and algorithms of single kinds.
Only names are read, from the metadata of installed packages; workers alone import the classes.
"""

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from app.installed import points
from app.kinds.registry import KINDS

GROUP = "steward.algorithms"
AUTO_SEEDS = 3
"""Number of seeds that `auto` trains if the request gives none."""
ONLINE = "online"
"""Name of the algorithm that trains without end, once per window of reports."""
CONTESTS = ("auto", "planner", ONLINE)
"""Names that are no single algorithm: a contest of several and the planner; the planner alone; repeated training."""


def kind_specific_names() -> frozenset[str]:
    """Names of the algorithms that belong to a single kind."""
    return frozenset(name for kind in KINDS.values() for name in kind.training.own)


def names() -> tuple[str, ...]:
    """All algorithm names that a training request may give, read from the packages installed now."""
    return (*CONTESTS, *sorted({point.name for point in points(GROUP)} | kind_specific_names()))


def _check_name(name: str) -> str:
    known = names()
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return name


class _InstalledNames:
    """Pydantic annotation: rejects a name that ``names()`` lacks (ValueError); the names are the schema's `enum`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(_check_name, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "enum": list(names())}


Algorithm = Annotated[str, _InstalledNames()]
