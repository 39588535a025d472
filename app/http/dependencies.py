"""FastAPI dependencies of endpoints, and the OpenAPI documentation of their errors.

``create_app`` sets ``app.state.database``, ``.settings``, ``.snapshots`` and ``.staleness``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Request
from fastapi.types import DecoratedCallable
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, TypeAdapter

from app.database.engine import Database
from app.http.caller import Caller
from app.nouns import NOUNS
from app.runs.outcomes import Staleness
from app.settings import Settings

SLUG = r"^[a-z0-9][a-z0-9._-]{0,62}$"


class ProblemField(BaseModel):
    """One invalid field: where it is, its value, and what would be accepted."""

    pointer: str = Field(description="JSON pointer into the body, or `/query/<name>`.", examples=["/resources/0/step"])
    message: str = Field(description="What is accepted.", examples=["must be greater than 0"])
    value: Any = Field(default=None, description="The value given.")


class Problem(BaseModel):
    """An error as a problem document (RFC 9457), with the invalid fields."""

    type: str = Field(examples=["/problems/not-found"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str
    instance: str | None = None
    errors: list[ProblemField] | None = None


REASONS = {
    400: "Malformed request.",
    401: "Missing or invalid key.",
    403: "The key lacks the required scope, or a page of another origin sent the request.",
    404: "Not found.",
    406: "None of the accepted media types can be produced.",
    409: "Conflict with the current state.",
    413: "The body exceeds the limit.",
    415: "Unsupported content type or encoding.",
    421: "The request names a host that this service does not serve.",
    422: "Invalid input; `errors` names each field.",
    429: "Too many requests, jobs or executions for this key or tenant. Retry after `Retry-After` seconds.",
    503: "Temporarily unavailable; nothing was written. Retry after `Retry-After` seconds.",
}
EVERYWHERE = (401, 403, 421, 422, 429, 503)
"""Statuses that the gateway may answer on every route."""


def command(line: str, **settings: Any) -> dict[str, Any]:
    """OpenAPI extension ``x-cli`` that gives an operation the command ``line``, such as ``job list``.

    ``settings`` are what the operation's description lacks; ``app.cli.nouns`` makes the commands:

    - ``columns``: columns of a list, as ``member`` or ``head: member``; dots name nested members, and
      ``from..until`` the duration between two times. ``wide``: further columns of ``-o wide``.
    - ``arguments``: members of the query or body that are positional arguments.
    - ``options``: members of the body that are options; members of the query always are.
    - ``fields``: the query is given as ``member=value …``; a JSON body always can be.
    - ``document``: the body is a file, named by the first argument.
    - ``fixed``: members sent by default.
    - ``result``: path to print when the job has ended, with members of its result in braces; empty: the job itself.
    - ``file``: default name of the file to which the response is written.
    - ``help``: a sentence that replaces the operation's description.
    """
    return {"x-cli": {line: settings}}


def problems(*statuses: int, **reasons: str) -> dict[int | str, dict[str, Any]]:
    """OpenAPI ``responses`` of an endpoint's error statuses, plus those of every route; with 415, also 400.

    ``reasons`` replace the description of a status: ``_409="…"``.
    """
    return {
        status: {
            "description": reasons.get(f"_{status}", REASONS[status]),
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({*statuses, *({400} if 415 in statuses else ()), *EVERYWHERE})
    }


class NounRouter(APIRouter):
    """Routes of one noun of the table ``app.nouns``, under its path and tag.

    ``lists``, ``reads`` and ``deletes`` are decorators of the operations that most nouns have in common: operation id,
    summary and command follow from the table. Their ``statuses`` and ``reasons`` are those of ``problems``.
    """

    def __init__(self, package: str, **options: Any) -> None:
        self.noun = NOUNS[package]
        super().__init__(prefix=self.noun.path, tags=[self.noun.tag], **options)

    def lists(
        self, *statuses: int, columns: Sequence[str], wide: Sequence[str] = ()
    ) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """Decorator of the endpoint that lists the items; ``columns`` and ``wide`` as in ``command``."""
        more = {"wide": wide} if wide else {}
        return self.get(
            "",
            operation_id=f"list_{self.noun.tag}",
            openapi_extra=command(f"{self.noun.command} list", columns=columns, **more),
            summary=f"List {self.noun.many}",
            responses=problems(*statuses),
        )

    def reads(self, path: str, **settings: Any) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """Decorator of the endpoint that returns one item; ``settings`` as in ``command``."""
        return self.get(
            path,
            operation_id=f"read_{self.noun.operation_item}",
            openapi_extra=command(f"{self.noun.command} show", **settings),
            summary=f"Read {self.noun.one}",
            responses=problems(404),
        )

    def deletes(self, path: str, *statuses: int, **reasons: str) -> Callable[[DecoratedCallable], DecoratedCallable]:
        """Decorator of the endpoint that deletes one item, or several of them, and answers 204."""
        return self.delete(
            path,
            status_code=204,
            operation_id=f"delete_{self.noun.operation_item}",
            openapi_extra=command(f"{self.noun.command} delete"),
            summary=f"Delete {self.noun.one}",
            responses=problems(404, *statuses, **reasons),
        )


def get_database(request: Request) -> Database:
    """Dependency: the application's database."""
    database: Database = request.app.state.database
    return database


def get_settings(request: Request) -> Settings:
    """Dependency: the application's settings."""
    settings: Settings = request.app.state.settings
    return settings


async def get_staleness(request: Request) -> Staleness:
    """Dependency: the application's rule for stale runs."""
    rule: Staleness = request.app.state.staleness
    return rule


async def get_caller(request: Request) -> Caller:
    """Dependency: the authenticated caller. Async without waiting, so that FastAPI uses no thread for it."""
    caller: Caller = request.scope["caller"]
    return caller


async def get_tenant(request: Request) -> str:
    """Dependency: the authenticated caller's tenant."""
    return (await get_caller(request)).tenant


def union_schema(models: Mapping[str, type[Any]]) -> dict[str, Any]:
    """JSON schema of one of several models, discriminated by their field ``kind``."""
    mapping = {kind: f"#/components/schemas/{model.__name__}" for kind, model in models.items()}
    return {
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }


def references(names: Iterable[str]) -> list[dict[str, str]]:
    """JSON schema references to components by name, without duplicates."""
    return [{"$ref": f"#/components/schemas/{name}"} for name in dict.fromkeys(names)]


def _body(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, **more}}}}


def one_of(models: Mapping[str, type[Any]], **more: Any) -> dict[str, Any]:
    """OpenAPI request body of one of several models, discriminated by their field ``kind``."""
    return _body(union_schema(models), **more)


def any_of(models: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """OpenAPI request body of one of several models, chosen by the kind of a workload."""
    return _body({"anyOf": references(model.__name__ for model in models)})


def components(models: Sequence[type[Any]]) -> dict[str, Any]:
    """OpenAPI components of models or msgspec structs, with all their nested definitions, by name."""
    components: dict[str, Any] = {}
    for model in models:
        schema = TypeAdapter(model).json_schema(ref_template="#/components/schemas/{model}")
        components |= {**schema.pop("$defs", {}), model.__name__: schema}
    return components


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must be a time that UTC has, from year 1 to 9999") from None


JsonObject = Annotated[dict[str, Any], Body()]
WorkloadName = Annotated[str, Path(pattern=SLUG, description="Name (or id) of the workload.", examples=["resnet18"])]
UtcTime = Annotated[AwareDatetime, AfterValidator(_utc)]
Version = Annotated[int, Path(ge=1, le=2**31 - 1, description="Version number, starting at 1.", examples=[1])]
FromDatabase = Annotated[Database, Depends(get_database)]
FromSettings = Annotated[Settings, Depends(get_settings)]
Tenant = Annotated[str, Depends(get_tenant)]
FromStaleness = Annotated[Staleness, Depends(get_staleness)]
FromCaller = Annotated[Caller, Depends(get_caller)]
