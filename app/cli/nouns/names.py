"""Completion by what the service has: it must answer at once, and is silent where it does not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urljoin

import typer

from app.cli.nouns.contract import KEYS
from app.cli.options import SERVICE

SECONDS = 0.5
MOST = 100


def names_of(collection: str, argument: str, fixed: Sequence[str] = ()) -> Callable[..., list[str]]:
    """Completes an argument by the members of a list, whose path may have arguments before it in braces."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from http.client import HTTPException

        before = {name: quote(str(value), safe="") for name, value in ctx.params.items() if value is not None}
        try:
            items = _items(ctx.params.get("url"), collection.format(**before))
        except (OSError, ValueError, LookupError, HTTPException):
            items = []
        found = [*fixed, *(str(item.get(KEYS[argument], "")) for item in items)]
        return [name for name in found if name.startswith(incomplete)]

    return complete


def _items(url: str | None, path: str) -> list[dict[str, Any]]:
    """The list's first items.

    Raises:
        OSError, HTTPException: it does not answer in time, or refuses.
        ValueError: what it answers is no list.
    """
    from urllib.request import ProxyHandler as Proxies
    from urllib.request import Request, build_opener

    base = url or os.environ.get("STEWARD_URL") or SERVICE
    if not base.startswith(("http://", "https://")):
        raise ValueError(base)
    key = os.environ.get("STEWARD_API_KEY", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = Request(urljoin(base, f"{path}?limit={MOST}"), headers=headers)  # noqa: S310 # HTTP, as checked above
    with build_opener(Proxies({})).open(request, timeout=SECONDS) as answer:
        items: list[dict[str, Any]] = json.load(answer)["items"]
    return items


workloads = names_of("/workloads", "workload")
executions = names_of("/workloads/{workload}/samples", "execution")
COMPLETIONS = {"workload": workloads, "execution": executions}
