from http import HTTPStatus
from io import BytesIO
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    workload: str,
    version: int,
    *,
    role: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    json_role: None | str | Unset
    if isinstance(role, Unset):
        json_role = UNSET
    else:
        json_role = role
    params["role"] = json_role

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/workloads/{workload}/agents/{version}/policy".format(
            workload=quote(str(workload), safe=""),
            version=quote(str(version), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Any | File | Problem | None:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

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
) -> Response[Any | File | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    role: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Response[Any | File | Problem]:
    """Download the policy

     Get the artifact that answers decisions, for clients that decide locally.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        role (None | str | Unset): Role of the policy, if several were trained together.
        if_none_match (None | str | Unset): `ETag` of an earlier response.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | File | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
        role=role,
        if_none_match=if_none_match,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    role: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Any | File | Problem | None:
    """Download the policy

     Get the artifact that answers decisions, for clients that decide locally.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        role (None | str | Unset): Role of the policy, if several were trained together.
        if_none_match (None | str | Unset): `ETag` of an earlier response.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | File | Problem
    """

    return sync_detailed(
        workload=workload,
        version=version,
        client=client,
        role=role,
        if_none_match=if_none_match,
    ).parsed


async def asyncio_detailed(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    role: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Response[Any | File | Problem]:
    """Download the policy

     Get the artifact that answers decisions, for clients that decide locally.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        role (None | str | Unset): Role of the policy, if several were trained together.
        if_none_match (None | str | Unset): `ETag` of an earlier response.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | File | Problem]
    """

    kwargs = _get_kwargs(
        workload=workload,
        version=version,
        role=role,
        if_none_match=if_none_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    version: int,
    *,
    client: AuthenticatedClient | Client,
    role: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Any | File | Problem | None:
    """Download the policy

     Get the artifact that answers decisions, for clients that decide locally.

    Args:
        workload (str): Name (or id) of the workload.
        version (int): Version number, starting at 1.
        role (None | str | Unset): Role of the policy, if several were trained together.
        if_none_match (None | str | Unset): `ETag` of an earlier response.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | File | Problem
    """

    return (
        await asyncio_detailed(
            workload=workload,
            version=version,
            client=client,
            role=role,
            if_none_match=if_none_match,
        )
    ).parsed
