"""The TypeScript client: generated from the committed schema, checked strictly, and run against the application."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.clients.cutting import HALF, PAGE, UNHEARD, Cutting
from tests.clients.test_generated import ROOT, STALE, regenerate
from tests.clients.test_run import Handler, forwarded
from tests.servers import missing

__all__ = ["forwarded", "regenerate"]
SOURCES = ROOT / "clients/typescript"
AWAY = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET")
SECONDS = 280
WRONG = """import type { AnyDecision, components } from "../src/index.js";
export function unasked(decision: AnyDecision): unknown {
  // @ts-expect-error a decision has an allocation only where its kind was asked for
  return decision.allocation;
}
// @ts-expect-error a kind that there isn't
export const kind: components["schemas"]["IterativeSpec"]["kind"] = "magical";
"""
"""Does not compile where the lines below the comments do."""


REACTS = """import { react } from "./dist/src/index.js";
const applied = [];
const contingencies = [0.05, 0.1, 3600].map((after_seconds, i) => ({
  after_seconds, allocation: { gpus: 8 * (i + 1) }, reason: { code: "takes_long", text: "" },
}));
const apply = ({ gpus }) => { if (gpus === 8) throw new Error("no room"); applied.push(gpus); };
const running = react({ allocation: { gpus: 4 }, contingencies }, apply);
while (applied.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
await new Promise((resolve) => setTimeout(resolve, 10));
const quick = await react({ allocation: { gpus: 4 }, contingencies }, apply).stop();
const ended = await running.stop();
const slow = async ({ gpus }) => { await new Promise((resolve) => setTimeout(resolve, gpus === 16 ? 200 : 10)); };
const late = react({ allocation: { gpus: 4 }, contingencies: [0.02, 0.03].map((after_seconds, i) => ({
  after_seconds, allocation: { gpus: 16 * (i + 1) }, reason: { code: "takes_long", text: "" } })) }, slow);
await new Promise((resolve) => setTimeout(resolve, 100));
console.log(JSON.stringify([applied, ended, quick.segments, quick.allocation, await late.stop()]));
"""
"""An iteration that lasts until the second contingency, as the first one fails; another that is over at once."""


def called(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the client with what its lock file names."""
    if shutil.which("npm") is None:
        missing("npm")
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    command = ["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode and any(word in done.stderr for word in AWAY):
        pytest.skip("no registry of packages can be reached")
    assert done.returncode == 0, done.stderr
    yield folder
    shutil.rmtree(folder)


def test_casts_are_nowhere() -> None:
    for path in [*(SOURCES / "src").glob("*.ts"), *(SOURCES / "examples").glob("*.ts")]:
        code = re.sub(r"/\*.*?\*/|//.*|\"[^\"]*\"|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
        matches = re.findall(r".*(?:\bas\b|\bany\b|<any>|@ts-).*", code)
        assert matches == [], path.name


def test_it_is_the_schemas(installed: Path, regenerate: ModuleType) -> None:
    committed = (SOURCES / "src/schema.ts").read_text()
    regenerate.generate_typescript(installed)
    assert (installed / "src/schema.ts").read_text() == committed, f"the TypeScript client {STALE}"


def test_contingencies_are_applied_and_reported_as_segments(installed: Path) -> None:
    (installed / "reacts.mjs").write_text(REACTS)
    called(installed, "npx", "tsc")
    applied, reported, segments, allocation, late = json.loads(called(installed, "node", "reacts.mjs"))
    assert (applied, segments, allocation) == ([16], [], {"gpus": 4})
    assert [part["allocation"]["gpus"] for part in reported["segments"]] == [4, 16]
    assert reported["allocation"] == {"gpus": 16}
    assert sum(part["seconds"] for part in reported["segments"]) == pytest.approx(reported["seconds"])
    assert reported["segments"][0]["seconds"] >= 0.09
    # applied one after the other; what was not yet begun at the end is not applied any more
    assert [part["allocation"]["gpus"] for part in late["segments"]] == [4, 16]
    assert all(part["seconds"] > 0 for part in late["segments"])


AMISS = {2: PAGE, 3: httpx.Response(403, html="<p>no</p>"), 5: UNHEARD, 7: HALF}
"""Of the requests that report the first, the second and the third iteration."""


@pytest.mark.parametrize(
    "amiss", [{}, pytest.param(AMISS, marks=pytest.mark.slow)], ids=["undisturbed", "behind a proxy"]
)
def test_its_example_is_checked_and_trains(
    installed: Path, client: TestClient, forwarded: Handler, amiss: dict[int, str | httpx.Response]
) -> None:
    (installed / "examples/wrong.ts").write_text(WRONG)
    called(installed, "npx", "tsc")
    with Cutting(forwarded, amiss.get).running() as service:
        output = called(installed, "node", "dist/examples/train.js", service.url).splitlines()
    assert len(output) == 5
    assert all('{"gpus":' in line for line in output[:3])
    assert output[3:4] == ["3 iterations are reported"]
    assert output[4].startswith("404 ")
    (run,) = client.get("/runs").json()["items"]
    assert (run["workload"], run["state"], run["iterations"]) == ("typescript-example", "finished", 3)
