"""What tasks read of a workload before they close their session."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import ExogenousRow, Workload
from app.kinds.registry import KINDS, read_spec
from workers.tasks import inputs

HOUR = 3600.0
EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def hour(n: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + n * HOUR, UTC)


def say(session: Session, workload: Workload, series: str, issued: float, **means: float) -> None:
    """Store an issue: ``h3=12.5`` says 12.5 of 3 o'clock."""
    for name, mean in means.items():
        stored = {"workload_id": workload.id, "series": series, "time": hour(int(name[1:])), "issued_at": hour(issued)}
        session.add(ExogenousRow(**stored, mean=mean, low=mean - 1, high=mean + 2))


@pytest.fixture
def workload(any_database: Database) -> Workload:
    """A workload with two series, one of them issued twice."""
    kind = next(iter(KINDS.values()))
    spec = read_spec(dict(kind.example.spec))
    with any_database.session() as session:
        row = Workload(name=spec.name, kind=kind.name, spec=spec.model_dump(mode="json"))
        other = Workload(name="other", kind=kind.name, spec=spec.model_dump(mode="json"))
        session.add_all([row, other])
        session.flush()
        say(session, row, "price", -2, h3=30, h1=10, h2=20)
        say(session, row, "price", -1, h2=21, h4=41)
        say(session, row, "arrivals", -2, h1=5)
        say(session, other, "price", 0, h1=99)
    return row


def test_series_from_outside_are_read_with_the_samples(any_database: Database, workload: Workload) -> None:
    with any_database.reading() as session:
        exogenous = inputs.workload(session, workload, with_samples=True).exogenous
        assert inputs.workload(session, workload, with_samples=False).exogenous == {}
    assert sorted(exogenous) == ["arrivals", "price"]
    price = exogenous["price"]
    assert ((price.time - EPOCH) / HOUR).tolist() == [1, 2, 3, 4]
    assert price.mean.tolist() == [10, 21, 30, 41]
    assert (price.mean - price.low).tolist() == [1] * 4
    assert (price.high - price.mean).tolist() == [2] * 4
    assert exogenous["arrivals"].mean.tolist() == [5]


def test_what_was_issued_later_is_left_out(any_database: Database, workload: Workload) -> None:
    with any_database.reading() as session:
        exogenous = inputs.workload(session, workload, with_samples=True, until=hour(-1.5)).exogenous
        nothing = inputs.workload(session, workload, with_samples=True, until=hour(-3)).exogenous
    assert exogenous["price"].mean.tolist() == [10, 20, 30]
    assert nothing == {}


@pytest.mark.parametrize("with_samples", [False, True])
def test_what_members_tell_of_themselves_is_read(database: Database, *, with_samples: bool) -> None:
    with database.session() as session:
        rows = list[Workload]()
        for name in ("iterative", "cluster"):
            spec = dict(KINDS[name].example.spec)
            members = {"members": [row.name for row in rows]} if rows else {}
            rows.append(Workload(name=spec["name"], kind=name, spec={**spec, **members}))
        session.add_all(rows)
        session.flush()
        first, cluster = rows
        assert [*inputs.workload(session, cluster, with_samples=with_samples).members] == [first.name]
        assert inputs.workload(session, first, with_samples=with_samples).members == {}
