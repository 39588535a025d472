"""Every block that can run here does, page by page, as it stands there, against one real service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.documents.blocks import PAGES, ROOT, Block, blocks
from tests.servers import StewardServer, clean_environment, start_steward, stop

ELSEWHERE = {"docs/tutorial/tour.md"}
"""Pages whose blocks a journey runs."""
ADDRESSES = ("http://127.0.0.1:8080", "http://localhost:8080", "localhost:8080")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardServer]:
    started = start_steward(tmp_path_factory.mktemp("data"), "--workers", "0", wait="alive")
    with (ROOT / "docs/tour/workload.json").open("rb") as spec:
        httpx.post(f"{started.url}/workloads", content=spec.read(), headers={"content-type": "application/json"})
    yield started
    stop(started.process)


def runnable(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.runs and (block.file or block.language in ("sh", "python"))]


def there(text: str, server: StewardServer) -> str:
    for address in ADDRESSES:
        text = text.replace(address, server.url)
    return text


def prepared(folder: Path, server: StewardServer) -> dict[str, str]:
    """A fresh folder with the repository's documents in it, and the environment of a reader's shell.

    There curl fails where it is answered by an error.
    """
    for name in ("docs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".curlrc").write_text("fail-with-body\nsilent\nshow-error\n")
    environment = clean_environment({"STEWARD": server.url, "STEWARD_URL": server.url, "CURL_HOME": str(folder)})
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**environment, "STEWARD_DATA_DIR": str(server.data_dir)}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE and runnable(page)])
def test_a_page_runs_as_it_is_written(page: str, server: StewardServer, tmp_path: Path) -> None:
    environment = prepared(tmp_path, server)
    script = ["set -euo pipefail"]
    for number, block in enumerate(runnable(page)):
        text = there(block.text, server)
        name = block.file or f"block_{number}.py"
        if block.file or block.language == "python":
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        if block.language in ("sh", "python") and not block.file:
            script += [f"echo '# {block.name}'", text if block.language == "sh" else f"python {name}"]
    done = run(script, tmp_path, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"/problems/' not in done.stdout


def run(script: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kwargs: dict[str, Any] = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": False}
    return subprocess.run(["bash", "-c", "\n".join(script)], timeout=240, **kwargs)


def test_a_block_that_fails_is_noticed(server: StewardServer, tmp_path: Path) -> None:
    script = ["set -euo pipefail", f"curl {server.url}/workloads/nobody", "echo on"]
    done = run(script, tmp_path, prepared(tmp_path, server))
    assert done.returncode != 0
    assert "on\n" not in done.stdout
