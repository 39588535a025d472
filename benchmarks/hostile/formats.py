"""All formats that Steward reads from outside, each with sound files and what reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from app.database import backup_postgresql, backup_sqlite
from app.database.backup_sqlite import BackupError
from app.database.engine import normalised_url
from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.registry import KINDS, load_artifact
from app.policies.base import IncompatibleArtifact
from benchmarks.hostile import artifacts
from benchmarks.hostile.mutations import MUTATIONS, ZIPPED, Mutation
from benchmarks.hostile.service import Answer, Service

ACCEPTED, REFUSED, FAILED = "accepted", "refused", "failed"
NUMBERS = count()
FRESH = re.compile(rb'("execution": "|^run-)', re.MULTILINE)
JSON = {"content-type": "application/json"}
ISSUE = {
    "issued_at": "2026-01-01T00:00:00Z",
    "rows": [{"time": f"2026-01-0{day}T00:00:00Z", "mean": 12.5, "low": 10, "high": 20.0} for day in range(1, 8)],
}


class Format(NamedTuple):
    """A format.

    Attributes:
        name: for people.
        seeds: sound files.
        take: what becomes of one: accepted, refused, or failed, and what is told of it.
        ways: what it suffers.
    """

    name: str
    seeds: Sequence[bytes]
    take: Callable[[bytes], tuple[str, str]]
    ways: Mapping[Mutation, float] = MUTATIONS


def judged(status: int, text: bytes) -> tuple[str, str]:
    """What an answer comes to."""
    outcome = ACCEPTED if status < 400 else REFUSED if status < 500 else FAILED
    return outcome, f"{status} {text[:300].decode('utf-8', 'replace')}"


def every(service: Service, folder: Path) -> Iterator[Format]:
    """All of them, on a service where one workload of each kind is registered."""
    for known in KINDS.values():
        service.call("POST", "/workloads", json.dumps(known.example.spec).encode(), JSON)
    yield Format("SQLite backup", [_backup(folder)], _restored(folder, backup_sqlite.check))
    for kind in KINDS:
        example = KINDS[kind].example
        for media in example.samples:
            yield _samples(service, kind, media)
        yield Format(f"{kind} report", [json.dumps(one).encode() for one in example.reports], _Reports(service, kind))
        yield Format(f"{kind} spec", [json.dumps(example.spec).encode()], _taken(service, "POST", "/workloads"))
    address = f"/workloads/{KINDS['inference'].example.spec['name']}/exogenous/arrivals"
    yield Format("exogenous series", [json.dumps(ISSUE).encode()], _taken(service, "PUT", address))
    yield Format("policy artifact", artifacts.policies(), _read(load_artifact, IncompatibleArtifact))
    for kind, seeds in artifacts.models().items():
        yield Format(f"{kind} domain model", seeds, _read(KINDS[kind].model, IncompatibleModel))


def _samples(service: Service, kind: str, media: str) -> Format:
    """Uploads, of what the kind shows and, where it hands them out, of what it makes of them."""
    example = KINDS[kind].example
    address = f"/workloads/{example.spec['name']}/samples"
    seeds = [example.samples[media]]
    lines = "application/x-ndjson"
    if KINDS[kind].samples.formats[media].named and media == "text/csv" and lines in example.samples:
        service.call("POST", f"{address}?execution=all", example.samples[lines], {"content-type": lines})
        seeds.append(service.call("GET", f"{address}?execution=all", headers={"accept": media}).body)
    named = KINDS[kind].samples.formats[media].named

    def take(content: bytes) -> tuple[str, str]:
        number = next(NUMBERS)  # under names of its own, whatever else is stored
        content = FRESH.sub(rb"\g<1>%d-" % number, content)
        own = f"?execution=e{number}" if named else ""
        packed = {"content-encoding": "gzip"} if content[:2] == b"\x1f\x8b" else {}
        return judged(*service.call("POST", f"{address}{own}", content, {"content-type": media, **packed}))

    return Format(f"{kind} {media}", seeds, take, ZIPPED)


class _Reports:
    """Reports of runs, one for each sound report, which it waits for; it is started anew when a report was taken."""

    def __init__(self, service: Service, kind: str) -> None:
        self._service, self._example = service, KINDS[kind].example
        self._runs, self._turns = [""] * len(self._example.reports), count()

    def __call__(self, content: bytes) -> tuple[str, str]:
        turn = next(self._turns) % len(self._runs)
        run = self._runs[turn] or self._begun(turn)
        result = judged(*self._reported(run, turn, content))
        self._runs[turn] = run if result[0] == REFUSED else ""
        return result

    def _begun(self, reported: int) -> str:
        body = json.dumps({"workload": self._example.spec["name"], **self._example.start}).encode()
        run = str(self._service.call("POST", "/runs", body, JSON).json()["id"])
        for place, report in enumerate(self._example.reports[:reported]):
            self._reported(run, place, json.dumps(report).encode())
        return run

    def _reported(self, run: str, place: int, content: bytes) -> Answer:
        return self._service.call("PUT", f"/runs/{run}/iterations/{place}", content, JSON)


def _taken(service: Service, method: str, address: str) -> Callable[[bytes], tuple[str, str]]:
    return lambda content: judged(*service.call(method, address, content, JSON))


def _read(read: Callable[[bytes], Any], refusal: type[Exception]) -> Callable[[bytes], tuple[str, str]]:
    def take(content: bytes) -> tuple[str, str]:
        try:
            read(content)
        except refusal as error:
            return REFUSED, str(error)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return FAILED, repr(error)
        return ACCEPTED, ""

    return take


def _backup(folder: Path) -> bytes:
    file = folder / "seed.backup"
    backup_sqlite.backup(folder / "steward.db", file, force=True)
    return file.read_bytes()


def dumped(url: str, folder: Path) -> Format:
    """Dumps of a PostgreSQL database that holds Steward's tables."""
    file = folder / "seed.dump"
    backup_postgresql.backup(normalised_url(url), file, force=True)
    return Format("PostgreSQL backup", [file.read_bytes()], _restored(folder, backup_postgresql.check))


def _restored(folder: Path, check: Callable[[Path], object]) -> Callable[[bytes], tuple[str, str]]:
    file = folder / "hostile.backup"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        check(file)

    return _read(read, BackupError)
