"""Problem documents (RFC 9457): made from exceptions, and described in the OpenAPI schema."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from app import errors
from app.database.engine import DeadlinePassed, is_contended, is_full, is_lost
from app.errors import FieldError, StewardError, problem
from app.http.dependencies import problems
from app.http.idempotency import HEADER
from app.http.limits import allowed_methods
from app.kinds.contract.inputs import MOST_ERRORS, BrokenRow, IncompatibleModel, InvalidInput, listing
from app.kinds.registry import KINDS, MissingKind

MEDIA_TYPE = "application/problem+json"
LONGEST_VALUE, LONGEST_TEXT, LONGEST_DETAIL = 200, 1_000, 50_000
"""Largest number of characters of a value, of a pointer or message, and of a detail."""
LONG_NUMBER = re.compile(r"\d{17,}")

logger = logging.getLogger(__name__)
_written = json.JSONEncoder(ensure_ascii=False, default=str).iterencode

BY_STATUS: dict[int, type[StewardError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorised,
    403: errors.Forbidden,
    404: errors.NotFound,
    406: errors.NotAcceptable,
    409: errors.Conflict,
    413: errors.TooLarge,
    415: errors.UnsupportedMedia,
    422: errors.Invalid,
    429: errors.TooManyRequests,
    503: errors.Unavailable,
}


def _plain(value: Any) -> Any:
    """A value that JSON can represent: non-finite numbers and unknown objects as text, long values truncated."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list | tuple):
        text = _abbreviated_json(value)
        if len(text) > LONGEST_VALUE:
            return f"{text[:LONGEST_VALUE]}…"
        if isinstance(value, Mapping):
            return {str(key): _plain(item) for key, item in value.items()}
        return [_plain(item) for item in value]
    return _cut(value if isinstance(value, str) else repr(value), LONGEST_VALUE)


def _cut(text: str, longest: int) -> str:
    """The first ``longest`` characters of a text, without lone surrogates."""
    shown = text[:longest].encode("utf-8", "replace").decode()
    return shown if len(text) <= longest else f"{shown}…"


def _abbreviated_json(value: object) -> str:
    """The beginning of a value as JSON, slightly more than ``LONGEST_VALUE`` characters, without encoding the rest."""
    text = ""
    try:
        for piece in _written(value):
            text += piece
            if len(text) > LONGEST_VALUE:
                break
    except RecursionError:
        return "…" * (LONGEST_VALUE + 1)
    return text


def document(error: StewardError, instance: str | None) -> bytes:
    """The problem document of an error as JSON; ``instance``: the request's path, None: without."""
    body = problem(error, instance)
    for item in body.get("errors", ()):
        item["value"] = _plain(item["value"])
        item["pointer"], item["message"] = _cut(item["pointer"], LONGEST_TEXT), _cut(item["message"], LONGEST_TEXT)
    body["detail"] = _cut(body["detail"], LONGEST_DETAIL)
    return json.dumps(body, ensure_ascii=True).encode()


def headers_of(error: StewardError) -> dict[str, str]:
    """Headers of an error's response, with Retry-After if set."""
    return error.headers if error.retry_after is None else {**error.headers, "Retry-After": str(error.retry_after)}


def answer(error: StewardError, instance: str | None) -> Response:
    """HTTP response with an error's problem document; ``instance``: the request's path, None: without."""
    return Response(document(error, instance), error.status, headers_of(error), MEDIA_TYPE)


def invalid(result: Sequence[Any]) -> errors.Invalid:
    """Convert Pydantic's validation errors to one ``Invalid``."""
    shown = [item for item in result if not _follows(item)]
    fields = [_field(item) for item in shown[:MOST_ERRORS]]
    detail = listing((f"{item.pointer or '/'}: {item.message}" for item in fields), len(shown))
    return errors.Invalid(detail, errors=fields)


def _follows(item: Mapping[str, Any]) -> bool:
    """Whether a Pydantic error calls a list too short only because it doesn't count the list's invalid items."""
    value = item.get("input")
    return item["type"] == "too_short" and isinstance(value, list) and len(value) >= item["ctx"]["min_length"]


def _field(item: Mapping[str, Any]) -> FieldError:
    if item["type"] == "json_invalid":  # whose place is no pointer, but a position in the text
        return FieldError("", _message(item))
    # The pointer is into the body, or `/query/name`, `/path/name`, `/header/name`. Pydantic's name of a union's member,
    # the kind, is removed, because the body doesn't contain it.
    location, problem = item["loc"], item["type"]
    parts = tuple(location[1:] if location and location[0] == "body" else location)
    tagged = bool(parts) and parts[0] in KINDS and (len(parts) > 1 or problem != "extra_forbidden")
    parts = parts[1:] if tagged else parts
    pointer, value = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts), item.get("input")
    if item["type"] in ("union_tag_invalid", "union_tag_not_found"):
        kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
        return FieldError(f"{pointer}/kind", f"must be one of {', '.join(KINDS)}", kind)
    return FieldError(pointer, _message(item), value)


def _message(item: Mapping[str, Any]) -> str:
    if item["type"] == "json_invalid":
        return f"is not valid JSON: {item.get('ctx', {}).get('error', item['msg'])}"
    value = item.get("input")
    if isinstance(value, float) and math.isnan(value):
        return "must be a finite number"
    message = str(item["msg"]).removeprefix("Value error, ")
    message = LONG_NUMBER.sub(lambda match: f"{float(match[0]):g}", message)
    return message[:1].lower() + message[1:]


def _of_broken_row(error: BrokenRow) -> StewardError:
    logger.error("%s", error, exc_info=error)
    return errors.Broken(str(error))


def _of_http(error: HTTPException) -> StewardError:
    """Convert an error of the framework: unknown route, method not allowed, unreadable body."""
    if isinstance(error.__cause__, RecursionError | UnicodeDecodeError):  # which json.loads raised
        reason = "nested too deeply" if isinstance(error.__cause__, RecursionError) else "not UTF-8"
        return errors.Invalid(
            f"/: is not valid JSON: {reason}", errors=[FieldError("", f"is not valid JSON: {reason}")]
        )
    family = BY_STATUS.get(error.status_code)
    if family is not None:
        return family(str(error.detail))

    class Other(StewardError):
        status, type, title = error.status_code, f"/problems/http-{error.status_code}", str(error.detail)

    return Other(str(error.detail))


FAMILIES: dict[type[Exception], Callable[[Any], StewardError]] = {
    InvalidInput: errors.as_steward_error,
    RequestValidationError: lambda error: invalid(error.errors()),
    ValidationError: lambda error: invalid(error.errors(include_url=False)),
    HTTPException: _of_http,
    ClientDisconnect: lambda _: errors.BadRequest("the body ended early"),
    DeadlinePassed: lambda error: errors.Timeout(str(error)),
    BrokenRow: _of_broken_row,
    MissingKind: lambda error: errors.Conflict(str(error)),
    IncompatibleModel: lambda error: errors.Conflict(f"the domain model can't be used: {error}; fit it again"),
}
"""Translation of exceptions that are neither StewardErrors nor database errors."""


def translate(error: Exception) -> StewardError | None:
    """Any exception as a StewardError; None for a programming error."""
    if isinstance(error, StewardError):
        return error
    for family, ours in FAMILIES.items():
        if isinstance(error, family):
            return ours(error)
    return _of_database(error)


def _of_database(error: Exception) -> StewardError | None:
    """An exception of the database or its driver as a StewardError; None for any other."""
    if is_full(error):
        return errors.DiskFull("the disk of the database is full; nothing was written")
    if is_contended(error):
        return errors.Unavailable(
            "another transaction holds a lock on these rows; nothing was written, repeat the request"
        )
    if is_lost(error):
        return errors.Unavailable("the database does not answer, or takes no writes; nothing was written")
    if isinstance(error, IntegrityError):
        return errors.Conflict("another request changed the same rows; read them again, then repeat the request")
    if isinstance(error, DataError):
        return errors.Invalid("it contains a character or a number that the database can't store")
    return None


def respond(request: Request, error: Exception) -> Response:
    """The response to any exception; a programming error gives a 500 without details, which are in the log."""
    ours = translate(error) or StewardError("internal error; see the service's log")
    if ours.status == 503 and ours.retry_after is None:
        ours.retry_after = int(request.app.state.settings.retry_after_seconds)
    if isinstance(ours, errors.TooManyRequests) and "caller" in request.scope:
        request.scope["app"].state.refusals.count(request.scope["caller"].tenant, ours.limit)
    # Browsers get an HTML page, if the application has pages
    app = request.scope.get("app")
    make = None if app is None else getattr(app.state, "error_page", None)
    result: Response | None = None if make is None else make(request, ours)
    if result is not None:
        result.headers.update(headers_of(ours))
    response = result or answer(ours, request.url.path)
    if isinstance(error, HTTPException):
        response.headers.update(error.headers or {})
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(allowed_methods(request))
    return response


async def _handle(request: Request, error: Exception) -> Response:
    return respond(request, error)


def install(app: FastAPI) -> None:
    """Register problem documents as the response to every exception of the application."""
    families: list[type[Exception]] = [StewardError, *FAMILIES, DBAPIError, PoolTimeoutError, Exception]
    for family in families:
        app.add_exception_handler(family, _handle)


# Parts of the OpenAPI schema that the framework can't generate: servers, and responses due to idempotency keys.


SERVERS: list[dict[str, Any]] = [
    {"url": "/", "description": "The service that serves this schema."},
    {
        "url": "http://{host}:{port}",
        "description": "`steward serve`.",
        "variables": {"host": {"default": "127.0.0.1"}, "port": {"default": "8080"}},
    },
]

IN_FLIGHT = f"The first request under this `{HEADER}` is still in flight: retry after `Retry-After` seconds."
OTHER_BODY = f"This `{HEADER}` was used with another request."


def document_keys(schema: dict[str, Any]) -> None:
    """Add the error responses of idempotency keys to all operations that accept one; changes ``schema``."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            if any(parameter["name"].lower() == HEADER.lower() for parameter in operation.get("parameters", ())):
                _add(operation["responses"], 409, IN_FLIGHT)
                _add(operation["responses"], 422, OTHER_BODY)


def _add(responses: dict[str, Any], status: int, reason: str) -> None:
    result = responses.get(str(status))
    if result is None:
        responses[str(status)] = problems(status, **{f"_{status}": reason})[status]
    else:
        result["description"] = f"{result['description']} {reason}"


def only_unions(schema: dict[str, Any]) -> None:
    """Remove the generic object type from bodies that are a union of models; changes ``schema``."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                body = media.get("schema", {})
                if "oneOf" in body or "anyOf" in body:
                    for name in ("additionalProperties", "type", "title"):
                        body.pop(name, None)
