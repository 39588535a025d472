"""What recurrent agents remember of a run: kept with it, advanced once by every report, the same as in simulation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray
from sqlalchemy import select

from app.agents import service as agents
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.database.tables import Run
from app.domain_models import service as domain_models
from app.kinds.contract.policy import Choice, Situation
from app.kinds.engine import RunMemory
from app.kinds.iterative import policies
from app.kinds.iterative.engine import ENGINE
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import experience_of, load, save
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import RunState, advance, begin
from app.main import create_app
from app.policies.artifact import NOTHING
from app.policies.network import NetworkPolicy
from app.settings import Settings
from app.workloads import service as workloads
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.simulator import IterativeSimulator

TENANT, UNITS = "default", 6
SPEC = planted_spec()
LAYOUT, TABLE = Layout(SPEC), planted_table(SPEC)
Array = NDArray[Any]


def recurrent(seed: int) -> NetworkPolicy:
    """One whose choices hang on what it remembers."""
    random, size, actions = np.random.default_rng(seed), LAYOUT.observation_size, len(LAYOUT.deltas)
    shapes = {"trunk.0": (16, size + UNITS), "advantage": (actions, 16)}
    shapes |= {"core.input": (3 * UNITS, size), "core.memory": (3 * UNITS, UNITS)}
    arrays: dict[str, Any] = {f"{n}.weight": random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arrays |= {f"{n}.bias": random.normal(size=s[0]).astype(np.float32) for n, s in shapes.items()}
    arrays["core.input.weight"] *= 0.3
    arrays["trunk.0.weight"][:, size:] *= 8
    config = {"layers": [16], "activation": "tanh", "dueling": False, "recurrent": UNITS}
    return NetworkPolicy.build({"algorithm": "recurrent_ppo", **config}, arrays)


def publish(database: Database, policy: NetworkPolicy, *, promote: bool) -> bytes:
    with database.session() as session:
        workload = workloads.require(session, TENANT, SPEC.name)
        artifact = save(policy, LAYOUT, experience_of(LAYOUT))
        trained = TrainingResult(
            1, 1, "recurrent_ppo", 0, {"algorithm": "recurrent_ppo"}, artifact, promote, "good enough"
        )
        agents.publish(session, workload.id, trained)
    return artifact


@pytest.fixture
def artifacts(client: TestClient, backend: Database) -> dict[int, bytes]:
    """Agents 1, the champion, and 2, both recurrent, for the planted workload."""
    assert client.post("/workloads", json=SPEC.model_dump(mode="json")).status_code == 201
    with backend.session() as session:
        workload = workloads.require(session, TENANT, SPEC.name)
        domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, TABLE.to_bytes())
    return {1: publish(backend, recurrent(1), promote=True), 2: publish(backend, recurrent(2), promote=False)}


def simulated(artifact: bytes, seed: int) -> Iterator[tuple[dict[str, Any], dict[str, float]]]:
    """A whole run in the simulator: each report, and the allocation that the guarded policy answers it with."""
    result, simulator = load(artifact), IterativeSimulator(LAYOUT, TABLE, 1, seed, shaped=False)
    simulator.reset()
    memory = None
    for _ in range(SPEC.iterations - 1):
        state = simulator.state
        decided = policies.decide(simulator.situation._replace(memory=memory), result)
        memory = decided.memory
        report = {
            "allocation": LAYOUT.allocation_dict(state.levels[0]),
            "metrics": {"iteration_seconds": float(state.measured[0, 0])},
        }
        before = state.levels[0]
        after = np.clip(before + LAYOUT.deltas[decided.action[0]], 0, LAYOUT.tops)
        yield report, LAYOUT.allocation_dict(after)
        simulator.step(decided.action)


def replayed(artifact: bytes, reports: list[dict[str, Any]]) -> tuple[Array, list[int]]:
    """What a policy remembers after these reports, [H], in the precision of the service, and what it chose."""
    result, projector = load(artifact), Projector(LAYOUT, TABLE)
    state = begin(projector, LAYOUT.start_levels[None])
    memory: Array | None = None
    chosen: list[int] = []
    for report in reports:
        levels, metrics, _ = LAYOUT.encode_report(report["allocation"], report["metrics"], {})
        state = advance(projector, state, np.array([levels], np.int16), np.array([metrics]), np.zeros((1, 0)))
        decided = policies.decide(Situation(projector, state, view(projector, state), memory), result)
        memory = decided.memory
        chosen.append(int(decided.chosen[0]))
    assert memory is not None
    return memory[0], chosen


def start(client: TestClient, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": SPEC.name, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def remembered(database: Database, run: str) -> Mapping[int, Array]:
    with database.session() as session:
        stored = session.scalars(select(Run).where(Run.id == run)).one().state_vector
    return ENGINE.restore(stored).memories


def put_report(client: TestClient, run: str, number: int, report: dict[str, Any], status: int = 201) -> dict[str, Any]:
    answer = client.put(f"/runs/{run}/iterations/{number}", json=report)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def test_a_whole_run_is_decided_over_http_as_it_is_simulated(
    client: TestClient, backend: Database, settings: Settings, artifacts: dict[int, bytes]
) -> None:
    """Half of it by one process, half by another that knows nothing but the database; every report is sent twice."""
    run, reports = start(client, shadow=2), []
    for number, (report, allocation) in enumerate(simulated(artifacts[1], seed=4)):
        if number == SPEC.iterations // 2:
            client = TestClient(create_app(settings, backend))
        decision = put_report(client, run, number, report)
        reports.append(report)
        assert (decision["allocation"], decision["policy"]) == (allocation, "recurrent_ppo")
        assert put_report(client, run, number, report, 200) == decision
        assert client.get("/decision", params={"run": run}).json() == decision
    selection = remembered(backend, run)
    assert selection.keys() == {1, 2}
    for version, artifact in artifacts.items():
        memory, chosen = replayed(artifact, reports)
        np.testing.assert_array_equal(selection[version], memory)
        assert len(set(chosen)) > 1


def test_what_is_remembered_decides(artifacts: dict[int, bytes]) -> None:
    """The same run answered without it would have gone otherwise; else the test above would show nothing."""
    reports = [report for report, _ in simulated(artifacts[1], seed=4)]
    result, projector = load(artifacts[1]), Projector(LAYOUT, TABLE)
    state, forgetful = begin(projector, LAYOUT.start_levels[None]), []
    for report in reports:
        levels, metrics, _ = LAYOUT.encode_report(report["allocation"], report["metrics"], {})
        state = advance(projector, state, np.array([levels], np.int16), np.array([metrics]), np.zeros((1, 0)))
        forgetful.append(int(policies.decide(Situation(projector, state, view(projector, state)), result).chosen[0]))
    assert forgetful != replayed(artifacts[1], reports)[1]


def test_a_promoted_shadow_goes_on_remembering(
    client: TestClient, backend: Database, artifacts: dict[int, bytes]
) -> None:
    run, reports = start(client, shadow=2), [report for report, _ in simulated(artifacts[1], seed=7)][:6]
    for number, report in enumerate(reports[:3]):
        put_report(client, run, number, report)
    assert client.post(f"/workloads/{SPEC.name}/agents/2/promote").status_code in {200, 201}
    for number, report in enumerate(reports[3:], 3):
        put_report(client, run, number, report)
    selection = remembered(backend, run)
    np.testing.assert_array_equal(selection[2], replayed(artifacts[2], reports)[0])


def test_whoever_fails_remembers_what_it_did_before(
    client: TestClient, backend: Database, artifacts: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, reports = start(client), [report for report, _ in simulated(artifacts[1], seed=7)][:3]
    put_report(client, run, 0, reports[0])
    before, act = remembered(backend, run), NetworkPolicy.act

    def failing(policy: NetworkPolicy, situation: Situation) -> Choice:
        raise FloatingPointError("overflow")

    monkeypatch.setattr(NetworkPolicy, "act", failing)
    assert put_report(client, run, 1, reports[1])["source"] == "fallback"
    np.testing.assert_array_equal(remembered(backend, run)[1], before[1])
    monkeypatch.setattr(NetworkPolicy, "act", act)
    assert put_report(client, run, 2, reports[2])["source"] == "agent"
    assert (remembered(backend, run)[1] != before[1]).any()


@pytest.mark.parametrize("announced", [0, 2])
def test_a_state_is_restored_to_the_bit_and_weighed(announced: int) -> None:
    random = np.random.default_rng(0)
    memories = {v: random.normal(size=UNITS).astype(np.float32) for v in (3, 11)}
    state = RunState(random.random(9), random.normal(size=(announced, 2)), frozenset({7}))
    restore = ENGINE.restore(msgspec.json.decode(ENGINE.serialise(RunMemory(state, memories))))
    np.testing.assert_array_equal(restore.state.row, state.row)
    assert restore.state.notices == {7}
    np.testing.assert_array_equal(restore.state.upcoming.reshape(-1), state.upcoming.reshape(-1))
    assert restore.memories.keys() == memories.keys()
    for version, memory in memories.items():
        np.testing.assert_array_equal(restore.memories[version], memory)
        assert restore.memories[version].dtype == np.float32
    plain = RunMemory(state)
    assert ENGINE.weight(RunMemory(state, memories)) - ENGINE.weight(plain) == 2 * UNITS * 4
    assert ENGINE.restore(msgspec.json.decode(ENGINE.serialise(plain))).memories is NOTHING
