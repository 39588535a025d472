"""Writes the bill of materials of the service: ``python -m tests.materials FILE [EXTRA …]``, CycloneDX 1.6 as JSON.

It names each distribution that an installation with these extras brings, with its version, licence and requirements, as
they are installed here (``make sbom``). The same environment gives the same bytes if ``SOURCE_DATE_EPOCH`` is set, or
no commit has been made in between.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_OID, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from app.installed import DISTRIBUTION
from tests.licences import ROOT, installed


def closure(wanted: Iterable[Requirement]) -> dict[str, set[str]]:
    """Distributions that requirements bring, each with those that it requires itself, by canonical names.

    Markers are evaluated for this platform. A distribution that is not installed here requires nothing.
    """
    visited, parts = set[str](), dict[str, set[str]]()
    waiting = [(one, extra) for one in wanted for extra in ("", *one.extras)]
    while waiting:
        one, extra = waiting.pop()
        name = canonicalize_name(one.name)
        if f"{name}[{extra}]" in visited or (one.marker and not one.marker.evaluate({"extra": extra})):
            continue
        visited.add(f"{name}[{extra}]")
        needs = parts.setdefault(name, set())
        for text in _requirements(name):
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                inner.marker = None
                needs |= {canonicalize_name(inner.name)} - {name}
                waiting += [(inner, further) for further in ("", *inner.extras)]
    return parts


def _requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # an extra of another platform
        return []


def bill(extras: Iterable[str], at: datetime) -> dict[str, Any]:
    """The bill of the service with these extras as a document of CycloneDX, dated ``at``.

    Raises:
        ValueError: there is no such extra.
        PackageNotFoundError: a distribution that it brings is not installed here.
    """
    extras, known = list(extras), distribution(DISTRIBUTION).metadata.get_all("Provides-Extra") or []
    if unknown := sorted({*extras} - {*known}):
        raise ValueError(f"extras {', '.join(unknown)} are unknown; accepted are {', '.join(sorted(known))}")
    needs = closure([Requirement(f"{DISTRIBUTION}[{','.join(extras)}]")])
    components = {name: _component(name) for name in sorted(needs)}
    references = {name: one["bom-ref"] for name, one in components.items()}
    root = components.pop(DISTRIBUTION) | {"type": "application"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_OID, " ".join(references.values())).urn,
        "version": 1,
        "metadata": {"timestamp": at.isoformat(), "component": root},
        "components": list(components.values()),
        "dependencies": [
            {"ref": references[name], "dependsOn": [references[other] for other in sorted(needs[name])]}
            for name in references
        ],
    }


def _component(name: str) -> dict[str, Any]:
    one = distribution(name)
    package = f"pkg:pypi/{name}@{quote(one.version)}"
    result = {"type": "library", "bom-ref": package, "name": name, "version": one.version, "purl": package}
    licence = next(installed([one])).licence
    if "License-Expression" in one.metadata:
        return result | {"licenses": [{"expression": licence}]}
    return result | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def main(file: str, *extras: str) -> None:
    """Write the bill to a file, and print how many distributions it names."""
    commit = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(commit, check=True, capture_output=True).stdout
    result = bill(extras, datetime.fromtimestamp(int(seconds), UTC))
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(json.dumps(result, indent=1) + "\n")
    print(f"{file}: {len(result['components'])} distributions")


if __name__ == "__main__":
    main(*sys.argv[1:])
