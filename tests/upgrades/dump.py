"""Databases as a release left them: how they were made, are made again from their SQL text, and read by the API.

``python -m tests.upgrades.dump NAME`` writes for SQLite and PostgreSQL what is beside this module: a database with two
tenants, in each two workloads, a run that goes on and one that has ended, samples, a model, an agent and keys
(`NAME.sqlite.sql`), and what the service answered (`NAME.sqlite.json`). A name is that of the migration at which the
database stands, whose workloads are of kind `iterative`; `MIGRATION.kinds` has two workloads of each other kind, with
fitted models and evaluations. It is done once, by the release that freezes a migration; a later release must read these
files, and never writes them again.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app import queue
from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.kinds.cluster.layout import Layout as ClusterLayout
from app.kinds.cluster.policies import Network
from app.kinds.inference.layout import Layout as InferenceLayout
from app.kinds.registry import KINDS, read_spec
from app.kinds.workflow.policies import StrategyPolicy
from app.kinds.workflow.policies import save as save_scheduler
from app.main import create_app
from app.policies.artifact import save
from app.policies.base import Arrays
from app.settings import Settings
from app.workloads import service as workloads
from migrations.runner import upgrade
from tests.app.domain_models import published
from tests.app.evaluations.published import publish_evaluation
from tests.app.kinds.inference.published import network
from tests.batched import SPEC
from tests.servers import postgres_program, postgres_server
from workers.tasks.base import perform
from workers.tasks.trained import fit

FOLDER = Path(__file__).parent
ENGINES = ("sqlite", "postgresql")
WORKLOADS = ("resnet18", "bert")
OTHERS = ("cluster", "inference", "workflow")
Answers = dict[str, dict[str, Any]]
"""What the service answers, by key and path."""
SPOKEN = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
"""Lines of a dump that make no part of the database."""


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """The database at a URL; its connections are closed at the end."""
    database = Database(url)
    try:
        yield database
    finally:
        database.dispose()


def serving(database: Database) -> FastAPI:
    """The service on a database."""
    url = database.url.render_as_string(hide_password=False)
    return create_app(Settings(data_dir=Path(tempfile.gettempdir()), database_url=url), database)


def ask(database: Database, key: str, paths: list[str]) -> dict[str, Any]:
    """The service's answers to GET of some paths; raises AssertionError where one isn't 200."""
    with TestClient(serving(database)) as client:
        answers = {path: client.get(path, headers={"Authorization": f"Bearer {key}"}) for path in paths}
    assert {path: answer.text for path, answer in answers.items() if answer.status_code != 200} == {}
    return {path: answer.json() for path, answer in answers.items()}


def _fill(database: Database, tenant: str) -> tuple[str, list[str]]:
    """Put a tenant's nouns into a database; its key, and the paths under which they are read."""
    key = keys.create(database, tenant, KeyRequest.model_validate({"scopes": ["admin"]}), "release").key
    assert key is not None
    paths = ["/workloads", "/runs", "/keys", "/audit", "/jobs", "/caps"]
    with TestClient(serving(database), headers={"Authorization": f"Bearer {key}"}) as client:

        def send(method: str, path: str, body: Any) -> Any:
            answer = client.request(method, path, json=body)
            assert answer.is_success, answer.text
            return answer.json()

        for name in WORKLOADS:
            home = f"/workloads/{name}"
            send("POST", "/workloads", {**SPEC, "name": name})
            send("PATCH", home, {"weights": {"sla": 2.0, "cost": 0.1, "change": 0.01}})  # a second version
            reports = [_report(4, 16.0 + number) for number in range(3)]
            samples = [{"execution": one, "reports": reports} for one in ("first", "second")]
            send("POST", f"{home}/samples", {"samples": samples})
            forecast = {"time": "2026-01-01T00:00:00Z", "mean": 1.0, "low": 0.5, "high": 2.0}
            send("PUT", f"{home}/exogenous/price", {"issued_at": "2026-01-01T00:00:00Z", "rows": [forecast]})
            send("PUT", f"{home}/retention", {"events_days": 30})
            if tenant == published.TENANT:
                published.publish_model(database, name)
                published.publish_agent(database, name, promote=True)
                paths += [f"{home}/models", f"{home}/models/1", f"{home}/agents", f"{home}/agents/1"]
            for state in ("finished", "running"):
                run = send("POST", "/runs", {"workload": name})["id"]
                for iteration in range(2):
                    send("PUT", f"/runs/{run}/iterations/{iteration}", _report(4, 20.0 + iteration))
                if state == "finished":
                    send("PATCH", f"/runs/{run}", {"state": state})
                paths += [f"/runs/{run}", f"/runs/{run}/iterations"]
            paths += [home, f"{home}/samples", f"{home}/exogenous/price", f"{home}/retention", f"{home}/drift"]
        send("PUT", "/caps", {})
    return key, paths


def _agent(spec: Any) -> bytes:
    """An agent's artifact for a spec of another kind than `iterative`."""
    if spec.kind == "workflow":
        return save_scheduler(StrategyPolicy({"rule": "ljf"}))
    if spec.kind == "inference":
        return network(InferenceLayout(spec))
    layout = ClusterLayout(spec)
    weight = np.linspace(-1, 1, layout.actions * len(layout.entries)).reshape(layout.actions, -1)
    arrays: Arrays = {"advantage.weight": weight, "advantage.bias": np.zeros(layout.actions)}
    config = {"algorithm": "ppo", "layers": [], "activation": "relu", "dueling": False}
    return save(Network.build(config, arrays), "cluster", layout.entries, layout.actions, {})


def _fill_kinds(database: Database, tenant: str) -> tuple[str, list[str]]:
    """Put a tenant's workloads of the other kinds into a database; its key, and the paths under which they are read."""
    key = keys.create(database, tenant, KeyRequest.model_validate({"scopes": ["admin"]}), "release").key
    assert key is not None
    paths = ["/workloads", "/runs", "/jobs", "/evaluations"]
    with TestClient(serving(database), headers={"Authorization": f"Bearer {key}"}) as client:

        def send(method: str, path: str, body: Any = None, **more: Any) -> Any:
            answer = client.request(method, path, **({"json": body} if body is not None else more))
            assert answer.is_success, answer.text
            return answer.json()

        for kind, name in ((kind, f"{kind}-{number}") for kind in OTHERS for number in (1, 2)):
            home, example = f"/workloads/{name}", KINDS[kind].example
            send("POST", "/workloads", {**example.spec, "name": name})
            send("PATCH", home, example.patch)  # a second version
            for form, body in example.samples.items():
                send("POST", f"{home}/samples", content=body, headers={"Content-Type": form})
            paths += [home, f"{home}/samples", f"{home}/drift", f"{home}/models", f"{home}/agents"]
            if tenant == published.TENANT:
                perform(database, Settings(), send("POST", f"{home}/models", {})["id"], fit)
                with database.session() as session:
                    row = workloads.require(session, tenant, name)
                    trained = TrainingResult(
                        2, 1, "planted", 0, {"algorithm": "planted"}, _agent(read_spec(row.spec)), True, "as planted"
                    )
                    agents.publish(session, row.id, trained)
                evaluation = publish_evaluation(database, name)
                paths += [f"{home}/models/1", f"{home}/agents/1", f"/evaluations/{evaluation}"]
            for state in ("finished", "running"):
                run = send("POST", "/runs", {"workload": name, **example.start})["id"]
                for iteration, report in enumerate(example.reports[:2]):
                    send("PUT", f"/runs/{run}/iterations/{iteration}", report)
                if state == "finished":
                    send("PATCH", f"/runs/{run}", {"state": state})
                paths += [f"/runs/{run}", f"/runs/{run}/iterations"]
    return key, paths


def _report(gpus: int, seconds: float) -> dict[str, Any]:
    return {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": seconds}, "features": {"batch": 128}}


def restore(name: str, engine: str, url: str) -> Answers:
    """Make a release's database again in an empty one; what the service answered then.

    Args:
        name: the database's name, which begins with the migration at which it stands.
        engine: one of `ENGINES`.
        url: of the empty database; SQLite's file need not be there.
    """
    text = (FOLDER / f"{name}.{engine}.sql").read_text()
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(text)
    else:
        with psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
            connection.execute(text.encode())
    answers: Answers = json.loads((FOLDER / f"{name}.{engine}.json").read_text())
    return answers


def _write(name: str, engine: str, url: str) -> None:
    revision, _, kinds = name.partition(".")
    upgrade(url, revision)
    with opened(url) as database:
        callers = [(_fill_kinds if kinds else _fill)(database, tenant) for tenant in (published.TENANT, "blue")]
        answers = {key: ask(database, key, paths) for key, paths in callers}
    (FOLDER / f"{name}.{engine}.json").write_text(json.dumps(answers, sort_keys=True) + "\n")
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            dumped = "\n".join(connection.iterdump())
    else:
        program = postgres_program("pg_dump")
        assert program is not None
        address = url.replace("postgresql+psycopg", "postgresql")
        command = [program, "--no-owner", "--no-privileges", "--inserts", address]
        dumped = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in dumped.splitlines() if line and not line.startswith(SPOKEN)]
    (FOLDER / f"{name}.{engine}.sql").write_text("\n".join(lines) + "\n")


def main(name: str) -> None:
    """Write the files of a database."""
    queue.enqueue = lambda *_: None  # jobs are done here
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        server.execute("CREATE DATABASE release")
        _write(name, "sqlite", f"sqlite:///{folder}/steward.db")
        _write(name, "postgresql", server.url("release"))


if __name__ == "__main__":
    main(sys.argv[1])
