"""Registration of workloads, which may be repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from .answers import document
from .display import choose_service
from .live import Service, open_http
from .retry import Retry


def register(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    client: Service = None,
    *,
    url: str | None = None,
    retry: Retry | None = None,
) -> str:
    """Register a workload unless it is registered already; returns its name.

    ::

        workload = steward.register("workload.json", url="http://127.0.0.1:8080")
        with steward.run(workload) as run: ...

    Registering the same spec again changes nothing, so a program may begin with it every time.

    Args:
        spec: the workload's spec, or the path of a JSON file that contains it.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        url: the service's address, instead of ``client``.
        retry: how long the service is retried while it is unreachable.

    Raises:
        OSError, ValueError: the file can't be read, or is not valid JSON.
        StewardError: the spec is not valid (422), or the name is registered with another spec (409); the message
            names the fields.
        Unreachable: the service did not answer in time.
    """
    body = spec if isinstance(spec, Mapping) else json.loads(Path(spec).read_text(encoding="utf-8"))
    with open_http(choose_service(client, url)) as http:
        return (retry or Retry()).call(http, "POST", "/workloads", _name, body)


def _name(answer: httpx.Response) -> str:
    return str(document(answer)["name"])
