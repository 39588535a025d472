"""Every kind that Steward allocates for. Adding one is a package beside the others, and one line in ``KINDS``.

The rooms of the service have a part for each kind where they need one (how a report is read, how a sample is checked),
in a registry of their own by the same names; ``tests/contracts/test_registries.py`` holds them together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Discriminator, Tag, TypeAdapter

from app.kinds.contract.base import Change
from app.kinds.iterative import change as iterative_change
from app.kinds.iterative.layout import Layout as IterativeLayout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import names as iterative_names
from app.kinds.iterative.spec import Spec as IterativeSpec
from app.kinds.workflow import change as workflow_change
from app.kinds.workflow.layout import Layout as WorkflowLayout
from app.kinds.workflow.predictor import Predictor
from app.kinds.workflow.spec import Spec as WorkflowSpec

DEFAULT = "iterative"
Spec = IterativeSpec | WorkflowSpec


@dataclass(frozen=True)
class Kind:
    """What the rooms of the service ask a kind for; specs, layouts and models are its own.

    Attributes:
        spec: model of ``POST /workloads``.
        layout: what is derived from a spec.
        changed: a spec with a ``PATCH`` applied; it raises ``InvalidInput`` where that names what the spec hasn't.
        changes: what a ``PATCH`` may change, in words.
        model: a domain model from its bytes.
        simulated: whether agents are trained and judged in simulators of a domain model; else on the samples alone.
        reads: the entries that a policy is shown under a layout, and how many actions it has (0: any number of
            candidates); an artifact that was made for others can't answer.
    """

    spec: type[Any]
    layout: Callable[[Any], Any]
    changed: Callable[[Any, Change], Any]
    changes: str
    model: Callable[[bytes], Any]
    reads: Callable[[Any], tuple[tuple[str, ...], int]]
    simulated: bool = True


KINDS: dict[str, Kind] = {
    "iterative": Kind(
        IterativeSpec,
        IterativeLayout,
        iterative_change.changed,
        "targets, prices or weights",
        ModelTable.from_bytes,
        lambda layout: (tuple(iterative_names(layout)), len(layout.deltas)),
    ),
    "workflow": Kind(
        WorkflowSpec,
        WorkflowLayout,
        workflow_change.changed,
        "prices or weights",
        Predictor.from_bytes,
        lambda _: ((), 0),
        simulated=False,
    ),
}


def _named(spec: object) -> str:
    """The kind that a spec names; one that names none is of the first."""
    kind = spec.get("kind", DEFAULT) if isinstance(spec, dict) else getattr(spec, "kind", None)
    return kind if isinstance(kind, str) else ""


AnySpec = Annotated[
    Annotated[IterativeSpec, Tag("iterative")] | Annotated[WorkflowSpec, Tag("workflow")],
    Discriminator(_named, "unknown_kind", f"must be one of {', '.join(KINDS)}"),
]
_ANY: TypeAdapter[Spec] = TypeAdapter(AnySpec)


def read_spec(stored: dict[str, Any]) -> Spec:
    """A spec of whatever kind, from what ``model_dump`` gave."""
    return _ANY.validate_python(stored)


def layout_of(spec: Spec) -> Any:
    """The layout of a spec of whatever kind."""
    return KINDS[spec.kind].layout(spec)
