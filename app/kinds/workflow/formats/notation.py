"""Nodes in a line: ``4x16@1.0:0.48,2x8@2`` is four nodes of 16 processors at speed 1 for 0.48 an hour, and two more."""

import re
from typing import Any

from pydantic import ValidationError

from app.kinds.workflow.spec import NodeType

FORM = "count x processors @ speed : price per hour, as in 4x16@1.0:0.48; speed (1) and price (0) may be left out"
_NODES = re.compile(r"(\d+)x(\d+)(?:@([\d.eE+-]+))?(?::([\d.eE+-]+))?")


def nodes_written(
    text: str,
    bandwidth_mbps: float | None = None,
    startup_seconds: float = 0.0,
    billing_seconds: float = 1.0,
    rented: bool = False,
) -> tuple[NodeType, ...]:
    """The node types of ``text``, named for their place in it; ``rented`` ones are paid for only while needed.

    Raises:
        ValueError: the text is not of the form, or a number in it is out of range.
    """
    types = []
    for number, part in enumerate(text.split(",")):
        found = _NODES.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"nodes must be {FORM}; several such, with commas between: {part.strip()!r} is none")
        count, processors, speed, price = found.groups()
        own = {"processors": processors, "speed": speed or 1, "price_per_hour": price or 0}
        own |= {"name": f"n{number}", "minimum": 0 if rented else int(count), "maximum": count}
        own |= {
            "billing_seconds": billing_seconds,
            "startup_seconds": startup_seconds,
            "bandwidth_mbps": bandwidth_mbps,
        }
        types.append(_node(part.strip(), own))
    return tuple(types)


def _node(part: str, fields: dict[str, Any]) -> NodeType:
    try:
        return NodeType.model_validate(fields, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ValueError(f"nodes: {part!r}: {where}: {first['msg']}, not {first['input']!r}") from error
