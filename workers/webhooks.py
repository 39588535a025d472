"""Webhooks: a signed message to each receiver about each run that needs attention, and about each failed job.

Command `python -m workers.webhooks`, which a worker's main process runs as a child: a training may occupy all tasks of
a worker for hours, and a receiver that does not answer must delay neither tasks nor housekeeping. Every worker has
such a child; a row of `webhook_deliveries` is claimed before it is sent, so that one of them sends it.

What is noticed is recorded first, once for each receiver, subject and event, and then sent until the receiver answers
with status 2xx, at most for `TRIED_FOR`. A process that is killed after a message was sent, and before that was
recorded, leaves its claim to expire, and the message is sent again with the same `webhook-id`: at least once. A run
that was seen at risk is reported even if it is on track when the receiver answers at last; one that is at risk between
two looks only is not. A run that is at risk or stale again is not reported again.

Signatures follow Standard Webhooks 1.0 (standardwebhooks.com): HMAC-SHA256 of "id.timestamp.body", in base64.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import sys
import time
from base64 import b64encode
from collections.abc import Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import httpx
from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, load_only

from app import startup
from app.database.base import utc_now
from app.database.engine import Database
from app.database.leases import Clock, database_time, insert
from app.database.tables import Job, Run, WebhookDelivery, Workload
from app.jobs.repository import JOB_REMEDY, failure
from app.kinds.contract.run_outcome import LIVE
from app.kinds.registry import read_or_raw, read_spec
from app.runs import outcomes
from app.runs.outcomes import ATTENTION, HAPPENED, LONGEST, Staleness, silence
from app.settings import Settings, receiver_of, site_of
from app.telemetry import logs

logger = logging.getLogger(__name__)

LOOKED_BACK = TRIED_FOR = timedelta(days=1)
"""Age up to which ended runs and jobs are reported, and a message is sent again."""
CLAIMED_FOR = timedelta(minutes=1)
"""Time after which a message whose sender has vanished is sent again; several times ``ANSWER_SECONDS``."""
ANSWER_SECONDS, FORGET_SECONDS = 10.0, 3600.0
"""Most seconds for one answer, and seconds between two deletions of old rows."""
FIRST_PAUSE, PAUSE_FACTOR, LONGEST_PAUSE = timedelta(seconds=15), 4, timedelta(minutes=15)
"""Pauses between two attempts: 15 s, 1 min, 4 min, then 15 min."""
AT_ONCE = 100
"""Most events that are recorded, and messages that are sent to one receiver, in a round."""
BUSY = ("status 408", "status 429")
"""Problems that are not the message's; another status 4xx refuses one message, and the next may be taken."""
Message = dict[str, Any]


def message(
    event: str, at: datetime, what: str, reason: str, advice: str, link: str | None, **data: str | None
) -> Message:
    """The body of a message, as Standard Webhooks recommends it, with `text` for receivers such as Slack's.

    Args:
        event: type of the message.
        at: when it happened, or was noticed.
        what: what happened, in a sentence.
        reason: why, in words; cut to 1,000 characters.
        advice: what to do, as an imperative.
        link: URL of the page; None: not known.
        data: further members of `data`.
    """
    reason = reason[:LONGEST]
    lines = f"*{what}*", reason, f"What to do: {advice}.", link or ""
    # Escaped as Slack asks: a reason may quote anything, and "<!channel>" would call everybody
    text = "\n".join(filter(None, lines)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    result = {**data, "event": event, "what": what, "reason": reason, "what_to_do": advice, "link": link}
    return {"type": event, "timestamp": at.isoformat(), "text": text, "data": result}


def record(database: Database, receiver: str, settings: Settings, clock: Clock = database_time) -> int:
    """Record messages about what has happened to runs and jobs and is not recorded for a receiver yet.

    At most 100 (`AT_ONCE`) of live runs, of ended runs and of jobs each. Returns their number.
    """
    with database.reading() as session:
        now = clock(session)
        result = *_of_runs(session, receiver, settings, now), *_of_jobs(session, receiver, settings, now)
    beside = {"receiver": receiver, "attempts": 0, "due_at": now, "created_at": now}
    rows = [
        {"subject": subject, "event": body["type"], "tenant": tenant, "message": body, **beside}
        for subject, tenant, body in result
    ]
    if not rows:  # as nearly always: then SQLite's lock for writing is not taken
        return 0
    with database.session() as session:
        product = session.execute(insert(session, WebhookDelivery).values(rows).on_conflict_do_nothing())
        return int(product.rowcount)  # type: ignore[attr-defined]


def _unrecorded(receiver: str, subject: Any, event: Any) -> ColumnElement[bool]:
    row = WebhookDelivery
    return ~exists().where(row.receiver == receiver, row.subject == subject, row.event == event)


def _link(settings: Settings, path: str) -> str | None:
    return f"{settings.public_url.rstrip('/')}{path}" if settings.public_url else None


def _of_runs(session: Session, receiver: str, settings: Settings, now: datetime) -> Iterator[tuple[str, str, Message]]:
    """Yield id, tenant, message of runs at risk, stale, failed, missed or capped that are not recorded yet."""
    result, since = silence(Staleness.of(settings, lambda: now)), now - LOOKED_BACK
    live = and_(Run.outcome.in_(LIVE), or_(Run.finished_at.is_(None), Run.finished_at >= since))
    # An expression: SQLite is to use the index of times, not that of outcomes, which has all failed runs ever
    ended = and_(func.coalesce(Run.outcome, "").in_(("failed", "missed", "cap_reached")), Run.finished_at >= since)
    for where in (live, ended):
        query = (
            select(Run, result.outcome, result.silent_seconds, result.expected, Workload)
            .options(load_only(Run.tenant, Run.finished_at, Run.outcome, Run.outcome_reason))
            .join(Workload, Workload.id == Run.workload_id)
            .where(where, result.outcome.in_(ATTENTION))
            .where(_unrecorded(receiver, Run.id, literal("run.") + result.outcome))
            .order_by(Run.created_at)
            .limit(AT_ONCE)
        )
        for run, outcome, silent, expected, workload in session.execute(query):
            spec, problem = read_or_raw(read_spec, workload.spec)
            reason = outcomes.reason(run, outcome, silent, expected) or "no reason was given"
            yield (
                run.id,
                run.tenant,
                message(
                    f"run.{outcome}",
                    run.finished_at or now,
                    f"Run {run.id[:8]} of {workload.name} {HAPPENED[outcome]}",
                    reason,
                    outcomes.remedy(outcome, reason, None if problem else spec),
                    _link(settings, f"/ui/runs/{run.id}"),
                    tenant=run.tenant,
                    workload=workload.name,
                    run=run.id,
                ),
            )


def _of_jobs(session: Session, receiver: str, settings: Settings, now: datetime) -> Iterator[tuple[str, str, Message]]:
    """Yield id, tenant and message of failed jobs not recorded yet, except trials, which belong to another job."""
    query = (
        select(Job, Workload.name)
        .join(Workload, Workload.id == Job.workload_id)
        .where(Job.state == "failed", Job.type != "trial", Job.finished_at >= now - LOOKED_BACK)
        .where(_unrecorded(receiver, Job.id, "job.failed"))
        .order_by(Job.finished_at)
        .limit(AT_ONCE)
    )
    for job, workload in session.execute(query):
        yield (
            job.id,
            job.tenant,
            message(
                "job.failed",
                job.finished_at or now,
                *failure(job, workload),
                JOB_REMEDY,
                _link(settings, f"/ui/jobs/{job.id}"),
                tenant=job.tenant,
                workload=workload,
                job=job.id,
            ),
        )


def forget(session: Session, now: datetime) -> None:
    """Give up what was not delivered for a day, and delete old rows, but not those of live runs, whose events would be
    recorded again."""
    row = WebhookDelivery
    dropped = {"due_at": None, "problem": func.coalesce(row.problem, "not sent within a day")}
    session.execute(update(row).where(row.due_at.is_not(None), row.created_at <= now - TRIED_FOR).values(dropped))
    live = exists().where(Run.id == row.subject, Run.finished_at.is_(None))
    session.execute(delete(row).where(row.created_at < now - LOOKED_BACK - TRIED_FOR, ~live))


async def send(http: httpx.AsyncClient, url: str, key: bytes, identifier: str, at: datetime, body: Message) -> str:
    """POST a message signed by ``key``; return why it was not received, "" if the answer's status is 2xx. Never raises.

    The answer's body is not read, and redirects are not followed. ``at``: time of the attempt.
    """
    try:
        content = json.dumps(body, sort_keys=True).encode()  # in ASCII: texts may have lone surrogates
        stamp = str(int(at.timestamp()))
        signature = hmac.digest(key, f"{identifier}.{stamp}.".encode() + content, "sha256")
        headers = {
            "content-type": "application/json",
            "user-agent": "steward",
            "webhook-id": identifier,
            "webhook-timestamp": stamp,
            "webhook-signature": f"v1,{b64encode(signature).decode()}",
        }
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            http.stream("POST", url, content=content, headers=headers, follow_redirects=False) as answer,
        ):
            return "" if answer.is_success else f"status {answer.status_code}"
    except TimeoutError:
        return f"no answer within {ANSWER_SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - it is recorded, by its class: its text may quote the URL
        return type(error).__name__


class Webhooks:
    """Records and sends messages to all receivers of the settings.

    Args:
        database: database with runs, jobs and messages.
        settings: the receivers' URLs, and the key that signs messages.
        clock: the database's time; messages are due by it.
    """

    def __init__(self, database: Database, settings: Settings, clock: Clock = database_time) -> None:
        self._database, self._settings, self._clock = database, settings, clock
        self._receivers = {receiver_of(url): url for url in settings.webhook_urls}
        self._turns = dict[str, asyncio.Task[None]]()
        self._forget_at = 0.0

    async def round(self) -> list[asyncio.Task[None]]:
        """Record what is new, delete what is old, and begin to send each receiver what is due, unless that goes on.
        Returns the tasks that send, one for each receiver; they raise nothing.

        Raises:
            SQLAlchemyError: the database is unavailable.
        """
        await asyncio.to_thread(self._look)
        for receiver in self._receivers:
            if receiver not in self._turns or self._turns[receiver].done():
                self._turns[receiver] = asyncio.create_task(_logged(self._turn(receiver)))
        return list(self._turns.values())

    def _look(self) -> None:
        for receiver, url in self._receivers.items():
            if number := record(self._database, receiver, self._settings, self._clock):
                logger.info("webhook %s: %s new messages", site_of(url), f"{number:,}")
        if time.monotonic() >= self._forget_at:
            with self._database.session() as session:
                forget(session, self._clock(session))
            self._forget_at = time.monotonic() + FORGET_SECONDS

    async def _turn(self, receiver: str) -> None:
        """Send a receiver what is due, the oldest first, until it seems to be down."""
        if due := await asyncio.to_thread(self._due, receiver):
            async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:
                for one in due:
                    if not await self._deliver(http, one):
                        return

    def _due(self, receiver: str) -> Sequence[WebhookDelivery]:
        row = WebhookDelivery
        with self._database.reading() as session:
            now = self._clock(session)
            due = select(row).where(row.receiver == receiver, row.due_at <= now, row.created_at > now - TRIED_FOR)
            return session.scalars(due.order_by(row.due_at, row.created_at).limit(AT_ONCE)).all()

    async def _deliver(self, http: httpx.AsyncClient, row: WebhookDelivery) -> bool:
        """Claim, send and record one message; False if the receiver seems to be down, so that others can wait."""
        # In threads: a wait for the database must not look like a receiver's that does not answer
        if (at := await asyncio.to_thread(self._claim, row)) is None:
            return True  # another worker has it
        identifier = f"msg_{row.subject}_{row.event.replace('.', '_')}"
        problem = await send(
            http, self._receivers[row.receiver], self._settings.webhook_key, identifier, at, row.message
        )
        await asyncio.to_thread(self._record, row, identifier, problem)
        return not problem or (problem.startswith("status 4") and problem not in BUSY)

    def _claim(self, row: WebhookDelivery) -> datetime | None:
        """Claim a message for this process; the present time, or None if another process has changed it."""
        with self._database.session() as session:
            now = self._clock(session)
            claimed = {"attempts": row.attempts + 1, "due_at": now + CLAIMED_FOR}
            return now if self._change(session, row, row.attempts, claimed) else None

    def _record(self, row: WebhookDelivery, identifier: str, problem: str) -> None:
        attempt = row.attempts + 1
        with self._database.session() as session:
            now = self._clock(session)
            if not problem:
                self._change(session, row, attempt, {"due_at": None, "delivered_at": now, "problem": None})
                return
            pause = min(FIRST_PAUSE * PAUSE_FACTOR ** min(attempt - 1, 8), LONGEST_PAUSE)
            given_up = now + pause >= row.created_at + TRIED_FOR
            self._change(session, row, attempt, {"due_at": None if given_up else now + pause, "problem": problem})
        after = "dropped" if given_up else f"tried again in {pause.total_seconds():g} s"
        site = site_of(self._receivers[row.receiver])
        logger.warning("webhook %s: %s was not received: %s; %s", site, identifier, problem, after)

    @staticmethod
    def _change(session: Session, row: WebhookDelivery, attempts: int, values: dict[str, Any]) -> bool:
        """Update a row if its number of attempts is still ``attempts``; whether it was updated."""
        table = WebhookDelivery
        same = table.receiver == row.receiver, table.subject == row.subject, table.event == row.event
        changed = session.execute(update(table).where(*same, table.attempts == attempts).values(values))
        return bool(changed.rowcount)  # type: ignore[attr-defined]


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    """Await ``work``; log a failure instead of raising it: the next round tries again."""
    try:
        await work
    except SQLAlchemyError as error:
        logger.warning("webhooks wait for the database: %s", startup.first_line(error))
    except Exception:  # a defect must not end the others' messages
        logger.exception("a round of webhooks failed")


async def _work(webhooks: Webhooks, seconds: float) -> None:
    """Run rounds for ever, with pauses of ``seconds``; failures are logged."""
    while True:
        await _logged(webhooks.round())
        await asyncio.sleep(seconds)


async def tried(settings: Settings) -> dict[str, str]:
    """Send each receiver a message of type `webhook.test`; return why it was not received, "" if it was, by URL."""
    now = utc_now()
    body = message(
        "webhook.test",
        now,
        "Steward's messages arrive here",
        "an operator ran `steward webhooks test`",
        "nothing",
        _link(settings, "/"),
    )
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:
        post = partial(send, http, key=settings.webhook_key, at=now, body=body)
        identifier = f"msg_test_{int(now.timestamp())}"
        answers = await asyncio.gather(*(post(url=url, identifier=identifier) for url in settings.webhook_urls))
    return dict(zip(settings.webhook_urls, answers, strict=True))


def main() -> int:
    """Run rounds until killed; with the argument `test` send one message to each receiver instead.

    Returns the exit status of a test: 0 all were received, 1 one was not, 2 no receiver is set.
    """
    settings = startup.load_settings()
    logs.configure(settings)
    for name in ("httpx", "httpcore"):  # httpx logs whole URLs
        logging.getLogger(name).setLevel(logging.WARNING)
    if sys.argv[1:] == ["test"]:
        answers = asyncio.run(tried(settings))
        for url, problem in answers.items():
            sys.stdout.write(f"{'fail' if problem else 'ok'}  {site_of(url)}  {problem}".rstrip() + "\n")
        if not answers:
            sys.stderr.write("steward: no receiver is set; set STEWARD_WEBHOOK_URLS and STEWARD_WEBHOOK_SECRET\n")
        return 1 if any(answers.values()) else 0 if answers else startup.EXIT_STATUS
    database = Database(settings.database_url, settings)
    asyncio.run(_work(Webhooks(database, settings), settings.webhook_seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
