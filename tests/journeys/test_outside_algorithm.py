"""An algorithm from outside: installed by what its `pyproject.toml` says, trained, exported, served and asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.agents import algorithms
from app.database.engine import Database
from app.database.tables import Job
from app.domain_models import service as domain_models
from app.kinds.contract.policy import Situation
from app.policies.artifact import SHARED
from app.policies.base import RETURN_SCALE
from app.settings import Settings
from app.workloads import service as workloads
from tests.contracts.executor import (
    BATCH,
    EPISODES,
    SPEC,
    TABLE,
    VALUES,
    Plan,
    assert_as_good,
    finish,
    make_executor,
    simulator,
)
from tests.outside import install
from workers.kinds.iterative.simulator import describe_simulator
from workers.learning.algorithms import registry
from workers.learning.algorithms.config import DeviceConfig, Memory, Network, Optimiser
from workers.learning.backends import BACKENDS, get_backend
from workers.learning.describe import main as show
from workers.tasks.base import perform
from workers.tasks.online import train

NAME = "munchausen_dqn"
SOURCE = Path(__file__).parents[2] / "examples" / "munchausen"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> registry.Algorithm:
    """Munchausen DQN, as if `pip install -e` had been run on it; for processes of their own, too."""
    install(SOURCE, tmp_path / "site", monkeypatch)
    return registry.algorithm(NAME)


def small(algorithm: registry.Algorithm) -> Any:
    """Its config, in the size of the planted problem's others."""
    shared = {name: getattr(VALUES, name) for name in ("network", "exploration", "memory", "batch", "target_share")}
    changed = shared | {"optimiser": Optimiser(rate=3e-3), "updates_per_slab": 1, "place": DeviceConfig(device="cpu")}
    return msgspec.structs.replace(algorithm.config, **changed)


def test_it_is_not_there_before_it_is_installed() -> None:
    assert NAME not in registry.names()
    with pytest.raises(registry.UnknownAlgorithm, match=r"there are a2c, .*vtrace"):
        registry.algorithm(NAME)


def test_one_file_of_a_hundred_and_fifty_lines_is_listed_shown_and_goes_to_json(
    installed: registry.Algorithm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len((SOURCE / "munchausen.py").read_text().splitlines()) <= 150
    assert NAME in registry.names()
    assert NAME in algorithms.names()
    assert registry.decode(msgspec.json.encode(installed.config)) == installed.config
    assert show([NAME, "--observation", "6", "--actions", "3"]) == 0
    assert "target (MunchausenTarget)" in capsys.readouterr().out


def test_the_service_lists_it_without_importing_it(installed: registry.Algorithm) -> None:
    code = (
        "import sys; from app.agents.schemas import TrainRequest; TrainRequest(algorithm='munchausen_dqn');"
        "print({'torch', 'workers', 'munchausen'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "set()"


@pytest.mark.parametrize("backend", BACKENDS)
def test_its_target_is_the_papers(installed: registry.Algorithm, backend: str) -> None:
    from munchausen import MunchausenTarget

    share, tau, lowest, there = 0.9, 0.5, -1.0, get_backend(backend)
    rng = np.random.default_rng(0)
    q, after = rng.normal(size=(2, 5, 3)).astype(np.float32)
    mask, following = np.ones((5, 3), np.bool_), np.array([[True, True, False]] * 5)
    action, reward = np.array([0, 1, 2, 0, 1]), rng.normal(size=5).astype(np.float32)
    discount = np.array([0.9, 0.0, 0.9, 0.9, 0.0], np.float32)
    values = {"reward": reward, "discount": discount, "action": action, "before": q, "mask": mask}
    values |= {"after": after, "next_mask": following}
    result = MunchausenTarget(share, tau, lowest).run(there.xp, {}, {n: there.asarray(v) for n, v in values.items()})
    for i in range(5):
        logs = tau * np.log(np.exp(q[i] / tau) / np.exp(q[i] / tau).sum())
        legal = after[i, :2]
        chance = np.exp(legal / tau) / np.exp(legal / tau).sum()
        ahead = (chance * (legal - tau * np.log(chance))).sum()
        wanted = reward[i] + share * np.clip(logs[action[i]], lowest, 0.0) + discount[i] * ahead
        assert float(result["target"][i]) == pytest.approx(wanted, rel=1e-4, abs=1e-5)


def test_it_learns_serially_is_exported_and_acts_in_the_service(installed: registry.Algorithm) -> None:
    executor = make_executor("serial", small(installed), simulator(), Plan(BATCH * 300, BATCH * 100), 0)
    assert_as_good(finish(executor), "double")
    kind, result, arrays = executor.agent.export()
    policy = SHARED[kind].build({"algorithm": NAME, **result}, dict(arrays))
    world = describe_simulator(SPEC, TABLE, EPISODES, 99, expected=True).make()
    observation, mask = world.reset()
    choice = policy.act(Situation(None, None, cast("Any", SimpleNamespace(observation=observation, mask=mask))))
    assert choice.values is not None
    ours = executor.agent.values(observation, mask)
    np.testing.assert_allclose((choice.values * RETURN_SCALE)[mask], ours[mask], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(choice.action, executor.agent.greedy(observation, mask))


def test_the_same_seed_gives_the_same(installed: registry.Algorithm) -> None:
    def learned(seed: int) -> np.ndarray[Any, Any]:
        executor = make_executor("serial", small(installed), simulator(seed), Plan(BATCH * 40, BATCH * 20), seed)
        while not executor.done:
            executor.advance()
        return executor.agent.parameters()

    first = learned(1)
    np.testing.assert_array_equal(first, learned(1))
    assert (first != learned(2)).any()


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "delivered"), [(128, "Gradients"), (16, "Entries")])
def test_it_learns_over_processes(installed: registry.Algorithm, batch: int, delivered: str) -> None:
    config = msgspec.structs.replace(small(installed), batch=batch)
    executor: Any = make_executor("processes", config, simulator(), Plan(10**9, BATCH), 0)
    try:
        assert type(executor.product).__name__ == delivered
        while not executor.deliveries:
            executor.advance()
        slabs = 300 if delivered == "Gradients" else 1_000
        executor.plan = Plan(executor.steps + BATCH * slabs, BATCH * 50)
        before = executor.deliveries
        assert_as_good(finish(executor), "double")
        assert executor.deliveries > before
    finally:
        executor.close()


def test_it_is_trained_for_a_workload_over_http(
    installed: registry.Algorithm, app: FastAPI, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.kinds.iterative.training.VALIDATION_EPISODES", 128)
    small_one = msgspec.structs.replace(
        installed.config, network=Network(layers=(16,)), batch=128, memory=Memory(capacity=4_096, warm_up=512)
    )
    monkeypatch.setattr(registry, "algorithm", lambda _: registry.Algorithm(NAME, small_one, installed.build))
    client = TestClient(app)
    assert client.post("/workloads", json=SPEC.model_dump(mode="json")).status_code == 201
    with database.session() as session:
        domain_models.publish(session, workloads.require(session, "default", SPEC.name).id, 1, {}, TABLE.to_bytes())
    answer = client.post(f"/workloads/{SPEC.name}/agents", json={"algorithm": NAME, "budget": 3_000})
    assert answer.status_code == 202, answer.text
    perform(database, settings, answer.json()["id"], train)
    with database.reading() as session:
        job = session.get_one(Job, answer.json()["id"])
        assert job.state == "succeeded", job.error
    agent = client.get(f"/workloads/{SPEC.name}/agents/1").json()
    assert agent["algorithm"] == NAME
    assert agent["report"]["config"]["type"] == NAME
