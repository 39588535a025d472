"""The trial on a real cluster (`deploy/kind/try.sh`) against programs that stand in for kind, kubectl, helm, docker.

Nothing here shows that it works on a cluster. What is shown: each step calls what it is to call, its objects are valid,
each failure is said and ends with a cleaned-up cluster, and the log holds no key.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.kubernetes_schemas import VERSIONS, check

pytestmark = pytest.mark.slow  # each runs the whole script

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "deploy/kind/try.sh"
PROGRAMS = ("kind", "kubectl", "helm", "docker", "openssl", "sleep")
KUBECTL = shutil.which("kubectl")
KEY = "stw_0123456789abcdef_verysecret"
RUN_TOKEN = "stw_run_0123456789abcdef_verysecret"
STAND_IN = r"""#!/usr/bin/env bash
# Notes its arguments, and does what a cluster on which all goes well would say; FAILS is a pattern of failing calls.
call="$(basename "$0") $*"
printf '%s\n' "${call//$'\n'/ }" >> "$STAND_INS/calls"
number=$(wc -l < "$STAND_INS/calls")
case $call in *'apply --filename -') cat > "$STAND_INS/applied-$number.yaml" ;; esac
if [ -n "$FAILS" ] && [[ $call =~ $FAILS ]]; then
  echo "cluster says: no" >&2
  exit 1
fi
second() { [ -e "$STAND_INS/$1" ] || { touch "$STAND_INS/$1"; false; }; }
case $call in
  *'version --output json')
    printf '{\n "clientVersion": {"minor": "32"},\n "serverVersion": {\n  "major": "1", "minor": "%s"}\n}' "$MINOR" ;;
  *'steward key create'*) echo '{"id": "0123456789abcdef", "key": "KEY"}' ;;
  *'steward-name=governed'*) second pod && echo '400m 0' || echo '200m 0' ;;
  *'get deployment scaled'*) second scaled && echo 2 || echo 0 ;;
  *'steward run list'*) echo '{"id":"1","workload":"governed"}'; echo '{"id":"2","workload":"scaling"}' ;;
  *'get apiservice'*) [ -n "$PROVIDER" ] ;;
  *'get --raw'*) echo '{"kind":"ExternalMetricValueList"}' ;;
  *'get pods --output name') echo pod/steward-api-1 ;;
  *'describe pods') echo '      STEWARD_TOKEN:  RUN_TOKEN' ;;
  *'get clusters') [ -z "$THERE" ] || echo "$THERE" ;;
esac
""".replace("RUN_TOKEN", RUN_TOKEN).replace("KEY", KEY)


class Trial(NamedTuple):
    """What a trial said and called."""

    status: int
    lines: list[str]
    log: str
    calls: list[str]
    applied: list[dict[str, Any]]

    def steps(self, word: str) -> list[str]:
        """Names of the steps that ended so."""
        return [re.sub(r" \(\d+ s\).*", "", line[5:]) for line in self.lines if line.startswith(f"{word} ")]


Try = Callable[..., Trial]


@pytest.fixture
def attempt(tmp_path: Path) -> Try:
    def run(*arguments: str, fails: str = "", minor: str = "34", provider: str = "", there: str = "") -> Trial:
        folder = tmp_path / "programs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name in PROGRAMS:
            (folder / name).write_text(STAND_IN)
            (folder / name).chmod(0o755)
        log = tmp_path / "try.log"
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "STAND_INS": str(folder), "FAILS": fails}
        done = subprocess.run(
            [str(SCRIPT), "--log", str(log), *arguments],
            env={**environment, "MINOR": minor, "PROVIDER": provider, "THERE": there, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=300,
        )
        assert done.returncode == 2 or done.stderr == "", done.stderr
        calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
        applied = [one for path in sorted(folder.glob("applied-*")) for one in yaml.safe_load_all(path.read_text())]
        output = log.read_text() if log.exists() else ""
        return Trial(done.returncode, (done.stdout + done.stderr).splitlines(), output, calls, applied)

    return run


ALL = [
    *("programs", "images", "cluster", "images in the cluster", "Kubernetes", "namespace", "PostgreSQL and Redis"),
    *("both are ready", "chart", "first key", "the service's health", "governed runs are started"),
    *("a Deployment is scaled", "a pod is resized in place", "the governed Job ends", "its outcome"),
    *("the scaling Job ends", "its outcome", "the adapter's certificate", "adapter", "the adapter is ready"),
    *("external metrics are answered", "an upgrade of the chart", "runs are still there", "clean up"),
]


def test_every_step_is_said_and_what_is_made_is_valid_and_removed(attempt: Try) -> None:
    trial = attempt()
    assert trial.status == 0, trial.log
    assert trial.steps("PASS")[:-1] == ALL
    assert trial.steps("PASS")[-1].startswith("everything; log: ")
    assert trial.steps("FAIL") == trial.steps("SKIP") == []
    for one in trial.applied:
        check(one, VERSIONS)
        assert "@" not in yaml.safe_dump(one).replace("postgresql://steward:steward@postgres", "")
    kinds = [one["kind"] for one in trial.applied]
    assert {"APIService", "Deployment", "Job", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount"} == {*kinds}
    assert (kinds.count("Job"), kinds.count("Deployment")) == (2, 4)
    assert trial.calls[-1] == "kind delete cluster --name steward-try"
    assert "1.34" in trial.log
    assert KEY not in trial.log
    assert any(f"--from-literal=key={KEY}" in call for call in trial.calls)


def test_objects_name_what_is_there(attempt: Try) -> None:
    """Secrets, service accounts and images that pods name are those that the trial makes or loads."""
    trial = attempt("--namespace", "another")
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in trial.applied}
    result = {one["metadata"]["name"] for one in trial.applied if one["kind"] == "Secret"}
    result |= {call.split()[index] for call in trial.calls if " create secret " in call for index in (8,)}
    loaded = {"steward:try", "steward-adapter:try", "postgres:17", "redis:7"}
    for kind in ("Deployment", "Job"):
        for one in (match for (of, _), match in by_name.items() if of == kind):
            pod = one["spec"]["template"]["spec"]
            assert ("ServiceAccount", pod.get("serviceAccountName", "launcher")) in by_name
            for container in pod["containers"]:
                assert container["image"] in loaded
                for variable in container.get("env", ()):
                    if "valueFrom" in variable:
                        assert variable["valueFrom"]["secretKeyRef"]["name"] in result
    assert by_name["RoleBinding", "launcher"]["subjects"][0]["namespace"] == "another"
    assert by_name["APIService", "v1beta1.external.metrics.k8s.io"]["spec"]["service"]["namespace"] == "another"
    launcher = by_name["Job", "governed"]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert {"--actuator=kubernetes", "--option=image=steward:try", "--option=namespace=another"} <= {*launcher}


@pytest.mark.parametrize(
    ("fails", "step"),
    [
        ("^helm version", "programs"),
        ("^docker build --target api --tag", "images"),
        ("^docker build .*EXTRAS=scaling", "images"),
        ("^kind create", "cluster"),
        ("^kind load", "images in the cluster"),
        ("version --output", "Kubernetes"),
        ("create namespace", "namespace"),
        ("apply", "PostgreSQL and Redis"),
        ("wait .*deployment/redis", "both are ready"),
        ("^helm .*try=first", "chart"),
        ("key create", "first key"),
        ("create secret generic", "first key"),
        ("steward health", "the service's health"),
        ("get deployment scaled", "a Deployment is scaled"),
        ("steward-name=governed", "a pod is resized in place"),
        ("wait .*job/governed", "the governed Job ends"),
        ("run list", "its outcome"),
        ("^openssl", "the adapter's certificate"),
        ("wait .*steward-adapter", "the adapter is ready"),
        ("get --raw", "external metrics are answered"),
        ("^helm .*try=second", "an upgrade of the chart"),
        ("^kind delete", "clean up"),
    ],
)
def test_what_fails_is_said_and_the_cluster_is_removed(attempt: Try, fails: str, step: str) -> None:
    trial = attempt(fails=fails)
    assert trial.status == 1
    assert trial.steps("FAIL")[0] == step
    assert trial.lines[-1].startswith("FAIL; log: ")
    assert "cluster says: no" in trial.log
    assert not any(secret in trial.log for secret in (KEY, RUN_TOKEN))
    created = any(call.startswith("kind create") for call in trial.calls)
    assert ("kind delete cluster --name steward-try" in trial.calls) == created
    if created and fails != "^kind delete":
        assert any("describe pods" in call for call in trial.calls)
        assert "STEWARD_TOKEN:  stw_…" in trial.log
        assert any("logs --all-containers --tail 100 pod/steward-api-1" in call for call in trial.calls)


def test_a_cluster_of_an_earlier_trial_is_neither_used_nor_removed(attempt: Try) -> None:
    trial = attempt(there="steward-try")
    assert (trial.status, trial.steps("FAIL")[0]) == (1, "cluster")
    assert "kind delete cluster --name steward-try removes it" in trial.log
    assert not any(call.startswith(("kind create", "kind delete")) for call in trial.calls)


def test_on_a_cluster_of_the_users_its_namespace_alone_is_made_and_removed(attempt: Try) -> None:
    images = ("--image", "registry.example:5000/steward:0.1.0", "--adapter-image", "registry.example/adapter:0.1.0")
    trial = attempt("--context", "mine", *images)
    assert trial.status == 0, trial.log
    assert not any(call.startswith(("kind", "docker")) for call in trial.calls)
    assert all(
        "--context mine" in call for call in trial.calls if call.startswith("kubectl") and "--client" not in call
    )
    assert all(
        "--kube-context mine" in call for call in trial.calls if call.startswith("helm") and "version" not in call
    )
    assert any("image.repository=registry.example:5000/steward " in call for call in trial.calls)
    assert any("image.tag=0.1.0 " in call for call in trial.calls)
    removed = trial.calls[-3:]
    assert removed[0].endswith("delete apiservice --selector steward-try=steward-try")
    assert [call.split()[-1] for call in removed[1:]] == ["steward", "--wait=false"]
    there = attempt("--context", "mine", *images, fails="create namespace")
    assert (there.status, there.steps("FAIL")[0]) == (1, "namespace")
    assert not any("delete" in call for call in there.calls)  # it may be the user's


def test_what_a_cluster_cant_is_skipped(attempt: Try) -> None:
    trial = attempt(minor="31", provider="yes")
    assert trial.status == 0
    assert [step.partition(":")[0] for step in trial.steps("SKIP")] == ["a pod is resized in place", "external metrics"]
    assert {"a pod is resized in place", "adapter"} & {*trial.steps("PASS")} == set()


def test_what_is_kept_is_said(attempt: Try) -> None:
    trial = attempt("--keep", "--node-image", "kindest/node:v1.34.0")
    assert "KEPT namespace steward-try of context kind-steward-try" in trial.lines
    assert not any("delete" in call for call in trial.calls)
    assert "kind create cluster --name steward-try --image kindest/node:v1.34.0 --wait 120s" in trial.calls


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--moon"], "--moon is unknown; accepted are --context"),
        (["--context"], "--context needs a value"),
        (["--context", "mine"], "--context needs --image and --adapter-image"),
        (["--image", "registry:5000/steward"], "--image registry:5000/steward: NAME:TAG is accepted"),
    ],
)
def test_misuse_is_told_and_calls_nothing(attempt: Try, arguments: list[str], text: str) -> None:
    trial = attempt(*arguments)
    assert (trial.status, trial.calls) == (2, [])
    assert trial.lines[0].startswith(text)


def test_the_shell_takes_the_script() -> None:
    subprocess.run(["bash", "-n", SCRIPT], check=True)
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_takes_every_call(attempt: Try, tmp_path: Path) -> None:
    """There is no server: each call is to fail for that, and not for its options."""
    trial = attempt()
    server = {"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "kind-steward-try", "context": {"cluster": "none", "user": ""}}
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [server], "contexts": [context]}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    (tmp_path / "tls.crt").touch()
    calls = {re.sub(r"(--(?:cert|key))=\S+", rf"\1={tmp_path}/tls.crt", call) for call in trial.calls}
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}
    tried = 0
    for call in sorted(call for call in calls if call.startswith("kubectl ") and "create secret tls" not in call):
        words = re.findall(r"jsonpath=.*|\S+", call)[1:]
        values = "apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n" if "apply" in words else ""
        done = subprocess.run(
            [str(KUBECTL), *words], input=values, capture_output=True, text=True, check=False, env=environment
        )
        assert "version --client" in call or re.search(r"refused|unable to connect|could not", done.stderr), done.stderr
        assert not re.search(r"unknown (flag|command|shorthand)|error parsing|cannot be combined", done.stderr), call
        tried += 1
    assert tried > 15
