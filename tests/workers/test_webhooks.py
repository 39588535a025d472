"""Webhooks, with real receivers: what is told, to whom, how often; receivers that fail or hang; killed senders."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import psutil
import pytest
from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from app.cli.main import cli
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Job, Run, WebhookDelivery, Workload
from app.settings import Settings, receiver_of
from app.startup import StartupError, load_settings
from tests.batched import SPEC
from tests.servers import free_port, wait_until
from workers import housekeeping, webhooks
from workers.webhooks import AT_ONCE, Webhooks, forget

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
PATH = "/services/T000/B000/a-secret"


class Post(NamedTuple):
    """A request that a receiver got."""

    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body


class Receiver(ThreadingHTTPServer):
    """Records what it gets; answers with the next of ``statuses`` (0: not at all), then with 200."""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.posts, self.let_go = list(statuses), list[Post](), threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PATH}"

    @property
    def events(self) -> list[tuple[str, str]]:
        """Types of the messages, each with the workload's tenant and name."""
        messages = [one.message for one in self.posts]
        return sorted((one["type"], f"{one['data']['tenant']}/{one['data']['workload']}") for one in messages)


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == PATH
        self.server.posts.append(Post({name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:
            self.server.let_go.wait(60)
            return
        self.send_response(status)
        if status == 307:
            self.send_header("location", self.server.url)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    with Receiver(*statuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.let_go.set()
        server.shutdown()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def given_urls(*urls: str, **more: Any) -> Settings:
    return Settings(webhook_urls=urls, webhook_secret=SECRET, **more)


def add(database: Database, *result: Any) -> None:
    with database.session() as session:
        for one in result:
            session.add(one)
            session.flush()


def workload(database: Database, name: str = "resnet18", tenant: str = "default") -> str:
    """Id of a new workload."""
    workload = Workload(name=name, tenant=tenant, kind="iterative", spec={**SPEC, "name": name})
    add(database, workload)
    return workload.id


def run(owner: str, outcome: str, tenant: str = "default", hours: float = 1.0, **more: Any) -> Run:
    """A run that began some ``hours`` ago, and ended a minute ago unless its outcome is one of live runs."""
    now, live = utc_now(), outcome in ("on_track", "at_risk", "stale")
    ended = None if live else now - timedelta(minutes=1)
    values = {
        "state": "running" if live else "failed" if outcome == "failed" else "finished",
        "outcome": "on_track" if outcome == "stale" else outcome,
        "created_at": now - timedelta(hours=hours),
        "finished_at": ended,
        "outcome_reason": None if outcome in ("stale", "on_track") else f"why it is {outcome}",
        "quiet": outcome in ("on_track", "at_risk"),
    }
    beside = {"spec_version": 1, "start": {}, "state_vector": [], "decision": {"iteration": 0}}
    return Run(workload_id=owner, tenant=tenant, **{**values, **beside, **more})


def job(owner: str, state: str = "failed", tenant: str = "default", **more: Any) -> Job:
    error = {"detail": "no sample has a positive time"} if state == "failed" else None
    values = {"type": "fit", "request": {}, "finished_at": utc_now() - timedelta(minutes=1), "error": error}
    return Job(workload_id=owner, tenant=tenant, state=state, **{**values, **more})


def after(seconds: float) -> Callable[[Session], datetime]:
    """A database's clock that is so many seconds ahead."""
    return lambda _session: utc_now() + timedelta(seconds=seconds)


def rounds(database: Database, settings: Settings, *ahead: float) -> None:
    """One round at each of some times, in seconds from now; by default one now."""

    async def one(seconds: float) -> None:
        await asyncio.gather(*await Webhooks(database, settings, after(seconds)).round())

    for seconds in ahead or (0.0,):
        asyncio.run(one(seconds))


def crowd(database: Database) -> None:
    """Runs of each outcome and jobs of each state, of two tenants that use the same name for a workload."""
    mine, theirs = workload(database), workload(database, tenant="lab")
    outcomes = ("at_risk", "stale", "missed", "failed", "on_track", "met", "completed", "cancelled")
    add(database, *(run(mine, outcome) for outcome in outcomes), run(mine, "failed"), run(theirs, "missed", "lab"))
    add(database, job(mine), job(mine, "succeeded"), job(mine, type="trial"), job(theirs, "failed", "lab"))
    long_ago = utc_now() - timedelta(hours=25)
    add(database, run(mine, "failed", hours=30, finished_at=long_ago), job(mine, finished_at=long_ago))


CROWD = [
    ("job.failed", "default/resnet18"),
    ("job.failed", "lab/resnet18"),
    ("run.at_risk", "default/resnet18"),
    ("run.failed", "default/resnet18"),
    ("run.failed", "default/resnet18"),
    ("run.missed", "default/resnet18"),
    ("run.missed", "lab/resnet18"),
    ("run.stale", "default/resnet18"),
]


def test_each_run_and_job_that_needs_attention_is_told_once_to_each_receiver(
    any_database: Database, receiver: Receiver
) -> None:
    crowd(any_database)
    with receiving() as other:
        urls = given_urls(receiver.url, other.url)
        rounds(any_database, urls, 0, 30, 4000)
        assert receiver.events == other.events == CROWD
        add(any_database, run(workload(any_database, "late"), "failed"))
        rounds(any_database, urls, 4100)
        assert receiver.events == other.events == sorted([*CROWD, ("run.failed", "default/late")])
    with receiving() as third:  # a receiver that is added later is told of the last day
        rounds(any_database, given_urls(receiver.url, third.url), 4200)
        assert len(third.posts) == len(CROWD) + 1 == len(receiver.posts)


def test_a_message_says_what_happened_why_what_to_do_and_where(database: Database, receiver: Receiver) -> None:
    owner = workload(database)
    danger = run(owner, "at_risk", outcome_reason="41 % likely to meet <!channel> & the deadline")
    silent, broken = run(owner, "stale"), job(owner)
    add(database, danger, silent, broken)
    rounds(database, given_urls(receiver.url, public_url="https://steward.example/"))
    messages = {one.message["type"]: one.message for one in receiver.posts}
    assert messages["run.at_risk"]["data"] == {
        "tenant": "default",
        "workload": "resnet18",
        "run": danger.id,
        "event": "run.at_risk",
        "what": f"Run {danger.id[:8]} of resnet18 is at risk",
        "reason": "41 % likely to meet <!channel> & the deadline",
        "what_to_do": "raise the deadline or the maximum of GPUs",
        "link": f"https://steward.example/ui/runs/{danger.id}",
    }
    assert datetime.fromisoformat(messages["run.at_risk"]["timestamp"]).tzinfo is not None
    assert messages["run.at_risk"]["text"].splitlines() == [
        f"*Run {danger.id[:8]} of resnet18 is at risk*",
        "41 % likely to meet &lt;!channel&gt; &amp; the deadline",
        "What to do: raise the deadline or the maximum of GPUs.",
        f"https://steward.example/ui/runs/{danger.id}",
    ]
    assert messages["run.stale"]["data"]["reason"].startswith("no report for 1 h")
    failed = messages["job.failed"]["data"]
    assert (failed["job"], failed["reason"]) == (broken.id, "no sample has a positive time")
    assert failed["link"] == f"https://steward.example/ui/jobs/{broken.id}"


def test_a_receiver_can_verify_every_attempt_and_knows_it_again(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.WARNING, "httpx")  # as the process sets it
    owner = workload(database)
    receiver.statuses = [503, 307]
    add(database, run(owner, "failed", outcome_reason="exit status 1 – “naïve”"))
    urls = given_urls(receiver.url)
    rounds(database, urls, 0, 1, 14, 16, 17, 70, 80, 5000)
    assert len(receiver.posts) == 3  # at 0, after 15 s more, and after 1 min more: then it has it
    stamps = list[int]()
    for one in receiver.posts:
        identifier, stamp = one.headers["webhook-id"], one.headers["webhook-timestamp"]
        signed = f"{identifier}.{stamp}.".encode() + one.body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        assert one.headers["webhook-signature"] == f"v1,{expected}"
        stamps.append(int(stamp))
    assert {one.headers["webhook-id"] for one in receiver.posts} == {receiver.posts[0].headers["webhook-id"]}
    assert len({one.body for one in receiver.posts}) == 1
    assert (stamps[1] - stamps[0] in (15, 16, 17), stamps[2] - stamps[1] >= 60) == (True, True)
    output = caplog.text
    assert "was not received: status 503; tried again in 15 s" in output
    assert "was not received: status 307; tried again in 60 s" in output
    assert PATH not in output
    assert base64.b64encode(KEY).decode() not in output


def test_dead_and_hanging_receivers_keep_nothing_from_others_and_are_given_up_after_a_day(
    database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhooks, "ANSWER_SECONDS", 0.2)
    owner = workload(database)
    add(database, *(run(owner, "failed") for _ in range(3)))
    with receiving(0, 0) as hanging:
        urls = given_urls(f"http://127.0.0.1:{free_port()}{PATH}", hanging.url, receiver.url)
        rounds(database, urls)
        assert (len(receiver.posts), len(hanging.posts)) == (3, 1)
        assert "no answer within 0.2 s; tried again in 15 s" in caplog.text
        rounds(database, urls, 1, 20, 21, 22)
        assert len({one.headers["webhook-id"] for one in hanging.posts}) == 3  # one that fails keeps back no other
    rounds(database, urls, *(3600.0 * hour for hour in range(1, 23)), *(82_800.0 + 300 * count for count in range(20)))
    with database.reading() as session:
        rest = session.scalars(select(WebhookDelivery).where(WebhookDelivery.delivered_at.is_(None))).all()
    assert len(rest) == 3
    assert {(one.problem, one.due_at) for one in rest} == {("ConnectError", None)}
    assert all(one.attempts > 5 for one in rest)
    assert "dropped" in caplog.text


def test_messages_that_are_refused_keep_back_none_of_another_tenant(database: Database) -> None:
    mine, theirs = workload(database), workload(database, tenant="lab")
    add(database, *(run(mine, "failed", hours=2) for _ in range(5)), *(run(mine, "missed", hours=2) for _ in range(5)))
    with receiving(*[413] * 9, 404) as refusing, receiving(429, 408, 500) as busy:
        add(database, run(theirs, "failed", "lab"))
        urls = given_urls(refusing.url, busy.url)
        rounds(database, urls)
        assert len(refusing.posts) == 11
        assert ("run.failed", "lab/resnet18") in refusing.events
        assert len(busy.posts) == 1
        rounds(database, urls, 0, 0)
        assert (len(refusing.posts), len(busy.posts)) == (11, 3)  # each of these ended a round


def test_a_hanging_receiver_delays_no_later_look_for_others(database: Database, receiver: Receiver) -> None:
    owner = workload(database)
    add(database, run(owner, "failed"))
    with receiving(0) as hanging:

        async def two_rounds() -> None:
            sender = Webhooks(database, given_urls(hanging.url, receiver.url))
            first, other = await sender.round()
            await other
            add(database, job(owner))
            again, another = await sender.round()
            await another
            assert again is first
            assert not first.done()
            first.cancel()

        asyncio.run(two_rounds())
        assert (len(receiver.posts), len(hanging.posts)) == (2, 1)


def test_a_lone_surrogate_in_a_reason_is_sent(database: Database, receiver: Receiver) -> None:
    one, other = (job(workload(database, name)) for name in ("one", "other"))
    one.error = {"detail": "no file \udce9.csv"}
    add(database, one, other)
    rounds(database, given_urls(receiver.url))
    assert {post.message["data"]["reason"] for post in receiver.posts} == {
        "no file \udce9.csv",
        "no sample has a positive time",
    }


def test_what_is_older_than_a_day_is_not_sent_after_a_pause(any_database: Database, receiver: Receiver) -> None:
    owner, urls = workload(any_database), given_urls(receiver.url)
    receiver.statuses = [500]
    add(any_database, run(owner, "failed"), run(owner, "failed"))
    rounds(any_database, urls)  # the first fails, so that the second waits
    rounds(any_database, urls, 86_401)
    assert len(receiver.posts) == 1
    with any_database.reading() as session:
        rows = session.execute(select(WebhookDelivery.due_at, WebhookDelivery.problem)).all()
    assert sorted(rows, key=str) == [(None, "not sent within a day"), (None, "status 500")]


@pytest.mark.servers
def test_of_two_workers_that_look_at_once_one_tells(postgres_url: str, receiver: Receiver) -> None:
    databases = [Database(postgres_url) for _ in range(2)]
    owner = workload(databases[0])
    add(databases[0], *(run(owner, "failed") for _ in range(20)), *(job(owner) for _ in range(5)))
    both = threading.Barrier(2)

    def work(database: Database) -> None:
        both.wait(30)
        rounds(database, given_urls(receiver.url))

    threads = [threading.Thread(target=work, args=(one,)) for one in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with databases[0].reading() as session:
        attempts = session.scalars(select(WebhookDelivery.attempts)).all()
    for database in databases:
        database.dispose()
    identifiers = [one.headers["webhook-id"] for one in receiver.posts]
    assert len(identifiers) == len(set(identifiers)) == 25
    assert attempts == [1] * 25


@pytest.mark.servers
def test_what_a_killed_process_was_sending_is_sent_again(postgres_database: Database, tmp_path: Any) -> None:
    owner = workload(postgres_database)
    add(postgres_database, run(owner, "failed"), run(owner, "missed"))
    with receiving(200, 0) as receiver:
        environment = {
            **os.environ,
            "STEWARD_DATA_DIR": str(tmp_path),
            "STEWARD_DATABASE_URL": postgres_database.url.render_as_string(hide_password=False),
            "STEWARD_WEBHOOK_URLS": receiver.url,
            "STEWARD_WEBHOOK_SECRET": SECRET,
        }
        with subprocess.Popen([sys.executable, "-m", "workers.webhooks"], env=environment) as process:
            wait_until(lambda: len(receiver.posts) == 2, 60, "the second message")
            process.kill()
        urls = given_urls(receiver.url)
        rounds(postgres_database, urls, 5)
        assert len(receiver.posts) == 2  # another process may still be at it
        rounds(postgres_database, urls, 90, 200)
        first, second, again = (one.headers["webhook-id"] for one in receiver.posts)
        assert first != second == again
        assert receiver.posts[1].body == receiver.posts[2].body


def test_a_worker_keeps_a_process_that_tells(
    database: Database, settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "RESTART_SECONDS", 0.1)
    secrets = {"WEBHOOK_URLS": receiver.url, "WEBHOOK_SECRET": SECRET, "WEBHOOK_SECONDS": "0.1"}
    for name, value in {**secrets, "DATABASE_URL": settings.database_url, "DATA_DIR": str(settings.data_dir)}.items():
        monkeypatch.setenv(f"STEWARD_{name}", value)
    owner = workload(database)
    add(database, run(owner, "failed"), run(owner, "at_risk"))
    housekeeper = housekeeping.Housekeeper(Settings(sweep_seconds=0.1), "worker")
    housekeeper.start()
    try:
        wait_until(lambda: len(receiver.posts) == 2, 60, "two messages")
        (first,) = telling()
        first.kill()
        add(database, job(owner))
        wait_until(lambda: len(receiver.posts) == 3, 60, "another process to tell the third")
    finally:
        housekeeper.stop()
    assert receiver.posts[2].message["type"] == "job.failed"
    wait_until(lambda: telling() == [], 30, "the process to end with its worker")


def telling() -> list[psutil.Process]:
    """Processes of webhooks that this process has started, and that have not ended."""
    results = [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in results if "workers.webhooks" in one.cmdline()]


def test_many_events_are_told_in_portions(database: Database, receiver: Receiver) -> None:
    owner = workload(database)
    add(database, *(run(owner, "failed") for _ in range(AT_ONCE + 5)))
    rounds(database, given_urls(receiver.url))
    assert len(receiver.posts) == AT_ONCE
    rounds(database, given_urls(receiver.url))
    assert len({one.headers["webhook-id"] for one in receiver.posts}) == AT_ONCE + 5 == len(receiver.posts)


def test_a_run_at_risk_is_told_once_however_often_it_is_and_ends_with_another_message(
    database: Database, receiver: Receiver
) -> None:
    owner, urls = workload(database), given_urls(receiver.url)
    one, other = run(owner, "at_risk"), run(owner, "at_risk")
    add(database, one, other)
    receiver.statuses = [500]
    rounds(database, urls)

    def becomes(outcome: str, **more: Any) -> None:
        with database.session() as session:
            for name, value in {"outcome": outcome, **more}.items():
                setattr(session.get(Run, one.id), name, value)

    becomes("on_track")
    rounds(database, urls, 30, 31)  # it was recorded: it is told, though it is over
    assert sorted(post.message["data"]["run"] for post in receiver.posts[1:]) == sorted([one.id, other.id])
    becomes("at_risk")
    rounds(database, urls, 3 * 86_400)  # rows of live runs stay
    assert len(receiver.posts) == 3
    becomes("missed", state="finished", finished_at=utc_now())
    rounds(database, urls, 40)
    assert receiver.posts[3].message["type"] == "run.missed"


def test_old_rows_are_deleted_but_those_of_live_runs(any_database: Database, receiver: Receiver) -> None:
    owner = workload(any_database)
    live = run(owner, "at_risk")
    add(any_database, live, run(owner, "failed"), job(owner))
    rounds(any_database, given_urls(receiver.url))
    with any_database.session() as session:
        forget(session, utc_now() + timedelta(hours=47))
        assert session.scalar(select(func.count()).select_from(WebhookDelivery)) == 3
        forget(session, utc_now() + timedelta(hours=49))
        assert session.scalars(select(WebhookDelivery.subject)).all() == [live.id]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"webhook_urls": ("https://a.example/secret",)}, "needs STEWARD_WEBHOOK_SECRET, base64 of 24 to 64 bytes"),
        ({"webhook_urls": ("https://a.example",), "webhook_secret": "secret"}, "openssl rand -base64 32"),
        ({"webhook_secret": base64.b64encode(bytes(23)).decode()}, "24 to 64 bytes"),
        ({"webhook_secret": base64.b64encode(bytes(65)).decode()}, "24 to 64 bytes"),
        ({"webhook_urls": ("ftp://a.example/secret",), "webhook_secret": SECRET}, "begins with https:// or http://"),
        ({"webhook_urls": ("https:///secret",), "webhook_secret": SECRET}, "names a host"),
        ({"webhook_urls": ("https://a.example/secret <b>",), "webhook_secret": SECRET}, "neither spaces, quotes nor <"),
        ({"webhook_urls": ("https://a.example/secret\n",), "webhook_secret": SECRET}, "STEWARD_WEBHOOK_URLS begins"),
        ({"webhook_urls": ("https://a.example/secret",) * 17, "webhook_secret": SECRET}, "names at most 16 receivers"),
        ({"webhook_urls": {"/secret": 1}, "webhook_secret": SECRET}, "webhook_urls: input should be a valid tuple"),
        ({"public_url": "steward.example"}, "STEWARD_PUBLIC_URL begins with"),
        ({"public_url": "https://steward.example/?a=b"}, "neither query nor fragment"),
        ({"public_url": "https://steward.example/#a"}, "neither query nor fragment"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_without_quoting_secrets(
    values: dict[str, Any], text: str
) -> None:
    with pytest.raises(StartupError) as refused:
        load_settings(**values)
    assert text in str(refused.value)
    for secret in ("/secret", SECRET, "'secret'", base64.b64encode(bytes(23)).decode()):
        assert secret not in str(refused.value)
    with pytest.raises(ValidationError) as plain:
        Settings(**values)
    assert "/secret" not in str(plain.value)


def test_urls_keep_their_case_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_WEBHOOK_URLS", "https://a.example/B00/Xyz, https://b.example/Q")
    monkeypatch.setenv("STEWARD_WEBHOOK_SECRET", SECRET)
    settings = Settings()
    assert settings.webhook_urls == ("https://a.example/B00/Xyz", "https://b.example/Q")
    assert "Xyz" not in repr(settings)
    assert SECRET not in repr(settings)


def test_the_command_tries_each_receiver(receiver: Receiver, tmp_path: Any) -> None:
    def tried(*urls: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "STEWARD_WEBHOOK_URLS": ",".join(urls), "STEWARD_WEBHOOK_SECRET": SECRET}
        command = [sys.executable, "-m", "app.cli", "webhooks", "test", "--data", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    done = tried(receiver.url)
    assert (done.returncode, done.stdout) == (0, f"ok  http://127.0.0.1:{receiver.server_port}\n")
    assert receiver.posts[0].message["type"] == "webhook.test"
    dead = free_port()
    done = tried(receiver.url, f"http://127.0.0.1:{dead}{PATH}")
    assert (done.returncode, done.stdout.splitlines()[1]) == (1, f"fail  http://127.0.0.1:{dead}  ConnectError")
    assert PATH not in done.stdout + done.stderr
    done = tried()
    assert (done.returncode, done.stdout) == (2, "")
    assert "set STEWARD_WEBHOOK_URLS" in done.stderr


def test_the_command_lists_the_newest_messages(
    settings: Settings, database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = workload(database), workload(database, tenant="lab")
    receiver.statuses = [500]
    add(database, run(mine, "failed"))
    rounds(database, given_urls(receiver.url))
    add(database, broken := job(theirs, tenant="lab"))
    rounds(database, given_urls(receiver.url), 1)

    def listed(*options: str) -> str:
        done = CliRunner().invoke(cli, ["webhooks", "list", "--data", str(settings.data_dir), *options])
        assert done.exit_code == 0, done.output
        return done.output

    result = {one["event"]: one for one in map(json.loads, listed("--json").splitlines())}
    site = f"http://127.0.0.1:{receiver.server_port}"
    assert {one["receiver"] for one in result.values()} == {receiver_of(receiver.url)}
    monkeypatch.setenv("STEWARD_WEBHOOK_URLS", receiver.url)
    monkeypatch.setenv("STEWARD_WEBHOOK_SECRET", SECRET)
    result = {one["event"]: one for one in map(json.loads, listed("--json").splitlines())}
    assert {one["receiver"] for one in result.values()} == {site}
    assert PATH not in listed("--json")
    assert (result["run.failed"]["state"], result["job.failed"]["state"]) == ("due", "delivered")
    assert datetime.fromisoformat(result["run.failed"]["due_at"]).tzinfo is not None
    assert result["run.failed"]["problem"] == "status 500"
    assert result["run.failed"]["delivered_at"] is None
    job_failed = result["job.failed"]
    assert (job_failed["tenant"], job_failed["subject"], job_failed["attempts"]) == ("lab", broken.id, 1)
    assert job_failed["delivered_at"] is not None
    assert {"run.failed", "job.failed", "due", "delivered"} <= set(listed().split())
    rounds(database, given_urls(f"http://127.0.0.1:{free_port()}{PATH}"), 90_000)  # another: it gives up the first's
    states = {(one["event"], one["state"]) for one in map(json.loads, listed("--json").splitlines())}
    assert {("run.failed", "dropped"), ("job.failed", "delivered")} <= states


def test_the_command_says_how_to_get_tables_that_are_not_there(tmp_path: Any) -> None:
    sqlite3.connect(tmp_path / "steward.db").close()
    (tmp_path / "steward.db").touch()
    done = CliRunner().invoke(cli, ["webhooks", "list", "--data", str(tmp_path)])
    assert done.exit_code == 2, done.output
    assert len(done.stderr.splitlines()) == 1
    assert "no such table" in done.stderr
    assert "run `steward db upgrade`" in done.stderr
