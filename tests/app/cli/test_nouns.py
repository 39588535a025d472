"""Every noun's commands, on the application itself: same verbs, tables of 80 columns, JSON alone, a failure's line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
import uvicorn
from fastapi.testclient import TestClient
from steward_client.launcher import main as launcher
from typer.main import get_command
from typer.testing import CliRunner, Result

from app import queue
from app.cli.failures import RefusedError
from app.cli.main import cli
from app.cli.nouns import names_of
from app.cli.operations import KEYS, Operation, document, operations
from app.cli.remote import output, perform
from app.cli.remote.service import Service
from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.batched import SPEC
from tests.servers import clean_environment, free_port, wait_until

ROOT = Path(__file__).parents[3]
SAMPLES = "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\none,0,1,9.5,8\none,1,1,9.25,8\n"
OTHERS = ("feature.batch=8", "metric.iteration_seconds=3")
LONG = "a-workload-whose-name-is-as-long-as-names-may-be-and-no-letter-"[:62] + "z"
LISTS = [operation for operation in operations().values() if operation.columns]


COMMAND = get_command(cli)


def steward(*arguments: str, **more: Any) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda _: COMMAND)  # made once: it is large
        return CliRunner().invoke(cli, list(arguments), catch_exceptions=False, **more)


def done(*arguments: str, **more: Any) -> str:
    process = steward(*arguments, **more)
    assert process.exit_code == 0, process.output
    return process.stdout


def documents(*arguments: str) -> list[Any]:
    return [json.loads(line) for line in done(*arguments, "--json").splitlines()]


@pytest.fixture(scope="module")
def module_patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def database(_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("nouns") / "steward.db"
    shutil.copy(_sqlite_template, path)
    database = Database(f"sqlite:///{path}")
    yield database
    database.dispose()


@pytest.fixture(scope="module", autouse=True)
def client(
    database: Database, module_patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> TestClient:
    """The application answers every command; there is something in each list."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), database_url=str(database.engine.url))
    client = TestClient(create_app(settings, database))
    module_patch.setattr(queue, "enqueue", lambda _task, _identifier: None)
    module_patch.setattr(client, "close", lambda: None)
    module_patch.setattr("app.cli.remote.service.httpx.Client", lambda **_: client)
    module_patch.setenv("COLUMNS", "80")
    _fill(client, database)
    return client


def _fill(client: TestClient, database: Database) -> None:
    for name in (LONG, "resnet18"):
        assert client.post("/workloads", json={**SPEC, "name": name}).status_code == 201
        publish_model(database, name)
        publish_agent(database, name, promote=True)
        publish_evaluation(database, name)
        client.post(f"/workloads/{name}/models", json={})
        client.put(
            f"/workloads/{name}/exogenous/price",
            json={"issued_at": "2026-01-01T00:00:00Z", "rows": [{"time": "2026-01-02T00:00:00Z", "mean": 2.5}]},
        )
        sent = client.post(f"/workloads/{name}/samples", content=SAMPLES, headers={"content-type": "text/csv"})
        assert sent.json()["accepted"] == 1
        run = client.post("/runs", json={"workload": name}).json()
        report = {"allocation": run["decision"]["allocation"], "metrics": {"iteration_seconds": 3.0}}
        report |= {"features": {"batch": 8}}
        assert client.put(f"/runs/{run['id']}/iterations/0", json=report).is_success


def words(operation: Operation, workload: str) -> list[str]:
    """A command with what its path needs."""
    known = {"workload": workload, "version": "newest", "id": "newest", "run": "newest", "series": "price"}
    return [*operation.line.split(), *(known[name] for name in operation.parameters)]


@pytest.mark.parametrize("workload", ["resnet18", LONG])
@pytest.mark.parametrize("operation", LISTS, ids=lambda operation: operation.line)
def test_every_list_fits_80_columns_and_names_what_can_be_typed_again(operation: Operation, workload: str) -> None:
    command = words(operation, workload)
    head, *rows = done(*command).splitlines()
    assert rows or head == "none"
    assert max(len(line) for line in (head, *rows)) <= 80
    if rows:
        listed = documents(*command)
        assert len(rows) == len(listed)
        key, *others = [column.member for column in operation.columns if not column.wide]
        states = [member for member in others if member in output.STATES]
        names = [str(item[key]) for item in listed]
        assert all(row.startswith(f"{name} ") for row, name in zip(rows, names, strict=True))
        assert all(f" {item[state]} " in row for row, item in zip(rows, listed, strict=True) for state in states)


def test_a_list_that_is_piped_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONG not in done("run", "list")  # 80 columns have no room for it
    monkeypatch.delenv("COLUMNS")
    head, *rows = done("run", "list").splitlines()
    assert head.split()[:3] == ["id", "workload", "outcome"]
    assert [row.split()[:2] for row in rows] == [[run["id"], run["workload"]] for run in documents("run", "list")]


def test_an_unknown_name_is_told_without_its_value() -> None:
    failed = steward(
        "workload", "recommend", "resnet18", "iteration=1", "allocation.gpu=4", "metric.iteration_seconds=2"
    )
    assert failed.exit_code == 1
    assert "/allocation/gpu: unknown name; known: gpus;" in failed.stderr
    assert "not 4" not in failed.stderr


def test_nouns_have_the_same_verbs() -> None:
    for tag in document()["tags"]:
        result = done(tag["x-cli"], "--help")
        settings = tag["x-cli"] in ("caps", "drift", "retention")
        verbs = ("show", "set") if settings else ("list", "show", "create", "delete")
        assert [verb for verb in verbs if f"\n  {verb} " not in result] == []


def test_what_is_shown_is_a_tree_or_json_alone() -> None:
    result = done("workload", "show", "resnet18")
    assert "\nspec:\n" in result
    assert done("workload", "show", "resnet18", "-o", "name") == "resnet18\n"
    assert "\n    - name: gpus\n" in result
    (shown,) = documents("workload", "show", "resnet18")
    assert shown["spec"]["resources"][0]["name"] == "gpus"
    assert "\neffective: none\n" in done("retention", "show", "resnet18")  # not a head with nothing below
    (model,) = documents("model", "show", "resnet18")
    assert model["version"] == 1


def test_a_body_comes_from_a_file_standard_input_and_members(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(SPEC))
    assert "name: other" in done("workload", "create", str(file), "name=other", "weights.cost=0.5")
    assert documents("workload", "show", "other")[0]["spec"]["weights"]["cost"] == 0.5
    assert "name: third" in done("workload", "create", "-", "name=third", input=file.read_text())
    assert "workload third is deleted" in steward("workload", "delete", "third").stderr
    assert documents("workload", "delete", "other") == [{"workload": "other"}]


def test_a_run_is_started_reported_and_ended(tmp_path: Path) -> None:
    (started,) = documents("run", "create", "resnet18")
    more = tmp_path / "report.json"
    more.write_text('{"features": {"batch": 8}}')
    gpus = started["decision"]["allocation"]["gpus"]
    reported = done(
        *("run", "report", "newest", "0", f"allocation.gpus={gpus}", "metrics.iteration_seconds=2.5", "-f", str(more))
    )
    assert "\niteration: 1\n" in reported
    assert "state: failed" in done("run", "finish", started["id"], "--state", "failed", "--reason", "it diverged")
    assert "outcome: failed\noutcome_reason: it diverged" in done("run", "show", started["id"])
    (other,) = documents("run", "create", "resnet18")
    done("run", "finish", other["id"], "--state", "cancelled")
    assert [one["id"] for one in documents("run", "list", "--outcome", "failed")] == [started["id"]]
    assert [one["id"] for one in documents("run", "list", "--outcome", "cancelled")] == [other["id"]]
    assert "cancelled" in done("run", "list", "--state", "cancelled")
    assert f"run {started['id']} is deleted" in steward("run", "delete", started["id"]).stderr
    result = done("workload", "recommend", "resnet18", "iteration=3", f"allocation.gpus={gpus}", *OTHERS)
    assert "\niteration: 4\n" in result
    assert "seen: yes" in done("model", "predict", "resnet18", "newest", "allocation.gpus=1", "feature.batch=8")


def test_a_running_run_gets_another_deadline_and_a_failed_one_shows_its_output() -> None:
    (mine,), (other,) = documents("run", "create", "resnet18"), documents("run", "create", "resnet18")
    (changed,) = documents("run", "update", mine["id"], "--deadline", "45m")
    assert changed["start"]["targets"] == {"iteration_seconds": 2700.0}
    assert documents("run", "show", other["id"])[0]["start"] == {}
    assert "iteration_seconds: 600" in done("run", "update", mine["id"][:8], "--target", "iteration_seconds=600")
    (back,) = documents("run", "update", mine["id"], "--target", "iteration_seconds=null")
    assert back["start"]["targets"] == {}
    (capped,) = documents("run", "update", mine["id"], "--max-cost", "20", "--max-duration", "2h")
    assert capped["start"]["caps"] == {"cost": 20.0, "seconds": 7200.0}
    (capped,) = documents("run", "update", mine["id"], "--max-cost", "null", "--target", "iteration_seconds=600")
    assert capped["start"] == {"targets": {"iteration_seconds": 600.0}, "caps": {"seconds": 7200.0}}
    for options, result in (
        ((), "name --deadline, --target, --max-cost or --max-duration"),
        (("--deadline", "soon"), "soon: not a duration; 90s, 30m, 1h30m are accepted"),
        (("--target", "loss=3"), "/targets/loss: no metric with a target; known: iteration_seconds"),
        (("--target", "iteration_seconds"), "iteration_seconds"),
    ):
        process = steward("run", "update", mine["id"], *options)
        assert (process.exit_code in (1, 2), result in process.stderr) == (True, True), process.stderr
    stepwise = {**SPEC, "name": "stepwise", "metrics": [{"name": "iteration_seconds", "target": 20.0}]}
    done("workload", "create", "-", input=json.dumps(stepwise))
    (third,) = documents("run", "create", "stepwise")
    process = steward("run", "update", third["id"], "--deadline", "45m")
    assert (process.exit_code, "'stepwise' has no iteration_seconds of scope run" in process.stderr) == (2, True)
    done("run", "update", third["id"], "--target", "iteration_seconds=30")
    done("run", "finish", third["id"])
    done("workload", "delete", "stepwise")
    for run, body in ((mine, "output=epoch 1\nMemoryError"), (other, "reason=gone")):
        done("run", "finish", run["id"], "--state", "failed", body)
    assert "MemoryError" in done("run", "show", mine["id"])
    assert "output" not in done("run", "show", other["id"])
    assert "MemoryError" not in done("run", "list", "-o", "json")


def test_pages_are_followed_as_far_as_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "PAGE", 1)
    assert len(documents("workload", "list", "--all")) == 2
    assert len(documents("workload", "list", "--limit", "1")) == 1
    for form in ("table", "json", "yaml", "csv", "name"):
        cut = steward("workload", "list", "--limit", "1", "-o", form)
        assert (cut.stderr, "--all" in cut.stdout) == ("the first 1; --all has all\n", False)
    assert steward("workload", "list", "--limit", "1", "--json").stderr == "the first 1; --all has all\n"
    assert steward("workload", "list", "--all", "--json").stderr == ""


def test_what_has_ended_is_watched_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.remote.perform.time.sleep", lambda _: pytest.fail("waited for what has ended"))
    (run,) = documents("run", "create", "resnet18")
    done("run", "finish", run["id"])
    assert "state: finished" in done("run", "show", run["id"], "--watch")


@pytest.mark.parametrize(("status", "ends", "text"), [(401, 6, "set STEWARD_API_KEY"), (403, 6, "key create --scopes")])
def test_who_may_not_is_told_what_helps(
    status: int, ends: int, text: str, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"title": "No", "status": status, "detail": "not so; as the API has it"}
    monkeypatch.setattr(client, "request", lambda *_, **__: httpx.Response(status, json=problem))
    process = steward("workload", "list")
    assert (process.exit_code, process.stdout) == (ends, "")
    assert process.stderr.startswith("steward: No: not so; ")
    assert ("as the API has it" in process.stderr) == (status == 403)  # a remedy is told once
    assert text in process.stderr


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "no domain model yet: fit one with POST /workloads/a/models first",
            "fit one with `steward model create a` first",
        ),
        ("train one with POST /workloads/b-2/agents first", "train one with `steward agent create b-2` first"),
        ("no model 3: fit one with POST /workloads/a.b/models", "fit one with `steward model create a.b`"),
        ("POST /workloads/a/models/3/forecast", "POST /workloads/a/models/3/forecast"),
    ],
)
def test_what_is_to_be_created_is_told_as_a_command(said: str, told: str) -> None:
    assert str(RefusedError({"title": "Conflict", "status": 409, "detail": said})).endswith(told)


def test_a_conflict_is_told_by_its_detail_other_problems_by_their_fields() -> None:
    problem = {"title": "No", "detail": "all of it", "errors": [{"pointer": "/a", "message": "must be b"}]}
    texts = [str(RefusedError({**problem, "status": status})) for status in (409, 422)]
    assert texts == ["No: all of it", "No: /a: must be b"]


def test_what_is_promoted_is_told_and_its_policy_kept(tmp_path: Path, database: Database) -> None:
    publish_agent(database, "resnet18")
    assert "champion: 2" in done("agent", "promote", "resnet18", "newest", "--reason", "it is good")
    assert documents("agent", "promotions", "resnet18")[0]["reason"] == "it is good"
    file = tmp_path / "new" / "policy.safetensors"
    assert documents("agent", "policy", "resnet18", "champion", "--out", str(file)) == [{"file": str(file)}]
    assert file.stat().st_size > 8
    page = tmp_path / "page.html"
    assert str(page) in steward("evaluate", "report", "--out", str(page)).stderr
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_samples_come_out_as_they_went_in(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(SAMPLES.replace("one", "two"))
    uploaded = steward("samples", "create", "resnet18", str(file), "--json")
    assert json.loads(uploaded.stdout)["accepted"] == 1
    assert "mine.csv 100%" in uploaded.stderr
    assert "two,1,1" in done("samples", "export", "resnet18", "--execution", "two")
    out = tmp_path / "out.csv"
    done("samples", "export", "resnet18", "--out", str(out))
    assert "two,0,1" in out.read_text()
    unknown = steward("samples", "export", "resnet18", "--out", str(tmp_path / "out.xyz"))
    assert (unknown.exit_code, "say --format" in unknown.output) == (2, True)
    refused = steward("samples", "export", "resnet18", "--out", str(tmp_path / "out.swf"))
    assert (refused.exit_code, [path.name for path in tmp_path.glob("*.swf*")]) == (1, [])
    assert "samples of resnet18 are deleted" in steward("samples", "delete", "resnet18", "--execution", "two").stderr


@pytest.mark.parametrize(
    ("command", "status", "text"),
    [
        ("workload show nobody", 5, "no workload 'nobody'; `steward workload list` lists them"),
        ("agent show nobody champion", 5, "`steward workload list` lists"),
        ("run show nobody", 5, "`steward run list` lists"),
        ("job cancel nobody", 5, "`steward job list` lists"),
        (
            "workload update resnet18 weights.sla=-4",
            1,
            "/weights/sla: input should be greater than or equal to 0, not -4",
        ),
        ("workload update resnet18 weights", 2, "'weights' is not MEMBER=VALUE, such as allocation.gpus=4"),
        ("workload update resnet18 weights=1 weights.sla=1", 2, "weights is given as a value, too"),
        ("workload create nowhere.json", 2, "nowhere.json: No such file or directory"),
        ("model delete resnet18 7", 5, "workload 'resnet18' has no model 7; the newest is 1"),
        ("job list --state lost", 2, "'lost' is not one of"),
        ("--nowhere", 2, "steward: No such option: --nowhere; see `steward --help`"),
        (
            "workload lst",
            2,
            "steward workload: No such command 'lst'. Did you mean 'list'? see `steward workload --help`",
        ),
        (
            "run list --limit x",
            2,
            "steward run list: --limit: 'x' is not a whole number; see `steward run list --help`",
        ),
        (
            "run list --url localhost:1",
            2,
            "'localhost:1' is not the address of a service, such as http://127.0.0.1:8080",
        ),
        ("run list --url me:secret@localhost:1", 2, "--url: 'localhost:1' is not the address of a service"),
        ("job create fly resnet18", 2, "what: 'fly' is not one of 'fit', 'train', 'evaluate'"),
        ("job create evaluate nobody", 5, "no workload 'nobody'; `steward workload list` lists"),
        (
            "series show resnet18 nobody",
            5,
            "has no series 'nobody'; `steward series list resnet18` lists them",
        ),
        ("samples show resnet18 nobody", 5, "workload 'resnet18' has no execution 'nobody'; `steward samples list"),
    ],
)
def test_a_failure_is_a_line_with_its_remedy(command: str, status: int, text: str) -> None:
    process = steward(*command.split())
    assert (process.exit_code, process.stdout) == (status, "")
    assert text in process.stderr
    assert process.stderr.count("\n") == 1
    assert status == 2 or len(process.stderr.splitlines()) == 1


def test_a_job_is_followed_shown_and_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = documents("model", "create", "resnet18", "--no-wait")
    ended = {**job, "state": "succeeded", "progress": 1.0, "result": {"model": 1}}

    def followed(_self: Service, identifier: str) -> Iterator[dict[str, Any]]:
        yield {"state": "running", "progress": 0.5, "eta_seconds": 3.0, "phase": "fitting"}
        yield {**ended, "id": identifier}

    monkeypatch.setattr(Service, "follow", followed)
    process = steward("model", "create", "resnet18")
    assert "fit  50%  running, about 3 s left, fitting" in process.stderr
    assert "version: 1" in process.stdout
    watched = steward("job", "watch", job["id"], "--json")
    assert json.loads(watched.stdout)["state"] == "succeeded"

    def interrupted(_self: Service, _job: str) -> Iterator[dict[str, Any]]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Service, "follow", interrupted)
    stopped = steward("model", "create", "resnet18")
    assert (stopped.exit_code, stopped.stderr) == (130, "interrupted\n")
    assert documents("job", "show")[0]["state"] == "cancelled"
    assert steward("job", "watch", job["id"]).exit_code == 130
    assert documents("job", "show", job["id"])[0]["state"] == "queued"


def test_what_is_watched_is_told_again_when_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def sleep(length: float) -> None:
        seconds.append(length)
        if len(seconds) == 2:
            done("workload", "update", "resnet18", "weights.cost=0.25")
        if len(seconds) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("app.cli.remote.perform.time.sleep", sleep)
    process = steward("workload", "show", "resnet18", "--watch", "--json")
    assert process.exit_code == 130
    assert [json.loads(line)["spec_version"] for line in process.stdout.splitlines()] == [1, 2]


def test_every_place_of_a_path_is_a_key_or_a_number() -> None:
    named = {name for operation in operations().values() for name in operation.parameters}
    assert named - KEYS.keys() == {"iteration"}


@pytest.fixture(scope="module")
def address(client: TestClient) -> Iterator[str]:
    """Where the same application listens, for commands in processes of their own."""
    server = uvicorn.Server(uvicorn.Config(client.app, port=free_port(), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, what="the service to listen")
    yield f"http://127.0.0.1:{server.config.port}"
    server.should_exit = True
    thread.join(30)


def begun(address: str, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    environment = clean_environment({"STEWARD_URL": address, "STEWARD_ALLOWED_HOSTS": "testserver", **settings})
    command = [sys.executable, "-m", "app.cli", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


def test_whoever_reads_no_further_and_whoever_interrupts_is_not_answered_by_a_traceback(address: str) -> None:
    closed = begun(address, "workload", "show", "resnet18")
    assert closed.stdout is not None
    closed.stdout.close()
    watched = begun(address, "workload", "show", "resnet18", "--watch")
    assert watched.stdout is not None
    assert watched.stdout.readline().startswith("id: ")
    watched.send_signal(signal.SIGINT)
    assert (watched.communicate(timeout=60)[1], watched.returncode) == ("interrupted\n", 130)
    assert closed.stderr is not None
    assert (closed.stderr.read(), closed.wait(60)) == ("", 1)
    closed.stderr.close()


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("workload show res", ["resnet18"]),
        ("samples show resnet18 o", ["one"]),
        ("run list --workload res", ["resnet18"]),
        ("series show resnet18 n", []),
        ("series show resnet18 p", ["price"]),
        ("agent show resnet18 ch", ["champion"]),
        ("train --algorithm pl", ["planner"]),
        ("train --device c", ["cpu", "cuda"]),
        ("--url http://127.0.0.1:1 workload show res", []),
        ("--url http://127.0.0.1:1 workload show --url ADDRESS res", ["resnet18"]),
    ],
)
def test_a_shell_completes_verbs_and_names(address: str, typed: str, named: list[str]) -> None:
    typed = typed.replace("ADDRESS", address)
    arguments = ["steward", *typed.split()]
    words = {
        "_STEWARD_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(arguments),
        "COMP_CWORD": f"{len(arguments) - 1}",
    }
    printed, complaints = begun(address, **words).communicate(timeout=60)
    assert (printed.split(), complaints) == (named, "")


def test_versions_are_completed_of_the_workload_before_and_silence_is_no_failure(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = names_of("/workloads/{workload}/agents", "version", ("newest", "champion"))
    context = typer.Context(COMMAND)
    context.params = {"workload": "resnet18", "url": address}
    assert "1" in versions(context, "")
    assert versions(context, "ch") == ["champion"]
    monkeypatch.setattr("app.cli.nouns.json.load", lambda _: ["no", "object"])
    assert versions(context, "") == ["newest", "champion"]
    monkeypatch.undo()
    for away in ("http://127.0.0.1:1", "file:///etc", f"{address}/nowhere"):
        context.params = {"workload": "no one's", "url": away}
        assert versions(context, "") == ["newest", "champion"]


def test_what_is_no_verb_of_runs_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[list[str]] = []

    def launch(parts: Sequence[str], _program: str) -> int:
        launched.append([*parts])
        return 7

    monkeypatch.setattr(launcher, "main", launch)
    for result in (
        ["--", "list", "x"],
        ["--learn", "--deadline", "30m", "--", "python", "-c", "1"],
    ):
        assert steward("run", *result).exit_code == 7
    assert launched == [["--", "list", "x"], ["--learn", "--deadline", "30m", "--", "python", "-c", "1"]]
    assert "`steward run -- COMMAND` launches one" in " ".join(done("run", "--help").split())


def test_what_is_made_elsewhere_has_the_same_verb_here(tmp_path: Path) -> None:
    (job,) = documents("job", "create", "fit", "resnet18")
    assert (job["type"], job["state"]) == ("fit", "queued")
    done("job", "cancel", job["id"])
    (run,) = documents("run", "create", "resnet18")
    done("run", "finish", run["id"], "--state", "failed")
    done("run", "delete", run["id"])
    log = tmp_path / "log.csv"
    log.write_text(SAMPLES.replace("one", "two"))
    (answer,) = documents("samples", "create", "resnet18", str(log))
    assert answer["accepted"] == 1


def test_a_full_disk_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.cli.remote.perform.print_parts", full)
    process = steward("workload", "list")
    assert (process.exit_code, process.stderr) == (1, "steward: what was to be printed: No space left on device\n")
