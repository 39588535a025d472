from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.exogenous_issue import ExogenousIssue
from ...models.problem import Problem
from ...models.series_read import SeriesRead
from ...types import Response


def _get_kwargs(
    workload: str,
    series: str,
    *,
    body: ExogenousIssue,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/workloads/{workload}/exogenous/{series}".format(
            workload=quote(str(workload), safe=""),
            series=quote(str(series), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | SeriesRead | None:
    if response.status_code == 200:
        response_200 = SeriesRead.from_dict(response.json())

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


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Problem | SeriesRead]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    body: ExogenousIssue,
) -> Response[Problem | SeriesRead]:
    """Store an issue of a series

     Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its
    rows.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        body (ExogenousIssue): One issue of a series: what was known at one moment.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SeriesRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    body: ExogenousIssue,
) -> Problem | SeriesRead | None:
    """Store an issue of a series

     Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its
    rows.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        body (ExogenousIssue): One issue of a series: what was known at one moment.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SeriesRead
    """

    return sync_detailed(
        workload=workload,
        series=series,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    body: ExogenousIssue,
) -> Response[Problem | SeriesRead]:
    """Store an issue of a series

     Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its
    rows.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        body (ExogenousIssue): One issue of a series: what was known at one moment.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SeriesRead]
    """

    kwargs = _get_kwargs(
        workload=workload,
        series=series,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    workload: str,
    series: str,
    *,
    client: AuthenticatedClient | Client,
    body: ExogenousIssue,
) -> Problem | SeriesRead | None:
    """Store an issue of a series

     Store forecast or known external values, such as arrivals or prices. Repeating an issue replaces its
    rows.

    Args:
        workload (str): Name (or id) of the workload.
        series (str): Name of the series.
        body (ExogenousIssue): One issue of a series: what was known at one moment.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SeriesRead
    """

    return (
        await asyncio_detailed(
            workload=workload,
            series=series,
            client=client,
            body=body,
        )
    ).parsed
