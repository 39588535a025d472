"""The cached view that decisions are served from: what it holds, and how soon it follows changes made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.agents import service as agents
from app.agents.schemas import PromotionRequest
from app.agents.service import TrainingResult
from app.database.engine import Database
from app.domain_models import service as domain_models
from app.errors import NotFound
from app.kinds.contract.engine import DEFAULT_ROLE, Snapshot
from app.kinds.iterative.heuristics import HeuristicPolicy
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import initial_table
from app.kinds.iterative.policies import save
from app.kinds.iterative.spec import Spec
from app.workloads import service
from app.workloads import snapshot as module
from app.workloads.snapshot import LEAST_BYTES, WorkloadCache
from tests.roles import with_roles

TENANT = "default"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(database: Database, clock: Clock) -> WorkloadCache:
    return WorkloadCache(database, 0.5, clock)


@pytest.fixture
def elsewhere(database: Database) -> Iterator[Database]:
    """The same database as another process has it."""
    result = Database(database.url.render_as_string(hide_password=False))
    yield result
    result.dispose()


@pytest.fixture
def registered(database: Database, spec: dict[str, Any]) -> Spec:
    result = Spec.model_validate(spec)
    service.register(database, TENANT, result)
    return result


def publish_model(database: Database, spec: Spec) -> int:
    """A model that knows nothing, as the newest version."""
    with database.session() as session:
        workload = service.require(session, TENANT, spec.name)
        return domain_models.publish(
            session, workload.id, 1, {"family": "none"}, initial_table(Layout(spec)).to_bytes()
        )


def publish_agent(database: Database, spec: Spec, model: int, *, promote: bool = True, artifact: bytes = b"") -> int:
    """An agent that is a heuristic, as the newest version."""
    result = artifact or save(HeuristicPolicy({"heuristic": "threshold"}), Layout(spec))
    trained = TrainingResult(1, model, "dqn", 0, {}, result, promote, "good enough")
    with database.session() as session:
        workload = service.require(session, TENANT, spec.name)
        return agents.publish(session, workload.id, trained)


def test_a_workload_without_model_or_agent_is_served(cache: WorkloadCache, registered: Spec) -> None:
    snapshot = cache.get(registered.name)
    assert (snapshot.spec, snapshot.model, snapshot.artifact, snapshot.problem) == (registered, None, None, "")
    assert cache.get(snapshot.workload_id) is snapshot
    assert cache.peek(registered.name) is snapshot


def test_what_is_unknown_is_not_found(cache: WorkloadCache) -> None:
    assert cache.peek("nothing") is None
    with pytest.raises(NotFound, match="nothing"):
        cache.get("nothing")


def test_a_change_is_seen_after_the_poll_interval_and_not_before(
    cache: WorkloadCache, clock: Clock, elsewhere: Database, registered: Spec
) -> None:
    first = cache.get(registered.name)
    version = publish_agent(elsewhere, registered, publish_model(elsewhere, registered))
    clock.now = 0.49
    assert cache.get(registered.name) is first
    clock.now = 0.51
    assert cache.peek(registered.name) is None
    second = cache.get(registered.name)
    assert (second.agent_version, second.model_version) == (version, 1)
    assert second.artifact is not None
    assert second.artifact.policy.name == "threshold"


def test_an_unchanged_workload_is_not_compiled_again(cache: WorkloadCache, clock: Clock, registered: Spec) -> None:
    first = cache.get(registered.name)
    clock.now = 100.0
    assert cache.get(registered.name) is first


def test_the_champion_is_served_with_the_model_it_was_trained_on(
    cache: WorkloadCache, database: Database, registered: Spec
) -> None:
    publish_agent(database, registered, publish_model(database, registered))
    assert publish_model(database, registered) == 2
    assert cache.get(registered.name).model_version == 1


def test_a_promotion_in_any_role_is_seen(
    cache: WorkloadCache, clock: Clock, elsewhere: Database, registered: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = elsewhere
    with_roles(monkeypatch, registered.kind, (DEFAULT_ROLE, "standby"))
    model = publish_model(database, registered)
    first, second = (publish_agent(database, registered, model, promote=promote) for promote in (True, False))
    before = cache.get(registered.name)
    assert {role: one.version for role, one in before.policies.items()} == {DEFAULT_ROLE: first}
    agents.promote(database, TENANT, registered.name, second, PromotionRequest(role="standby"))
    clock.now = 1.0
    cache.poll()
    after = cache.peek(registered.name)
    assert after is not None
    assert (after.revision, after.agent_version) == (before.revision + 1, first)
    assert {role: one.version for role, one in after.policies.items()} == {DEFAULT_ROLE: first, "standby": second}
    assert after.artifact is after.policies[DEFAULT_ROLE].artifact is not None
    broken = publish_agent(database, registered, model, promote=False, artifact=b"no policy")
    agents.promote(database, TENANT, registered.name, broken, PromotionRequest(role="standby"))
    clock.now = 2.0
    present = cache.get(registered.name)
    assert (present.problem, present.policies["standby"].artifact) == (
        "",
        None,
    )  # one role's champion spoils no other's
    assert "can't be used" in present.policies["standby"].problem


def test_without_champion_the_newest_model_is_served(
    cache: WorkloadCache, database: Database, registered: Spec
) -> None:
    publish_agent(database, registered, publish_model(database, registered), promote=False)
    publish_model(database, registered)
    snapshot = cache.get(registered.name)
    assert (snapshot.agent_version, snapshot.model_version) == (None, 2)


def test_poll_follows_changes_and_drops_what_is_gone(
    cache: WorkloadCache, clock: Clock, elsewhere: Database, registered: Spec
) -> None:
    database = elsewhere
    cache.poll()
    first = cache.get(registered.name)
    clock.now = 1.0
    cache.poll()
    assert cache.peek(registered.name) is first
    service.change(database, TENANT, registered.name, {"targets": {"iteration_seconds": 9.0}})
    cache.poll()
    second = cache.peek(registered.name)
    assert second is not None
    assert second.spec.model_dump()["metrics"][0]["target"] == 9.0
    service.delete(database, TENANT, registered.name)
    cache.poll()
    assert cache.peek(registered.name) is None


def test_a_workload_registered_anew_is_another_one(
    cache: WorkloadCache, clock: Clock, database: Database, registered: Spec
) -> None:
    first = cache.get(registered.name)
    service.delete(database, TENANT, registered.name)
    service.register(database, TENANT, registered)
    clock.now = 1.0
    assert cache.get(registered.name).workload_id != first.workload_id


def test_a_change_of_this_process_is_seen_at_once(
    cache: WorkloadCache, database: Database, registered: Spec, spec: dict[str, Any]
) -> None:
    service.register(database, TENANT, Spec.model_validate(spec | {"name": "other"}))
    other = cache.get("other")
    cache.get(registered.name)
    service.change(database, TENANT, registered.name, {"targets": {"iteration_seconds": 9.0}})
    assert cache.get(registered.name).spec_version == 2
    publish_agent(database, registered, publish_model(database, registered))
    assert cache.get(registered.name).agent_version == 1
    assert cache.peek("other") is other


def test_a_name_registered_again_in_this_process_is_the_new_workload_at_once(
    cache: WorkloadCache, database: Database, registered: Spec
) -> None:
    first = cache.get(registered.name)
    service.delete(database, TENANT, registered.name)
    with pytest.raises(NotFound):
        cache.get(registered.name)
    with pytest.raises(NotFound):
        cache.get(first.workload_id)
    service.register(database, TENANT, registered)
    assert cache.get(registered.name).workload_id != first.workload_id


def test_what_changes_while_it_is_loaded_is_looked_up_again(
    cache: WorkloadCache, clock: Clock, database: Database, registered: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = module.load

    def changing(*values: Any) -> Snapshot:
        outcome = loaded(*values)
        monkeypatch.setattr(module, "load", loaded)
        service.change(database, TENANT, registered.name, {"targets": {"iteration_seconds": 9.0}})  # waits for no load
        return outcome

    monkeypatch.setattr(module, "load", changing)
    assert cache.get(registered.name).spec_version == 1
    assert cache.peek(registered.name) is None
    assert cache.get(registered.name).spec_version == 2
    service.change(database, TENANT, registered.name, {"targets": {"iteration_seconds": 8.0}})
    clock.now = 0.1
    cache.poll()
    result = cache.peek(registered.name)
    assert result is not None
    assert result.spec_version == 3


def test_a_change_that_is_rolled_back_leaves_the_cache(
    cache: WorkloadCache, database: Database, registered: Spec
) -> None:
    first = cache.get(registered.name)

    def fails() -> None:
        with database.session() as session:
            service.require(session, TENANT, registered.name).revision += 1
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert cache.peek(registered.name) is first


def test_a_broken_artifact_is_said_not_served(
    cache: WorkloadCache, database: Database, registered: Spec, caplog: pytest.LogCaptureFixture
) -> None:
    publish_agent(database, registered, publish_model(database, registered), artifact=b"broken")
    snapshot = cache.get(registered.name)
    assert snapshot.artifact is None
    assert "agent 1 can't be used" in snapshot.problem
    assert "agent 1 can't be used" in caplog.text


def test_an_artifact_of_another_layout_is_said_not_served(
    cache: WorkloadCache, database: Database, registered: Spec, spec: dict[str, Any]
) -> None:
    spec["resources"][0]["max_steps"] = 1
    other = save(HeuristicPolicy({"heuristic": "hold"}), Layout(Spec.model_validate(spec)))
    publish_agent(database, registered, publish_model(database, registered), artifact=other)
    assert "another spec" in cache.get(registered.name).problem


def test_only_so_many_workloads_are_kept(database: Database, spec: dict[str, Any], clock: Clock) -> None:
    identifiers = {
        name: service.register(database, TENANT, Spec.model_validate(spec | {"name": name})).id for name in "abc"
    }
    cache = WorkloadCache(database, 0.5, clock, size_bytes=int(2.5 * LEAST_BYTES))
    for name in ("a", identifiers["a"], "b", "a", "c"):
        assert cache.get(name).name in "abc"
    selection = {name: (cache.peek(name), cache.peek(identifier)) for name, identifier in identifiers.items()}
    assert selection["b"] == (None, None)  # asked for longest ago
    assert selection["a"][0] is selection["a"][1] is not None
    assert selection["c"][0] is not None
    assert cache.get("b").name == "b"
    assert cache.peek("a") is None
