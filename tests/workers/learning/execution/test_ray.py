"""The executor contract on a local Ray cluster, one for the module: its start takes several seconds."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import psutil
import pytest

from tests.contracts.executor import BATCH, CONFIGS, DistributedContract, Plan, make_executor, simulator
from workers.learning.execution import ExecutionError

TRIES = 3  # a node that is not up within Ray's own limit of 30 s, as on a busy machine, is ended and started anew


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def start(ray: Any, others: set[psutil.Process], tries: int = TRIES) -> None:
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            log_to_driver=False,
            configure_logging=False,
        )
    except Exception as error:  # Ray's own is of no narrower type
        if tries == 1 or "timed out" not in str(error):
            raise
        end(ray, others)
        start(ray, others, tries - 1)


def end(ray: Any, others: set[psutil.Process]) -> None:
    """End the cluster, and by their ids the processes of its own that it leaves behind."""
    started = children() - others
    ray.shutdown()
    _, left = psutil.wait_procs(started, timeout=30)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=30)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="Ray is not installed (the optional extra `ray`)")
    others = children()
    try:
        start(ray, others)
        yield ray
    finally:
        end(ray, others)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
class TestRay(DistributedContract):
    name: ClassVar[str] = "ray"

    @pytest.mark.parametrize("config", ["n_step_prioritised", "vtrace"])
    def test_the_same_config_learns_as_well_as_in_series(self, make: Callable[..., Any], config: str) -> None:
        self.learns_as_well_as_in_series(make, config)

    def test_paused_and_resumed_is_as_good_as_not_paused(self, make: Callable[..., Any]) -> None:
        self.resumes(make, keep_memory=True)

    def test_a_killed_actor_is_replaced_and_training_goes_on(self, make: Callable[..., Any]) -> None:
        self.replaces_the_killed(make)

    def kill(self, executor: Any) -> None:
        executor.fleet.ray.kill(executor.fleet.actors[0])

    def test_closing_ends_its_actors_and_leaves_the_cluster_of_others(self, cluster: Any) -> None:
        executor: Any = make_executor("ray", CONFIGS["double"], simulator(), Plan(10**9, BATCH), 0)
        self.ready(executor)
        actor = executor.fleet.actors[0]
        executor.close()
        with pytest.raises(cluster.exceptions.RayActorError):
            cluster.get(actor.produce.remote(executor.agent.parameters(executor.product.actor_arrays), 0.0))
        assert cluster.is_initialized()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExecutionError, match=r"pip install .*\[ray\]"):
        make_executor("ray", CONFIGS["double"], simulator(), Plan(64), 0)
