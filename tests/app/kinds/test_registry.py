"""Kinds that are not there, or can't be used."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from fastapi.testclient import TestClient

from app import startup
from app.database.engine import Database
from app.database.tables import Workload
from app.kinds import registry
from app.kinds.registry import KINDS, BrokenKind, MissingKind, discovered, read_spec
from app.workloads.snapshot import WorkloadCache


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


def test_no_kind_at_all_says_what_to_do() -> None:
    with pytest.raises(BrokenKind, match="install it anew"):
        discovered([])


@pytest.mark.parametrize(
    ("name", "value"), [("x", "app.kinds.nowhere:KIND"), ("x", "app.kinds.iterative.kind:KIND"), ("x", "json:KIND")]
)
def test_a_kind_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(BrokenKind, match=f"kind {name} \\({value}\\)"):
        discovered([point(name, value)])


def test_a_kind_that_is_gone_is_named() -> None:
    with pytest.raises(MissingKind, match="kind 'gone' is not installed here"):
        read_spec({"kind": "gone", "name": "w"})


def test_start_up_tells_it_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def broken(name: str, *rest: object) -> object:
        if name == "app.kinds.registry":
            raise BrokenKind("kind x (nowhere:KIND) can't be imported")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(startup.StartupError, match="kind x"):
        startup.check_kinds()


@pytest.fixture
def orphan(backend: Database, workload: str) -> str:
    """A workload of a kind that is not installed, beside one that is."""
    with backend.session() as session:
        session.add(Workload(tenant="default", name="orphan", kind="gone", spec={"kind": "gone", "name": "orphan"}))
    return "orphan"


def test_what_is_stored_of_a_kind_that_is_gone_is_a_conflict_and_can_be_deleted(
    client: TestClient, workload: str, orphan: str
) -> None:
    for path in (f"/workloads/{orphan}", f"/decision?workload={orphan}", f"/workloads/{orphan}/samples"):
        answer = client.get(path)
        assert (answer.status_code, "'gone' is not installed" in answer.json()["detail"]) == (409, True)
    assert client.get(f"/workloads/{workload}").status_code == 200
    assert client.delete(f"/workloads/{orphan}").status_code == 204


def test_a_change_that_cannot_be_loaded_ends_no_looking(
    backend: Database, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = WorkloadCache(backend, 60.0)
    before = cache.get(workload)
    with backend.session() as session:
        session.query(Workload).filter_by(name=workload).one().revision += 1
    monkeypatch.setattr(type(KINDS[before.spec.kind]), "layout", lambda *_: 1 / 0)
    cache.poll()
    assert cache.peek(workload) is before
    monkeypatch.undo()
    cache.poll()
    assert cache.get(workload).revision == before.revision + 1
