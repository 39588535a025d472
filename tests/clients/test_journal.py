"""A carried run with a journal goes on where its process ended, and each event counts once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from steward_client import CarriedRun, JournalError, Policy, StewardError, Unreachable, journal

from app.database.engine import Database
from app.database.tables import Run
from app.kinds.inference.example import SPEC
from tests.clients.test_policy import drive, policy
from tests.clients.test_run import Clock, Flaky, Handler, clock, forwarded, through

__all__ = ["clock", "forwarded", "policy"]


def killed(run: CarriedRun) -> None:
    """What a kill leaves: nobody holds the file, and nothing was handed over."""
    assert run._journal is not None
    run._journal.close()


def reported(client: TestClient, run: str, part: str) -> list[dict[str, Any]]:
    items = client.get(f"/runs/{run}/iterations?limit=500").json()["items"]
    return [event for one in items for event in one["report"][part]]


def runs(database: Database) -> list[str]:
    with database.reading() as session:
        return [run.id for run in session.query(Run)]


def same_book(one: CarriedRun, other: CarriedRun) -> None:
    """Moments at which nothing happened are not kept: smoothed figures differ by rounding."""
    moment = max(one.now, other.now)
    for run in (one, other):
        run._deciding._pass(moment)
    selection, own = (run._deciding._ledger.state() for run in (one, other))
    assert (selection.queues, selection.servers, selection.requests) == (own.queues, own.servers, own.requests)
    assert selection.control == own.control
    for name in ("rate", "answer_count", "quality"):
        np.testing.assert_allclose(getattr(selection, name), getattr(own, name), rtol=1e-9)


@pytest.mark.parametrize("flushed", [True, False])
def test_a_run_goes_on_in_another_process(
    client: TestClient, database: Database, forwarded: Handler, policy: Policy, tmp_path: Path, flushed: bool
) -> None:
    first = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    drive(first, 40)
    first.flush()
    drive_on(first, "late")
    if not flushed:
        first._seal()  # reported, and the answer never came
        first._report(first.iteration, first._unsent[0])
    killed(first)
    with (tmp_path / "run").open("ab") as file:
        file.write(b'{"arrived":{"us')  # the kill came in the middle of a line
    with CarriedRun(through(forwarded), policy, journal=tmp_path / "run") as second:
        assert second.id == first.id
        same_book(second, first)
        assert second.working == first.working
        second.arrived("shop", second.now, "late")  # once more, to be sure
        for server in list(second.working):
            second.finished(server, second.now + 0.1)
        drive_on(second, "after")
    names = [event["id"] for event in reported(client, second.id, "arrived") if event.get("id")]
    assert len(reported(client, second.id, "arrived")) == 42
    assert len(set(names)) == len(names) == 22
    assert not (tmp_path / "run").exists()
    assert runs(database) == [second.id]


def drive_on(run: CarriedRun, name: str) -> None:
    run.arrived("shop", run.now + 0.01, name)
    run.decide(run.now + 0.01)


def test_the_answer_to_the_start_may_be_lost_with_the_process(
    database: Database, forwarded: Handler, policy: Policy, tmp_path: Path, clock: Clock
) -> None:
    flaky = Flaky(forwarded, "lose the answer", *["refuse"] * 50)
    with pytest.raises(Unreachable):
        CarriedRun(through(flaky), policy, journal=tmp_path / "run", retry=clock.retry(5.0)).start()
    with CarriedRun(through(forwarded), policy, journal=tmp_path / "run") as run:
        drive_on(run, "a")
    assert runs(database) == [run.id]


def test_one_process_has_a_journal(forwarded: Handler, policy: Policy, tmp_path: Path) -> None:
    run = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    with pytest.raises(JournalError, match="another process"):
        CarriedRun(through(forwarded), policy, journal=tmp_path / "run")
    run.close()
    CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start().close()


def test_of_two_that_go_on_with_one_run_only_one_is_heard(
    client: TestClient, forwarded: Handler, policy: Policy, tmp_path: Path
) -> None:
    run = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    drive_on(run, "both")
    run.close()
    shutil.copy(tmp_path / "run", tmp_path / "copy")
    one, other = (CarriedRun(through(forwarded), policy, journal=tmp_path / name).start() for name in ("run", "copy"))
    drive_on(one, "one")
    drive_on(other, "other")
    one.flush()
    with pytest.raises(StewardError):
        other.flush()
    other.close()
    with pytest.raises(JournalError, match="somebody else"):  # what it had sealed is not what was reported
        CarriedRun(through(forwarded), policy, journal=tmp_path / "copy").start()
    assert [event["id"] for event in reported(client, run.id, "arrived")] == ["both", "one"]


def test_a_journal_that_everything_was_handed_over_of_begins_anew(
    forwarded: Handler, policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LARGEST_BYTES", 2_000)
    run = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    drive(run, 60)
    size = (tmp_path / "run").stat().st_size
    run.flush()
    assert (tmp_path / "run").stat().st_size < size
    drive_on(run, "after")
    killed(run)
    again = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    same_book(again, run)
    requests = again._deciding._ledger.requests
    again.arrived("shop", again.now, "r1")  # answered long ago
    assert again._deciding._ledger.requests == requests
    again.finish()
    again.close()


def test_a_full_disk_cuts_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = journal.Journal(tmp_path / "run")
    selection.append({"arrived": {"user": "shop", "at": 1.0}})
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    with pytest.raises(OSError, match="No space left"):
        selection.append({"arrived": {"user": "shop", "at": 2.0}})
    monkeypatch.undo()
    selection.append({"arrived": {"user": "shop", "at": 3.0}})
    selection.close()
    again = journal.Journal(tmp_path / "run")
    assert [line["arrived"]["at"] for line in again.lines] == [1.0, 3.0]
    again.close()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("no\n", "line 1 is not a line"),
        ('{"begun":{"key":"k","workload":"other"}}\n', "no journal of workload 'vision'"),
        ('{"a":1,"b":2}\n', "line 1"),
    ],
)
def test_what_is_no_journal_is_refused(
    forwarded: Handler, policy: Policy, tmp_path: Path, text: str, match: str
) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(JournalError, match=match):
        CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    assert (tmp_path / "run").read_text() == text
    assert SPEC["name"] == policy.spec["name"]


def test_a_run_that_ended_is_not_gone_on_with(
    client: TestClient, forwarded: Handler, policy: Policy, tmp_path: Path
) -> None:
    run = CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
    run.close()
    assert client.patch(f"/runs/{run.id}", json={"state": "failed"}).status_code == 200
    with pytest.raises(JournalError, match="is failed"):
        CarriedRun(through(forwarded), policy, journal=tmp_path / "run").start()
