from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.run_patch import RunPatch
from ...models.run_read import RunRead
from ...types import Response


def _get_kwargs(
    run: str,
    *,
    body: RunPatch,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "patch",
        "url": "/runs/{run}".format(
            run=quote(str(run), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | RunRead | None:
    if response.status_code == 200:
        response_200 = RunRead.from_dict(response.json())

        return response_200

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | RunRead]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    run: str,
    *,
    client: AuthenticatedClient | Client,
    body: RunPatch,
) -> Response[Problem | RunRead]:
    """End a run, or change its caps

     Finish, fail or cancel a run: it gets its outcome, and its iterations become a sample of its
    workload.

    Repeating changes nothing; the first reason stays. A run that has ended in another state is a
    conflict. With `caps`
    in place of `state` a running run gets new ones; its own token can't change them.

    Args:
        run (str): The run's id.
        body (RunPatch): The state in which a run ends, and why; or, while it runs, its new caps.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | RunRead]
    """

    kwargs = _get_kwargs(
        run=run,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    run: str,
    *,
    client: AuthenticatedClient | Client,
    body: RunPatch,
) -> Problem | RunRead | None:
    """End a run, or change its caps

     Finish, fail or cancel a run: it gets its outcome, and its iterations become a sample of its
    workload.

    Repeating changes nothing; the first reason stays. A run that has ended in another state is a
    conflict. With `caps`
    in place of `state` a running run gets new ones; its own token can't change them.

    Args:
        run (str): The run's id.
        body (RunPatch): The state in which a run ends, and why; or, while it runs, its new caps.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | RunRead
    """

    return sync_detailed(
        run=run,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    run: str,
    *,
    client: AuthenticatedClient | Client,
    body: RunPatch,
) -> Response[Problem | RunRead]:
    """End a run, or change its caps

     Finish, fail or cancel a run: it gets its outcome, and its iterations become a sample of its
    workload.

    Repeating changes nothing; the first reason stays. A run that has ended in another state is a
    conflict. With `caps`
    in place of `state` a running run gets new ones; its own token can't change them.

    Args:
        run (str): The run's id.
        body (RunPatch): The state in which a run ends, and why; or, while it runs, its new caps.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | RunRead]
    """

    kwargs = _get_kwargs(
        run=run,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    run: str,
    *,
    client: AuthenticatedClient | Client,
    body: RunPatch,
) -> Problem | RunRead | None:
    """End a run, or change its caps

     Finish, fail or cancel a run: it gets its outcome, and its iterations become a sample of its
    workload.

    Repeating changes nothing; the first reason stays. A run that has ended in another state is a
    conflict. With `caps`
    in place of `state` a running run gets new ones; its own token can't change them.

    Args:
        run (str): The run's id.
        body (RunPatch): The state in which a run ends, and why; or, while it runs, its new caps.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | RunRead
    """

    return (
        await asyncio_detailed(
            run=run,
            client=client,
            body=body,
        )
    ).parsed
