"""Writes what Steward has decided on one resource, a line for each workload: ``resnet18 6``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from steward_client import Retry
from steward_client.live import http_client
from steward_client.scaling.amounts import Reader


def main(url: str, file: str, resource: str) -> None:
    """Replace the file; where the service is away it stays as it is, and this fails."""
    decided = Reader(http_client(url), Retry(patience_seconds=20.0)).by_workload()
    lines = [f"{name} {math.ceil(each[resource])}\n" for name, each in sorted(decided.items()) if resource in each]
    beside = Path(f"{file}.new")
    beside.write_text("".join(lines))
    beside.replace(file)


if __name__ == "__main__":
    main(*sys.argv[1:4])
