from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.upload_read import UploadRead
from ...models.upload_samples_json_body_type_0 import UploadSamplesJsonBodyType0
from ...models.upload_samples_json_body_type_1 import UploadSamplesJsonBodyType1
from ...models.upload_samples_json_body_type_2 import UploadSamplesJsonBodyType2
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    workload: str,
    *,
    body: UploadSamplesJsonBodyType0
    | UploadSamplesJsonBodyType1
    | UploadSamplesJsonBodyType2
    | File
    | File
    | File
    | File
    | Unset = UNSET,
    execution: None | str | Unset = UNSET,
    skip_bad: bool | Unset = False,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key

    params: dict[str, Any] = {}

    json_execution: None | str | Unset
    if isinstance(execution, Unset):
        json_execution = UNSET
    else:
        json_execution = execution
    params["execution"] = json_execution

    params["skip_bad"] = skip_bad

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/workloads/{workload}/samples".format(
            workload=quote(str(workload), safe=""),
        ),
        "params": params,
    }

    if isinstance(body, UploadSamplesJsonBodyType0 | UploadSamplesJsonBodyType1 | UploadSamplesJsonBodyType2):
        if isinstance(body, UploadSamplesJsonBodyType0):
            _kwargs["json"] = body.to_dict()
        elif isinstance(body, UploadSamplesJsonBodyType1):
            _kwargs["json"] = body.to_dict()
        else:
            _kwargs["json"] = body.to_dict()

        headers["Content-Type"] = "application/json"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = body.mime_type or "application/x-ndjson"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = body.mime_type or "application/x-swf"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = body.mime_type or "application/vnd.wfformat+json"
    if isinstance(body, File):
        _kwargs["content"] = body.payload
        headers["Content-Type"] = body.mime_type or "text/csv"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | UploadRead | None:
    if response.status_code == 201:
        response_201 = UploadRead.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

    if response.status_code == 421:
        response_421 = Problem.from_dict(response.json())

        return response_421

    if response.status_code == 422:
        response_422 = Problem.from_dict(response.json())

        return response_422

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | UploadRead]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: UploadSamplesJsonBodyType0
    | UploadSamplesJsonBodyType1
    | UploadSamplesJsonBodyType2
    | File
    | File
    | File
    | File
    | Unset = UNSET,
    execution: None | str | Unset = UNSET,
    skip_bad: bool | Unset = False,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | UploadRead]:
    """Upload samples

     Upload executions as JSON, newline-delimited JSON or CSV, or a trace, optionally with `Content-
    Encoding: gzip`.

    The body is streamed, whatever its size. Each execution is stored entirely or not at all:
    *accepted*, *duplicate*
    (already stored with the same content) or *rejected* with line, field and reason. The rows of an
    execution must be
    contiguous, with iterations counting up without gaps. An interrupted upload can simply be sent
    again.

    Which media types are accepted depends on the workload's kind. A trace, plain or gzipped, becomes
    one execution; the
    response says what it lacks and what looks wrong in it.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        skip_bad (bool | Unset): Skip and report invalid lines of a batch log instead of rejecting
            it. Default: False.
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (UploadSamplesJsonBodyType0 | UploadSamplesJsonBodyType1 |
            UploadSamplesJsonBodyType2):
        body (File):
        body (File): Kind `workflow`: a batch log in Standard Workload Format.
        body (File): Kind `workflow`: a workflow in WfFormat 1.4 or 1.5.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | UploadRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        body=body,
        execution=execution,
        skip_bad=skip_bad,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: UploadSamplesJsonBodyType0
    | UploadSamplesJsonBodyType1
    | UploadSamplesJsonBodyType2
    | File
    | File
    | File
    | File
    | Unset = UNSET,
    execution: None | str | Unset = UNSET,
    skip_bad: bool | Unset = False,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | UploadRead | None:
    """Upload samples

     Upload executions as JSON, newline-delimited JSON or CSV, or a trace, optionally with `Content-
    Encoding: gzip`.

    The body is streamed, whatever its size. Each execution is stored entirely or not at all:
    *accepted*, *duplicate*
    (already stored with the same content) or *rejected* with line, field and reason. The rows of an
    execution must be
    contiguous, with iterations counting up without gaps. An interrupted upload can simply be sent
    again.

    Which media types are accepted depends on the workload's kind. A trace, plain or gzipped, becomes
    one execution; the
    response says what it lacks and what looks wrong in it.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        skip_bad (bool | Unset): Skip and report invalid lines of a batch log instead of rejecting
            it. Default: False.
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (UploadSamplesJsonBodyType0 | UploadSamplesJsonBodyType1 |
            UploadSamplesJsonBodyType2):
        body (File):
        body (File): Kind `workflow`: a batch log in Standard Workload Format.
        body (File): Kind `workflow`: a workflow in WfFormat 1.4 or 1.5.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | UploadRead
    """

    return sync_detailed(
        workload=workload,
        client=client,
        body=body,
        execution=execution,
        skip_bad=skip_bad,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: UploadSamplesJsonBodyType0
    | UploadSamplesJsonBodyType1
    | UploadSamplesJsonBodyType2
    | File
    | File
    | File
    | File
    | Unset = UNSET,
    execution: None | str | Unset = UNSET,
    skip_bad: bool | Unset = False,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[Problem | UploadRead]:
    """Upload samples

     Upload executions as JSON, newline-delimited JSON or CSV, or a trace, optionally with `Content-
    Encoding: gzip`.

    The body is streamed, whatever its size. Each execution is stored entirely or not at all:
    *accepted*, *duplicate*
    (already stored with the same content) or *rejected* with line, field and reason. The rows of an
    execution must be
    contiguous, with iterations counting up without gaps. An interrupted upload can simply be sent
    again.

    Which media types are accepted depends on the workload's kind. A trace, plain or gzipped, becomes
    one execution; the
    response says what it lacks and what looks wrong in it.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        skip_bad (bool | Unset): Skip and report invalid lines of a batch log instead of rejecting
            it. Default: False.
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (UploadSamplesJsonBodyType0 | UploadSamplesJsonBodyType1 |
            UploadSamplesJsonBodyType2):
        body (File):
        body (File): Kind `workflow`: a batch log in Standard Workload Format.
        body (File): Kind `workflow`: a workflow in WfFormat 1.4 or 1.5.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | UploadRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        body=body,
        execution=execution,
        skip_bad=skip_bad,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    *,
    client: AuthenticatedClient | Client,
    body: UploadSamplesJsonBodyType0
    | UploadSamplesJsonBodyType1
    | UploadSamplesJsonBodyType2
    | File
    | File
    | File
    | File
    | Unset = UNSET,
    execution: None | str | Unset = UNSET,
    skip_bad: bool | Unset = False,
    idempotency_key: None | str | Unset = UNSET,
) -> Problem | UploadRead | None:
    """Upload samples

     Upload executions as JSON, newline-delimited JSON or CSV, or a trace, optionally with `Content-
    Encoding: gzip`.

    The body is streamed, whatever its size. Each execution is stored entirely or not at all:
    *accepted*, *duplicate*
    (already stored with the same content) or *rejected* with line, field and reason. The rows of an
    execution must be
    contiguous, with iterations counting up without gaps. An interrupted upload can simply be sent
    again.

    Which media types are accepted depends on the workload's kind. A trace, plain or gzipped, becomes
    one execution; the
    response says what it lacks and what looks wrong in it.

    Args:
        workload (str): Name (or id) of the workload.
        execution (None | str | Unset): Name of one execution; for an uploaded trace, the name to
            give it.
        skip_bad (bool | Unset): Skip and report invalid lines of a batch log instead of rejecting
            it. Default: False.
        idempotency_key (None | str | Unset): Chosen by the client: a request repeated with the
            same key runs once and gets the same response.
        body (UploadSamplesJsonBodyType0 | UploadSamplesJsonBodyType1 |
            UploadSamplesJsonBodyType2):
        body (File):
        body (File): Kind `workflow`: a batch log in Standard Workload Format.
        body (File): Kind `workflow`: a workflow in WfFormat 1.4 or 1.5.
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | UploadRead
    """

    return (
        await asyncio_detailed(
            workload=workload,
            client=client,
            body=body,
            execution=execution,
            skip_bad=skip_bad,
            idempotency_key=idempotency_key,
        )
    ).parsed
