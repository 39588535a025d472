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


def full_id(session: Session, tenant: str, table: Named, given: str, pointer: str) -> str:
    """The id that begins with ``given``; ``given`` itself if it is no short id, or none begins with it.

    A full id costs no query, a short one a search in the primary key.

    Args:
        tenant: whose rows are searched.
        table: whose ids are searched.
        given: the id, or its first digits.
        pointer: where the request has it, for the error.

    Raises:
        NotFound: several ids begin with it; the error names the first five.
    """
    if SHORT.fullmatch(given) is None:
        return given
    # The tenant's index would be searched from end to end: the expression keeps planners from taking it
    mine = func.coalesce(table.tenant, "") == tenant
    query = select(table.id).where(table.id.between(given, f"{given}g"), mine).order_by(table.id).limit(MOST_NAMED + 1)
    found = session.scalars(query).all()
    if len(found) < 2:
        return found[0] if found else given
    named = ", ".join(found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
    collection = table.__tablename__
    message = f"must be more digits of one id of: {named}"
    raise NotFound(
        f"several {collection} have ids that begin with {given!r}: {named}; give more digits",
        errors=[FieldError(pointer, message, given)],
    )


async def complete_path(app: FastAPI, tenant: str, scope: Scope) -> bool:
    """Replace a short id in a request's path by the full one, from the application's database; False if it has none.

    Raises:
        NotFound: several of the tenant's ids begin with it.
    """
    found = IN_PATH.match(scope["path"])
    if found is None:
        return False
    before, collection, given = found.groups()
    identifier = await anyio.to_thread.run_sync(
        partial(_read, app.state.database, tenant, TABLES[collection], given), abandon_on_cancel=True
    )
    scope["path"] = f"{before}{identifier}{scope['path'][found.end() :]}"
    return identifier != given


def _read(database: Database, tenant: str, table: Named, given: str) -> str:
    with database.reading() as session:
        return full_id(session, tenant, table, given, f"/path/{table.__tablename__.removesuffix('s')}")
