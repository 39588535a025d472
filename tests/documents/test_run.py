"""Every block that can run here does, page by page, as it stands there, against one real service.

What a reader does first, README and tour, is walked on services that are new, in several orders, and again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from app.kinds.registry import KINDS
from tests.documents.blocks import ALL, PAGES, ROOT, Block, blocks
from tests.servers import StewardServer, clean_environment, start_steward, stop

README, TOUR = "README.md", "docs/tutorial/tour.md"
ALONE = [README, "clients/python/README.md", "docs/how-to/client.md"]
"""Pages that need no workload to be there: they register their own."""
SLOW = pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in (TOUR, *ALONE) and runnable(page)])
def test_a_page_runs_as_it_is_written(page: str, server: StewardServer, tmp_path: Path) -> None:
    assert '"/problems/' not in walked([page], server, tmp_path)


def walked(pages: list[str], server: StewardServer, folder: Path) -> str:
    """The output of all blocks of some pages, one after the other."""
    environment = prepared(folder, server)
    script = ["set -euo pipefail"]
    for position, page in enumerate(pages):
        for number, block in enumerate(runnable(page)):
            text = there(block.text, server)
            name = block.file or f"block_{position}_{number}.py"
            if block.file or block.language == "python":
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
            if block.language in ("sh", "python") and not block.file:
                script += [f"echo '# {block.name}'", text if block.language == "sh" else f"python {name}"]
    done = run(script, folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(script: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kwargs: dict[str, Any] = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": False}
    return subprocess.run(["bash", "-c", "\n".join(script)], timeout=800, **kwargs)


def test_a_block_that_fails_is_noticed(server: StewardServer, tmp_path: Path) -> None:
    script = ["set -euo pipefail", f"curl {server.url}/workloads/nobody", "echo on"]
    done = run(script, tmp_path, prepared(tmp_path, server))
    assert done.returncode != 0
    assert "on\n" not in done.stdout


ENDED = re.compile(
    r"^complete after 90 iterations: took \d+ min(?: \d+ s)?, target 30 min \((met|missed)\); "
    r"cost \$[\d.]+\n8 GPUs all the time: cost \$[\d.]+$",
    re.MULTILINE,
)
"""How a run of the README ends: time against deadline, cost against the largest allocation."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "times"),
    [(README, 2), *((page, 1) for page in ALONE[1:]), *(pytest.param(page, 2, marks=SLOW) for page in ALONE[1:])],
)
def test_a_page_that_stands_alone_runs_on_a_new_service_and_again(
    page: str, times: int, steward_factory: Callable[..., StewardServer], tmp_path: Path
) -> None:
    server = steward_factory(None, "--workers", "0", wait="alive")
    output = walked([page] * times, server, tmp_path)
    if page == README:
        assert ENDED.findall(output) == ["met", "met"]
    assert [one["name"] for one in httpx.get(f"{server.url}/workloads").json()["items"]] == ["resnet18"]


@SLOW
def test_the_readme_works_after_the_dashboards_example_and_before_it(
    steward_factory: Callable[..., StewardServer], tmp_path: Path
) -> None:
    server = steward_factory(None, "--workers", "0", wait="alive")
    for part in ("first", "second"):
        (tmp_path / part).mkdir()
        httpx.post(f"{server.url}/ui/examples/iterative").raise_for_status()
        assert ENDED.findall(walked([README], server, tmp_path / part)) == ["met"]
    runs = httpx.get(f"{server.url}/runs?workload=resnet18").json()["items"]
    assert [one["state"] for one in runs] == ["finished", "finished"]


@SLOW
def test_readme_and_tour_work_as_they_are_written_one_after_the_other_and_again(
    steward_factory: Callable[..., StewardServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = "train resnet18", "train resnet18 --budget 20000"
    pages = {page: [block._replace(text=block.text.replace(*shorter)) for block in blocks(page)] for page in PAGES}
    monkeypatch.setattr("tests.documents.test_run.blocks", pages.__getitem__)
    output = walked([README, TOUR, README, TOUR], steward_factory(), tmp_path)
    assert len(ENDED.findall(output)) == 2
    assert re.findall(r"^accepted: (\d+)$", output, re.MULTILINE) == ["12", "0"]
    assert re.findall(r"^duplicate: (\d+)$", output, re.MULTILINE) == ["0", "12"]
    assert len(re.findall(r"^predicted:\n  iteration_seconds:\n    mean: 1[345]\.", output, re.MULTILINE)) == 2
    assert re.findall(r"^agent (\d): ", output, re.MULTILINE) == ["1", "2"]
    assert len(re.findall(r"^  chances:\n    iteration_seconds: (1|0\.9[5-9])", output, re.MULTILINE)) >= 2
    assert len(re.findall(r"^done in [\d,]+ s$", output, re.MULTILINE)) == 2


def words(text: str) -> str:
    return " ".join(text.split())


def test_reasons_quoted_are_those_answered(client: TestClient) -> None:
    queue = {block.title: json.loads(block.text) for block in blocks("docs/how-to/workflows.md") if block.schema}
    spec, *reports, texts = [
        json.loads(block.text) for block in blocks("docs/how-to/serving.md") if block.language == "json"
    ]
    for register, page, sent in (
        (queue["queue.json"], "workflows", [queue["first.json"]]),
        (spec, "serving", reports),
    ):
        client.post("/workloads", json=register)
        run = client.post("/runs", json={"workload": register["name"]}).json()["id"]
        for number, report in enumerate(sent):
            answer = client.put(f"/runs/{run}/iterations/{number}", json=report)
            assert answer.status_code == 201, answer.text
        assert f"“{answer.json()['reason']['text']}”" in words((ROOT / f"docs/how-to/{page}.md").read_text())
    assert answer.json()["quality"] == pytest.approx(texts.pop("quality"), abs=1e-3)
    assert {name: answer.json()[name] for name in texts} == texts


def test_no_two_examples_share_a_name(client: TestClient) -> None:
    """All specs of documents and kinds on one service, again and again."""
    bodies = [json.loads(path.read_text()) for path in (ROOT / "docs").rglob("*.json")]
    bodies += [json.loads(block.text) for block in ALL if block.language == "json"]
    specs = [one for one in bodies if isinstance(one, dict) and one.get("kind") in KINDS]
    assert {spec["kind"] for spec in specs} == KINDS.keys()
    for _ in range(2):
        for kind in KINDS:
            assert client.post(f"/ui/examples/{kind}").status_code == 204
        for spec in sorted(specs, key=lambda spec: len(spec.get("members", ()))):  # members are to be there already
            answer = client.post("/workloads", json=spec)
            assert answer.status_code in (200, 201), answer.text
    kinds = {one["name"]: one["kind"] for one in client.get("/workloads").json()["items"]}
    assert [name for name, kind in kinds.items() if name in KINDS and name != kind] == []
