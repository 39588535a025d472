"""What `.ci/audit` makes of known faults: it fails only where one is serious and can be mended."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parents[1] / ".ci/audit"
GRADES = {"GHSA-high": "HIGH", "GHSA-low": "LOW"}


class Advisories(BaseHTTPRequestHandler):
    """An OSV service that knows two advisories."""

    def do_GET(self) -> None:
        grade = GRADES.get(self.path.removeprefix("/v1/vulns/"))
        self.send_response(200 if grade else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"database_specific": {"severity": grade}}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def advisories() -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Advisories) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def audited(folder: Path, advisories: str, listed: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """The script, where pip-audit lists these dependencies."""
    program = folder / "pip-audit"
    program.write_text(f"#!{sys.executable}\nprint({json.dumps({'dependencies': listed})!r})\n")
    program.chmod(0o755)
    command = [sys.executable, str(AUDIT), str(program), advisories]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def fault(name: str, *fixes: str, aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"id": name, "fix_versions": list(fixes), "aliases": list(aliases)}


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        ([], 0),
        ([fault("GHSA-high", "2.0")], 1),
        ([fault("PYSEC-1", "2.0", aliases=("GHSA-high",))], 1),
        ([fault("GHSA-high")], 0),
        ([fault("GHSA-low", "2.0"), fault("PYSEC-2", "2.0")], 0),
    ],
)
def test_it_fails_only_where_a_serious_fault_can_be_mended(
    tmp_path: Path, advisories: str, faults: list[dict[str, Any]], status: int
) -> None:
    listed: list[dict[str, Any]] = [
        {"name": "one", "version": "1.0", "vulns": []},
        {"name": "two", "version": "1.1", "vulns": faults},
    ]
    done = audited(tmp_path, advisories, listed)
    assert done.returncode == status, done.stderr
    assert all(f"two 1.1: {one['id']}, severity " in done.stdout for one in faults)
    assert f"2 of 2 packages checked, {len(faults)} known faults, {status} of them" in done.stdout


def test_packages_that_nobody_knows_are_not_called_free_of_faults(tmp_path: Path, advisories: str) -> None:
    done = audited(tmp_path, advisories, [{"name": "one", "skip_reason": "not found"}])
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was checked" in done.stderr
