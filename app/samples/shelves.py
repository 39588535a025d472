"""The shelf of each kind."""

from __future__ import annotations

from app.database.tables import Workload
from app.kinds.contract.samples import Format, Shelf
from app.kinds.iterative.samples.codec import IterativeShelf
from app.kinds.registry import layout_of, read_spec
from app.kinds.workflow.samples.codec import WorkflowShelf

SHELVES: dict[str, type[Shelf]] = {"iterative": IterativeShelf, "workflow": WorkflowShelf}
FORMATS: dict[str, Format] = {media: form for shelf in SHELVES.values() for media, form in shelf.formats.items()}
"""Of all kinds; a media type is read under the same limits whatever the kind."""
EXPORTS = tuple(dict.fromkeys(media for shelf in SHELVES.values() for media in shelf.exports))


def shelf_of(workload: Workload) -> Shelf:
    """The shelf of a workload, by its spec."""
    return SHELVES[workload.kind](layout_of(read_spec(workload.spec)))
