"""The actuators for Kubernetes against a double of its API."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pytest
from steward_client.kubernetes import KubernetesApi, parse_quantity
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import (
    Actuator,
    ActuatorError,
    CannotSet,
    Deferring,
    Launch,
    Range,
    Unavailable,
)
from steward_client.launcher.actuators.kit import DeferringKit
from steward_client.launcher.actuators.requests import Requests

from tests.clients.launcher.kits import LeavingKit, QuickKit
from tests.clients.launcher.pods import Pods
from tests.kubernetes_double import POLICY, QUOTA, WEBHOOK, Refused
from tests.kubernetes_schemas import definition_of
from tests.servers import missing

APPS, BATCH, CUSTOM, TRAINER = (
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/example.org/v1",
    "/apis/trainer.kubeflow.org/v1alpha1",
)
Make = Callable[[], Actuator]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    double = Pods(folder=tmp_path)
    monkeypatch.setattr(KubernetesApi, "connect", lambda _=None: double.api())
    yield double
    for program in double.programs.values():
        program.end()


class TestPod(LeavingKit, DeferringKit):
    wanted: ClassVar[dict[str, Range]] = {"cpu": Range(50, 200, 50), "memory": Range(64, 256, 64)}
    separate = False

    @pytest.fixture
    def make(self, cluster: Pods) -> Make:
        self.cluster = cluster
        return lambda: registry.create("kubernetes", self.wanted, {"image": "python:3.11"})

    def fill(self, actuator: Actuator) -> None:
        self.cluster.used = Decimal(3)

    def free(self, actuator: Actuator) -> None:
        self.cluster.used = Decimal(0)

    def test_a_resize_that_the_kubelet_has_not_looked_at_waits_and_may_be_infeasible(
        self, make: Make, cluster: Pods
    ) -> None:
        with self.started(make, self.running()) as actuator, self.started(make, self.running()) as other:
            actuator.wait(0)
            assert isinstance(actuator, Deferring)
            requests = Requests(actuator)
            cluster.syncs = 1_000
            result = requests.set({"cpu": 500})
            assert (result.state, result.reason) == ("requested", "PodResizePending")
            cluster.syncs = 0
            with pytest.raises(CannotSet, match="cpu=500 can't be set: the node has no room for it now") as refused:
                actuator.poll()
            assert refused.value.reason == "Infeasible"
            assert actuator.poll() == ""
            assert self.same(actuator.current(), self.first)
            calls = [one["spec"]["containers"][0]["resources"]["requests"]["cpu"] for one in cluster.objects.values()]
            assert calls == ["500m", "500m"]
            cluster.used = Decimal(3)
            result = requests.set({"cpu": 200})
            assert result.reason.startswith("Deferred: Node didn't have enough resource: cpu")
            assert requests.set({"cpu": 500}).reason == "Infeasible"
            assert other.wait(0) is None

    def test_a_cluster_that_goes_away_after_a_request_leaves_it_waiting(
        self, make: Make, cluster: Pods, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        patch = KubernetesApi.patch

        def patch_and_go(api: KubernetesApi, *values: Any) -> Any:
            response, cluster.plan = patch(api, *values), [503] * 9
            return response

        with self.started(make, self.running()) as actuator, self.started(make, self.running()) as other:
            actuator.wait(0)
            now = [0.0]
            requests = Requests(actuator, clock=lambda: now[0])
            monkeypatch.setattr(KubernetesApi, "patch", patch_and_go)
            assert requests.set({"cpu": 200}).state == "requested"
            cluster.plan, now[0] = [], 2.0
            code = requests.poll()
            assert code is not None
            assert code.state == "granted"
            assert self.same(actuator.current(), {**self.first, "cpu": 200})
            assert self.same(other.current(), self.first)

    def test_what_waits_is_given_up_for_what_is_beyond_the_bounds(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running()) as actuator:
            actuator.wait(0)
            requests = Requests(actuator)
            cluster.used = Decimal(3)
            assert requests.set({"cpu": 200}).state == "requested"
            assert requests.set({"cpu": 0.5}).state == "refused"
            (pod,) = cluster.objects.values()
            assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"
            assert not requests.awaits

    def test_what_could_not_be_withdrawn_still_waits(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running()) as actuator:
            actuator.wait(0)
            now = [0.0]
            requests = Requests(actuator, clock=lambda: now[0])
            cluster.used = Decimal(3)
            assert requests.set({"cpu": 200}).state == "requested"
            cluster.plan = [503] * 30
            assert requests.set({"cpu": 50}).state == "refused"
            assert requests.awaits, "the pod asks for it on"
            cluster.plan, cluster.used, now[0] = [], Decimal(0), 2.0
            code = requests.poll()
            assert code is not None
            assert (code.state, code.allocation) == ("granted", {"cpu": 200})
            assert self.same(actuator.current(), {**self.first, "cpu": 200})
            assert requests.set({"cpu": 50}).state == "granted"
            assert not requests.awaits

    def test_what_a_policy_lets_nobody_take_back_still_waits(
        self, make: Make, cluster: Pods, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        patch = KubernetesApi.patch

        def refused(api: KubernetesApi, *values: Any) -> Any:
            cluster.plan = [POLICY]
            return patch(api, *values)

        with self.started(make, self.running()) as actuator, self.started(make, self.running()) as other:
            actuator.wait(0)
            now = [0.0]
            requests = Requests(actuator, 60.0, lambda: now[0])
            cluster.used = Decimal(3)
            assert requests.set({"cpu": 200}).state == "requested"
            with monkeypatch.context() as policy:
                policy.setattr(KubernetesApi, "patch", refused)
                now[0] = 61.0
                assert requests.poll() is None
                assert requests.set({"cpu": 50}).state == "refused"
                assert requests.awaits, "the pod asks for it on"
            cluster.used, now[0] = Decimal(0), 200.0
            code = requests.poll()
            assert code is not None
            assert (code.state, code.allocation) == ("granted", {"cpu": 200})
            assert self.same(actuator.current(), {**self.first, "cpu": 200})
            assert self.same(other.current(), self.first)

    @pytest.mark.parametrize("ends", ["taken back", "granted"])
    def test_what_is_infeasible_and_cannot_be_taken_back_still_waits(
        self, make: Make, cluster: Pods, monkeypatch: pytest.MonkeyPatch, ends: str
    ) -> None:
        """A policy against smaller sizes, such as a validating admission policy, lets a pod ask for too much."""
        patch = KubernetesApi.patch

        def no_smaller(api: KubernetesApi, path: str, body: Any, kind: Any) -> Any:
            wanted = parse_quantity(body["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            pod = cluster.objects[path.removesuffix("/resize")]
            if wanted < parse_quantity(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]):
                cluster.plan = [POLICY]
            return patch(api, path, body, kind)

        with self.started(make, self.running()) as actuator, self.started(make, self.running()) as other:
            actuator.wait(0)
            now = [0.0]
            requests = Requests(actuator, 60.0, clock=lambda: now[0])
            with monkeypatch.context() as policy:
                policy.setattr(KubernetesApi, "patch", no_smaller)
                found = requests.set({"cpu": 500})
                assert found.state == "requested"
                assert found.reason.startswith("Infeasible: Node didn't have enough capacity: cpu, requested: 5000")
                assert "; it can't be taken back: cpu=50 can't be set: Kubernetes refused it: " in found.reason
                assert requests.set({"cpu": 100}).state == "refused"
                for now[0] in (2.0, 90.0):  # also after its time
                    assert requests.poll() is None
                assert requests.awaits
                assert self.same(actuator.current(), self.first)
                if ends == "granted":  # the node was resized
                    cluster.room, now[0] = Decimal(8), 200.0
                    granted = requests.poll()
            now[0] = 300.0
            settled = granted if ends == "granted" else requests.poll()
            assert settled is not None
            cores = [one["spec"]["containers"][0]["resources"]["requests"]["cpu"] for one in cluster.objects.values()]
            if ends == "granted":
                assert (settled.state, settled.allocation) == ("granted", {"cpu": 500})
                assert actuator.current() == {**self.first, "cpu": 500}
                assert sorted(cores) == ["5", "500m"]
            else:
                assert (settled.state, settled.reason) == ("refused", "Infeasible")
                assert self.same(actuator.current(), self.first)
                assert cores == ["500m", "500m"]
                assert requests.set({"cpu": 100}).state == "granted"
            assert self.same(other.current(), self.first)

    def test_it_is_resized_in_place_and_gone_at_the_end(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running(), name="Run_1") as actuator:
            ((path, pod),) = cluster.objects.items()
            assert pod["metadata"]["name"].startswith("run-1-")
            actuator.apply(self.last)
            ((changed, _, _),) = cluster.calls
            assert changed == f"{path}/resize"
            resources = cluster.objects[path]["spec"]["containers"][0]["resources"]
            assert resources["requests"] == resources["limits"] == {"cpu": "2", "memory": "256Mi"}
            assert actuator.wait(0) is None
        assert cluster.objects == {}

    def test_what_its_node_can_never_have_room_for_is_undone(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running()) as actuator:
            why = "cpu=500 can't be set: the node has no room for it now: Node didn't have enough capacity"
            with pytest.raises(CannotSet, match=why):
                actuator.apply({"cpu": 500})
            assert self.same(actuator.current(), self.first)
            (pod,) = cluster.objects.values()
            assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"

    def test_a_cluster_that_is_away_ends_nothing(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running()) as actuator:
            cluster.plan = [503]
            assert actuator.wait(0) is None
            cluster.plan = [503, 403]
            with pytest.raises(ActuatorError, match=r"403 pods .* cannot patch .*; allow it to the service account"):
                actuator.apply(self.last)
            assert actuator.apply(self.last) == self.last

    @pytest.mark.parametrize("refusal", [QUOTA, WEBHOOK, POLICY], ids=["quota", "webhook", "policy"])
    def test_what_admission_refuses_cant_be_set_and_is_no_matter_of_permissions(
        self, make: Make, cluster: Pods, refusal: Refused
    ) -> None:
        with self.started(make, self.running()) as actuator:
            cluster.plan = [503, refusal]
            with pytest.raises(CannotSet, match=r"Kubernetes refused it: .*") as raised:
                actuator.apply({"cpu": 200})
            assert str(refusal) in str(raised.value)
            assert "service account" not in str(raised.value)
            assert self.same(actuator.current(), self.first)

    def test_a_pod_that_admission_refuses_is_not_started(self, make: Make, cluster: Pods) -> None:
        cluster.plan = [QUOTA]
        with pytest.raises(ActuatorError, match="exceeded quota"), self.started(make, self.running()):
            pass
        assert cluster.objects == {}

    def test_calls_that_are_put_off_are_repeated(self, make: Make, cluster: Pods) -> None:
        cluster.plan = [429]
        with self.started(make, self.running()) as actuator:
            cluster.plan = [503, 429, 409]  # the first to a look at the pod, and the others to the resize
            assert actuator.apply(self.last) == self.last
        assert cluster.pauses == [1.0, 1.0, 0.1]


POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "steward", "image": "python:3.11"}]}}


def scaled(cluster: Pods, group: str, plural: str) -> str:
    """An object of a kind, valid, with seven of what is scaled."""
    pods = {"metadata": {"labels": {"app": "trainer"}}, "spec": {"containers": POD["spec"]["containers"]}}
    replicas = {"replicas": 7, "selector": {"matchLabels": {"app": "trainer"}}, "template": pods}
    kind, spec = {
        "deployments": ("Deployment", replicas),
        "statefulsets": ("StatefulSet", {**replicas, "serviceName": "trainer"}),
        "jobs": ("Job", {"parallelism": 7, "template": POD}),
        "trainings": ("Training", {"size": "7"}),
        "trainjobs": ("TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 7}}),
    }[plural]
    version = group.removeprefix("/apis/")
    return cluster.add(
        group, plural, {"apiVersion": version, "kind": kind, "metadata": {"name": "trainer"}, "spec": spec}
    )


def replicas(cluster: Pods) -> int:
    """How many the Deployment of ``scaled`` should have."""
    (one,) = (it for path, it in cluster.objects.items() if "/deployments/" in path)
    return int(one["spec"]["replicas"])


class TestScale(QuickKit, DeferringKit):
    wanted: ClassVar[dict[str, Range]] = {"workers": Range(1, 4)}

    def fill(self, actuator: Actuator) -> None:
        self.cluster.ready = 2

    def free(self, actuator: Actuator) -> None:
        self.cluster.ready = 100

    @pytest.fixture
    def make(self, cluster: Pods) -> Make:
        self.cluster = cluster
        scaled(cluster, APPS, "deployments")
        return lambda: registry.create("kubernetes-scale", self.wanted, {"target": "deployment/trainer"})

    @pytest.mark.parametrize(
        ("group", "plural", "options", "expected"),
        [
            (APPS, "deployments", {"target": "deployment/trainer"}, {"replicas": 4}),
            (APPS, "statefulsets", {"target": "statefulset/trainer"}, {"replicas": 4}),
            (BATCH, "jobs", {"target": "job/trainer"}, {"parallelism": 4}),
            (
                CUSTOM,
                "trainings",
                {"target": f"{CUSTOM}/namespaces/default/trainings/trainer", "fields": "workers=spec.size*512Mi"},
                {"size": str(4 * 512 * 2**20)},
            ),
        ],
    )
    def test_what_is_scaled(
        self, cluster: Pods, group: str, plural: str, options: dict[str, str], expected: dict[str, Any]
    ) -> None:
        path = scaled(cluster, group, plural)
        before = copy.deepcopy(cluster.objects[path]["spec"])
        actuator = registry.create("kubernetes-scale", self.wanted, options)
        actuator.start(Launch(self.running(), self.first))
        actuator.apply(self.last)
        actuator.close()
        assert cluster.objects[path]["spec"] == before | expected

    def test_replicas_that_are_not_ready_wait_and_say_what_the_cluster_says(self, make: Make, cluster: Pods) -> None:
        with self.started(make, self.running()) as actuator:
            requests = Requests(actuator)
            cluster.ready = 2
            assert requests.set({"workers": 4}).reason == "NotReady: 2 of 4 replicas are ready"
            assert requests.take(actuator.current()) is not None
            cluster.failure = 'pods "trainer-1" is forbidden: exceeded quota: compute'
            assert requests.set({"workers": 3}).reason == f"FailedCreate: {cluster.failure}"
            assert requests.set({"workers": 2}).state == "granted"
            assert self.same(actuator.current(), {"workers": 2})

    def test_the_first_replicas_wait_until_they_are_ready(self, make: Make, cluster: Pods) -> None:
        cluster.ready = 2
        with self.started(make, self.running(), allocation=self.last) as actuator:
            requests = Requests(actuator)
            assert requests.begin(self.last).reason == "NotReady: 2 of 4 replicas are ready"
            assert self.same(actuator.current(), {"workers": 2})
            cluster.ready = 4
            assert isinstance(actuator, Deferring)
            assert actuator.poll() == ""
            assert self.same(actuator.current(), self.last)

    def test_the_first_replicas_count_as_they_come_and_stay_when_the_rest_is_given_up(
        self, make: Make, cluster: Pods
    ) -> None:
        cluster.ready = 0
        with self.started(make, self.running(), allocation=self.last) as actuator:
            assert isinstance(actuator, Deferring)
            assert self.same(actuator.current(), {"workers": 0})
            for cluster.ready in (2, 1):  # one may be lost again
                assert actuator.poll() == f"NotReady: {cluster.ready} of 4 replicas are ready"
                assert self.same(actuator.current(), {"workers": cluster.ready})
            cluster.ready = 3
            actuator.withdraw()
            assert self.same(actuator.current(), {"workers": 3})
            assert replicas(cluster) == 3
            assert actuator.poll() == ""

    def test_of_first_replicas_that_never_come_the_fewest_wanted_stay_requested(
        self, make: Make, cluster: Pods
    ) -> None:
        cluster.ready = 0
        with self.started(make, self.running(), allocation=self.last) as actuator:
            now = [0.0]
            requests = Requests(actuator, 60.0, lambda: now[0])
            assert requests.begin(self.last).state == "requested"
            now[0] = 61.0
            event = requests.poll()
            assert event is not None
            assert (event.state, replicas(cluster)) == ("timed_out", 1)

    def test_first_replicas_that_have_come_since_the_last_look_are_not_given_up_for_others(
        self, make: Make, cluster: Pods
    ) -> None:
        cluster.ready = 0
        with self.started(make, self.running(), allocation=self.last) as actuator:
            cluster.ready = 4
            assert self.same(actuator.apply({"workers": 3}), {"workers": 3})
            cluster.ready = 0
        with self.started(make, self.running(), allocation=self.last) as actuator:
            cluster.ready = 4
            assert isinstance(actuator, Deferring)
            actuator.withdraw()
            assert self.same(actuator.current(), self.last)
            assert replicas(cluster) == 4

    def test_what_waits_when_the_command_ends_is_not_granted_by_that(self, make: Make, cluster: Pods) -> None:
        cluster.ready = 2
        with self.started(make, self.ending(0), allocation=self.last) as actuator:
            assert actuator.wait(10) == 0
            assert isinstance(actuator, Deferring)
            assert actuator.poll() == "the command has ended"
            assert self.same(actuator.current(), {"workers": 2})

    def test_an_account_that_may_only_scale_sees_no_replicas_wait_and_says_so_once(
        self, make: Make, cluster: Pods, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        get = KubernetesApi.get

        def forbidden(api: KubernetesApi, path: str, *values: Any) -> Any:
            if path.endswith("/trainer"):
                cluster.plan = [403]
            return get(api, path, *values)

        monkeypatch.setattr(KubernetesApi, "get", forbidden)
        with self.started(make, self.running()) as actuator:
            cluster.ready = 2
            assert isinstance(actuator, Deferring)
            for workers in (4, 3):
                assert self.same(actuator.apply({"workers": workers}), {"workers": workers})
                assert actuator.poll() == ""
            (message,) = actuator.news()  # type: ignore[attr-defined]
            assert message.startswith("whether replicas wait isn't seen: ")

    def test_a_member_that_may_not_change_cant_be_set(self, cluster: Pods) -> None:
        if definition_of("TrainJob", TRAINER.removeprefix("/apis/")) is None:
            missing("the definition of TrainJob, in STEWARD_DATA,")
        target = scaled(cluster, TRAINER, "trainjobs")
        options = {"target": target, "fields": "workers=spec.trainer.numNodes"}
        actuator = registry.create("kubernetes-scale", self.wanted, options)
        with pytest.raises(CannotSet, match=r"workers=1 can't be set: .*spec.trainer: .*field is immutable"):
            actuator.start(Launch(self.running(), self.first))
        actuator.close()

    @pytest.mark.parametrize("field", ["spec.replica", "spec.replicas.count"])
    def test_a_field_that_is_not_there_cant_be_set(self, cluster: Pods, field: str) -> None:
        target = scaled(cluster, APPS, "deployments")
        actuator = registry.create("kubernetes-scale", self.wanted, {"target": target, "fields": f"workers={field}"})
        with pytest.raises(CannotSet, match=r"Deployment by the schema of 1\.31: spec"):
            actuator.start(Launch(self.running(), self.first))
        actuator.close()

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({}, "something to scale is needed"),
            ({"target": "deployment/none"}, '"none" not found'),
            ({"target": "pod/trainer"}, "accepted are"),
            ({"target": "/apis/x"}, "a path needs fields"),
        ],
    )
    def test_what_it_lacks_is_named(self, cluster: Pods, options: dict[str, str], text: str) -> None:
        with pytest.raises(ActuatorError, match=text):
            registry.create("kubernetes-scale", self.wanted, options)


def test_no_cluster_and_no_image_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Unavailable, match="name the address of `kubectl proxy`: --option api="):
        registry.create("kubernetes", {}, {"image": "python:3.11"})
    with pytest.raises(Unavailable, match="a pod needs an image"):
        registry.create("kubernetes", {})
