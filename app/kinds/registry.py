"""Registry of kinds: all that installed packages provide as entry points ``steward.kinds``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from app.kinds.contract.inputs import BrokenRow, stored
from app.kinds.contract.kind import Kind
from app.kinds.fields import OneOf, converted
from app.policies.artifact import Artifact, kind_of
from app.policies.base import IncompatibleArtifact

GROUP = "steward.kinds"


class BrokenKind(RuntimeError):
    """An installed kind can't be used; the message names its entry point and the reason."""


class MissingKind(RuntimeError):
    """Stored data has a kind that isn't installed."""


class Kinds(dict[str, Kind]):
    """Installed kinds by name; a missing name raises MissingKind."""

    def __missing__(self, name: str) -> Kind:
        raise MissingKind(f"kind {name!r} is not installed here (installed: {', '.join(self)}); install what offers it")


def load_kinds(points: Sequence[EntryPoint]) -> Kinds:
    """Load the kinds of these entry points, by name.

    Raises:
        BrokenKind: there is no entry point, or a kind can't be imported, isn't named as its entry point, or has the
            name of another.
    """
    kinds = Kinds()
    for point in sorted(points, key=lambda point: point.name):
        try:
            kind: Kind = point.load()
        except Exception as error:
            raise BrokenKind(f"kind {point.name} ({point.value}) can't be imported: {error}") from error
        if kind.name != point.name or kind.name in kinds:
            raise BrokenKind(f"kind {point.name} ({point.value}) must be named so, and once; its name is {kind.name}")
        kinds[kind.name] = kind
    if not kinds:
        raise BrokenKind(f"no kind is installed: Steward's own are entry points {GROUP}; install it anew")
    return kinds


KINDS: Kinds = load_kinds(tuple(entry_points(group=GROUP)))


def _default() -> str | None:
    """Return the name of the kind whose spec has a default for ``kind``, used where none is given; None: no such kind.

    Raises:
        BrokenKind: several kinds have such a default.
    """
    named = [name for name, kind in KINDS.items() if not kind.spec.model_fields["kind"].is_required()]
    if len(named) > 1:
        raise BrokenKind(f"at most one kind may be the default of its spec; {', '.join(named)} are")
    return named[0] if named else None


DEFAULT = _default()


def _add_default_kind(value: Any) -> Any:
    if isinstance(value, dict) and "kind" not in value and DEFAULT is not None:
        return {"kind": DEFAULT, **value}
    return value


def _union(models: Sequence[type[BaseModel]]) -> Any:
    if len(models) == 1:
        return Annotated[models[0], BeforeValidator(_add_default_kind)]
    return Annotated[Union[tuple(models)], Field(discriminator="kind"), BeforeValidator(_add_default_kind)]  # noqa: UP007


if TYPE_CHECKING:
    AnySpec = Any
    AnyReport = Any
    AnyDecision = Any
    AnyExecution = Any
else:
    AnySpec = _union([kind.spec for kind in KINDS.values()])
    _REPORTS = OneOf({name: kind.engine.report for name, kind in KINDS.items()})
    AnyReport = Annotated[Any, _REPORTS, BeforeValidator(_add_default_kind)]
    AnyDecision = _union([kind.decision for kind in KINDS.values()])
    AnyExecution = _union([kind.execution for kind in KINDS.values()])
_SPEC: TypeAdapter[Any] = TypeAdapter(AnySpec)


def parse_spec(document: Mapping[str, Any]) -> Any:
    """Validate a spec of any kind from a request.

    Raises:
        ValidationError: the spec is invalid, or of no installed kind; it names every invalid field.
    """
    return _SPEC.validate_python(document)


def read_spec(row: Mapping[str, Any]) -> Any:
    """Read a stored spec of any kind.

    Raises:
        MissingKind: the spec's kind isn't installed.
        BrokenRow: the row is no valid spec of its kind.
    """
    return _read("spec", row)


def read_decision(row: Mapping[str, Any]) -> Any:
    """Read a stored decision of any kind; raises MissingKind or, if it isn't valid for its kind, BrokenRow."""
    return _read("decision", row)


def read_report(row: Mapping[str, Any]) -> Any:
    """Read a stored report of any kind; raises MissingKind or, if it isn't valid for its kind, BrokenRow."""
    kind = str(row.get("kind", DEFAULT))
    report = KINDS[kind].engine.report
    with stored(f"a report of kind {kind}"):
        return converted({"kind": kind, **row}, report)


def _read(part: Literal["spec", "decision"], row: Mapping[str, Any]) -> Any:
    kind = str(row.get("kind", DEFAULT))
    model: type[BaseModel] = getattr(KINDS[kind], part)
    with stored(f"a {part} of kind {kind}"):
        return model.model_validate({"kind": kind, **row})


def read_or_raw(read: Callable[[Mapping[str, Any]], Any], row: Mapping[str, Any]) -> tuple[Any, str | None]:
    """Return the result of ``read``, and None; if it raises MissingKind or BrokenRow, ``row`` and the message."""
    try:
        return read(row), None
    except (MissingKind, BrokenRow) as error:
        return row, str(error)


def with_members() -> list[str]:
    """Return the names of the kinds whose workloads may have other workloads as members (as their jobs)."""
    return [name for name, kind in KINDS.items() if "members" in kind.spec.model_fields]


def layout_of(spec: Any) -> Any:
    """Return the layout of a spec of any kind; raises MissingKind if that isn't installed."""
    return KINDS[spec.kind].layout(spec)


def load_artifact(data: bytes) -> Artifact:
    """Load a trained policy of any kind from its serialised bytes.

    Raises:
        IncompatibleArtifact: the bytes are no artifact, of a kind that isn't installed, or of another version.
    """
    kind = kind_of(data)
    if kind not in KINDS:
        raise IncompatibleArtifact(f"the policy was made for kind {kind!r}; known here: {', '.join(KINDS)}")
    return KINDS[kind].artifact(data)
