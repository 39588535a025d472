"""What every shelf of samples must do: one test parameter per kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from numpy.testing import assert_equal

from app.database.base import utc_now
from app.kinds.contract.reading import Sound
from app.kinds.contract.samples import Shelf
from app.kinds.registry import KINDS, layout_of, read_spec
from app.samples.shelves import EXPORTS, FORMATS, SHELVES
from app.workloads.schemas import EXAMPLE

REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
LOG = "1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 -1 -1 -1 -1\n2 60 -1 300 8 -1 -1 8 200 -1 1 3 1 -1 -1 -1 -1 -1\n"
CLUSTER = {"name": "cluster", "kind": "workflow", "nodes": [{"name": "big", "processors": 8, "maximum": 1}]}
QUEUE = [
    {"now": 1, "running": [{"id": "a", "processors": 2, "node": "big-0", "start": 1}]},
    {"now": 9, "delta": True, "finished": [{"id": "a", "end": 7}]},
]
SAMPLE = json.dumps({"execution": "x", "reports": [REPORT, REPORT]})
FLOW = {"name": "x", "schemaVersion": "1.4", "workflow": {"tasks": [{"name": "a"}, {"name": "b", "parents": ["a"]}]}}


class Case(NamedTuple):
    """A kind: a spec, a body of two iterations or tasks in each of its formats, and what a run reports."""

    spec: Mapping[str, Any]
    bodies: Mapping[str, str]
    reports: list[dict[str, Any]]


CASES = {
    "iterative": Case(
        EXAMPLE,
        {
            "application/json": json.dumps({"samples": [json.loads(SAMPLE)]}),
            "application/x-ndjson": SAMPLE,
            "text/csv": "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
            "x,0,4,31.5,128\nx,1,4,31.5,128\n",
        },
        [REPORT, REPORT],
    ),
    "workflow": Case(CLUSTER, {"application/x-swf": LOG, "application/vnd.wfformat+json": json.dumps(FLOW)}, QUEUE),
}
of_each_kind = pytest.mark.parametrize("kind", SHELVES)


def shelf(kind: str) -> Shelf:
    return SHELVES[kind](layout_of(read_spec(dict(CASES[kind].spec))))


def read(kind: str, media_type: str) -> Sound:
    """The one execution of a body."""
    named = "x" if shelf(kind).formats[media_type].named else None
    body = iter(CASES[kind].bodies[media_type].encode().split(b"\n"))
    [found] = shelf(kind).formats[media_type].reader(shelf(kind), named).read(body)
    assert isinstance(found, Sound)
    return found


def row(sound: Sound) -> Any:
    """As it comes out of its table."""
    return SimpleNamespace(
        name=sound.execution,
        source="upload",
        iterations=sound.iterations,
        data=sound.data,
        summary=json.loads(json.dumps(sound.summary, allow_nan=False)),
        created_at=utc_now(),
    )


def test_every_kind_has_a_shelf_and_every_shelf_a_case() -> None:
    assert SHELVES.keys() == KINDS.keys() == CASES.keys()
    assert set(FORMATS) == {media for case in CASES.values() for media in case.bodies}
    assert set(EXPORTS) == {media for one in SHELVES.values() for media in one.exports}


@of_each_kind
def test_every_format_is_read_and_kept(kind: str) -> None:
    for media_type in shelf(kind).formats:
        sound, again = read(kind, media_type), read(kind, media_type)
        assert (sound.execution, sound.iterations) == ("x", 2)
        assert (sound.digest, sound.data) == (again.digest, again.data)
        assert len(sound.digest) == 64
        assert shelf(kind).summary(sound.data) == sound.summary
        told = shelf(kind).read(row(sound), reports=True)
        assert (told.execution, told.iterations) == ("x", 2)
        assert told.model_dump_json()


@of_each_kind
def test_what_is_exported_reads_back_as_it_was_kept(kind: str) -> None:
    here = shelf(kind)
    for media_type, how in here.exports.items():
        sound = read(kind, media_type)
        text = how.head(here) + "".join(how.body(here, row(sound)))
        [again] = here.formats[media_type].reader(here, None).read(iter(text.encode().split(b"\n")))
        assert isinstance(again, Sound)
        assert again.digest == sound.digest
        assert_equal(here.unpacked(again.data), here.unpacked(sound.data))


@of_each_kind
def test_a_run_becomes_an_execution_of_its_name(kind: str) -> None:
    sound = shelf(kind).of_run("r", CASES[kind].reports)
    assert sound is not None
    assert sound.execution == "r"
    assert sound.iterations > 0
    assert shelf(kind).read(row(sound), reports=False).iterations == sound.iterations
    assert shelf(kind).of_run("r", []) is None


@of_each_kind
def test_no_two_kinds_read_a_media_type_under_different_limits(kind: str) -> None:
    for media_type, form in shelf(kind).formats.items():
        assert (FORMATS[media_type].limit, FORMATS[media_type].lines) == (form.limit, form.lines)
