"""Short ids: a path names a run, job or evaluation by its id, or by the first 6 or more digits of it."""

from __future__ import annotations

import re
from functools import partial

import anyio.to_thread
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.types import Scope

from app.database.engine import Database
from app.database.tables import Evaluation, Job, Run
from app.errors import FieldError, NotFound

Named = type[Run | Job | Evaluation]
"""A table whose rows paths name by id; the path of the list is the table's name."""
TABLES: dict[str, Named] = {table.__tablename__: table for table in (Run, Job, Evaluation)}
SHORT = re.compile(r"[0-9a-f]{6,31}+")
IN_PATH = re.compile(rf"((?:/ui)?/({'|'.join(TABLES)})/)({SHORT.pattern})(?=/|$)")
MOST_NAMED = 5
"""Number of candidates that an error names."""


def full_id(session: Session, tenant: str, table: Named, text: str, pointer: str) -> str:
    """The id that begins with ``text``; ``text`` itself if it is no short id, or none begins with it.

    A full id costs no query, a short one a search in the primary key.

    Args:
        tenant: whose rows are searched.
        table: whose ids are searched.
        text: the id, or its first digits.
        pointer: where the request has it, for the error.

    Raises:
        NotFound: several ids begin with it; the error names the first five.
    """
    if SHORT.fullmatch(text) is None:
        return text
    # The tenant's index would be searched from end to end: the expression keeps planners from taking it
    mine = func.coalesce(table.tenant, "") == tenant
    query = select(table.id).where(table.id.between(text, f"{text}g"), mine).order_by(table.id).limit(MOST_NAMED + 1)
    rows = session.scalars(query).all()
    if len(rows) < 2:
        return rows[0] if rows else text
    named = ", ".join(rows[:MOST_NAMED]) + (", …" if len(rows) > MOST_NAMED else "")
    collection = table.__tablename__
    message = f"must be more digits of one id of: {named}"
    raise NotFound(
        f"several {collection} have ids that begin with {text!r}: {named}; give more digits",
        errors=[FieldError(pointer, message, text)],
    )


async def complete_path(app: FastAPI, tenant: str, scope: Scope) -> bool:
    """Replace a short id in a request's path by the full one, from the application's database; False if it has none.

    Raises:
        NotFound: several of the tenant's ids begin with it.
    """
    match = IN_PATH.match(scope["path"])
    if match is None:
        return False
    before, collection, prefix = match.groups()
    identifier = await anyio.to_thread.run_sync(
        partial(_read, app.state.database, tenant, TABLES[collection], prefix), abandon_on_cancel=True
    )
    scope["path"] = f"{before}{identifier}{scope['path'][match.end() :]}"
    return identifier != prefix


def _read(database: Database, tenant: str, table: Named, digits: str) -> str:
    with database.reading() as session:
        return full_id(session, tenant, table, digits, f"/path/{table.__tablename__.removesuffix('s')}")
