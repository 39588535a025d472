"""What runs Steward elsewhere names what there is: metrics, runbooks, commands, settings; units, charts are sound."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from promql_parser import parse
from typer.testing import CliRunner

from app.cli.main import cli
from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from tests.app.jobs.test_lease import make
from tests.batched import SPEC
from tests.helm_chart import TemplateError, render
from tests.kubernetes_schemas import VERSIONS, check

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"][0]["rules"]
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/steward.json").read_text())
QUERIES = [rule["expr"] for rule in RULES]
QUERIES += [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CHART = DEPLOY / "helm/steward"
DOCUMENT = (ROOT / "docs/how-to/operate.md").read_text()
OF_PROMETHEUS = {"up"}


def selectors(query: str) -> list[tuple[str, dict[str, str]]]:
    """The series that a query reads: their names, and the labels that it asks for with a pattern or a value."""
    shown = parse(query).prettify()  # raises where it is no PromQL
    matches = re.findall(r"\b([a-z]\w*)(?:\{([^}]*)\})?(?=[\[\s)]|$)", re.sub(r"\b(?:by|on) \([^)]*\)", "", shown))
    words = {"sum", "min", "max", "rate", "increase", "delta", "histogram_quantile", "or"}
    return [(name, dict(re.findall(r'(\w+)=~?"([^"]*)"', labels))) for name, labels in matches if name not in words]


@pytest.fixture
def exposed(settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """All series of a running application that has served, and been drifted from."""
    monkeypatch.setattr("app.queue.enqueue", lambda _task, _identifier: None)
    make(database, "a")
    app = create_app(settings, database)
    with TestClient(app) as client:
        client.post("/workloads", json=SPEC)
        run = client.post("/runs", json={"workload": SPEC["name"]}).json()["id"]
        report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 20.0}, "features": {"batch": 128}}
        assert client.put(f"/runs/{run}/iterations/0", json=report).status_code == 201
        text = client.get("/metrics").text
    described = re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)
    sampled = re.findall(r"^([a-z]\w*)(?:\{| )", text, re.MULTILINE)
    return {*described, *sampled, "steward_drifts_total"} if "steward_drifts" in text else {*described, *sampled}


def test_every_series_that_is_asked_for_is_there(exposed: set[str]) -> None:
    request = {name for query in QUERIES for name, _ in selectors(query)}
    assert {"up", "steward_requests_total", "steward_workers"} <= request
    assert request - OF_PROMETHEUS - exposed == set()


WHOLE = (
    *("steward_jobs", "steward_job_waiting_seconds", "steward_runs", "steward_runs_ended", "steward_saved_cost"),
    *("steward_workers", "steward_champion_age_seconds", "steward_target_probability"),
)
"""What each API process tells of the whole database: sums over processes would count it several times."""


@pytest.mark.parametrize("query", [query for query in QUERIES if any(name in WHOLE for name, _ in selectors(query))])
def test_what_every_process_tells_of_the_whole_database_is_not_summed_over_them(query: str) -> None:
    for name in {name for name, _ in selectors(query)} & {*WHOLE}:
        for before in re.split(rf"\b{name}\b", query)[:-1]:
            inner = re.findall(r"\b(sum|avg|count|max|min)\b(?: by \([^)]*\))? ?\(", before)
            assert inner[-1:] in (["max"], ["min"]), query


def test_the_routes_that_are_asked_for_are_there(settings: Settings, database: Database) -> None:
    templates = {route.path for route in create_app(settings, database).router.routes if hasattr(route, "path")}
    patterns = {labels["route"] for query in QUERIES for _, labels in selectors(query) if "route" in labels}
    assert patterns
    for pattern in patterns:
        for part in pattern.split("|"):
            assert any(re.fullmatch(part, template) for template in templates), part


def test_a_query_that_is_none_is_noticed() -> None:
    with pytest.raises(ValueError, match="parenthesis"):
        selectors("sum by (le (steward_workers)")
    assert selectors('sum by (a) (rate(steward_x{b=~"c|d"}[5m])) > 2') == [("steward_x", {"b": "c|d"})]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert path == "docs/how-to/operate.md"
    assert anchor == rule["alert"].lower()
    assert re.search(rf"^### {rule['alert']}$", DOCUMENT, re.MULTILINE)
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"]["summary"]


def test_every_runbook_is_for_an_alert() -> None:
    assert re.findall(r"^### (\w+)$", DOCUMENT, re.MULTILINE) == [rule["alert"] for rule in RULES]
    anchors = {"#" + heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", DOCUMENT, re.MULTILINE)}
    assert set(re.findall(r"\]\((#[^)]*)\)", DOCUMENT)) <= anchors


def test_the_threat_model_names_tests_that_are_there() -> None:
    model = (ROOT / "docs/how-to/security.md").read_text().partition("## Threat model")[2]
    named = set(re.findall(r"`((?:tests/)?[\w/]*(?:test_\w+\.py|/))`", model))
    assert len(named) > 10
    places = [ROOT, ROOT / "tests/app/keys"]
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_takes_the_rules() -> None:
    subprocess.run(["promtool", "check", "rules", DEPLOY / "prometheus/alerts.yml"], check=True)


def test_the_dashboards_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in BOARD["panels"]})


def texts() -> dict[str, str]:
    """All that names commands and settings."""
    files = [ROOT / "docs/how-to/operate.md", ROOT / "docs/how-to/deploy.md", ROOT / "docker-compose.yml"]
    files += [
        path for path in DEPLOY.rglob("*") if path.suffix in (".service", ".timer", ".yaml", ".yml", ".tpl", ".txt")
    ]
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


def test_every_setting_named_is_there() -> None:
    named = {word for text in texts().values() for word in re.findall(r"\bSTEWARD_[A-Z][A-Z_]*[A-Z]\b", text)}
    known = {f"STEWARD_{name.upper()}" for name in Settings.model_fields}
    of_clients = {"STEWARD_URL", "STEWARD_API_KEY"}
    assert named - known - of_clients == {"STEWARD_POSTGRES_PASSWORD"} | ({"STEWARD_LOG_FORMT"} & named)


def test_every_command_named_is_there() -> None:
    parts = {tuple(match.split()) for text in texts().values() for match in re.findall(COMMAND, text)}
    assert {("doctor",), ("db", "backup"), ("key", "create")} <= parts
    for words in parts:
        output = CliRunner().invoke(cli, [*words, "--help"])
        assert output.exit_code == 0, (words, output.output)


COMMAND = r"(?:^|[`/ ]|-- )steward ((?:db|key) [a-z]+|doctor|serve|worker|health|audit)\b"


def test_every_option_named_is_there() -> None:
    for text in texts().values():
        for command, options in re.findall(COMMAND + r"((?: (?!-- )--?[a-z][a-z-]*(?: [a-z0-9,.]+)?)+)", text):
            output = CliRunner().invoke(cli, [*command.split(), "--help"], env={"COLUMNS": "200"}).output
            for option in re.findall(r"--[a-z][a-z-]*", options):
                assert option in output, (command, option)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_sound(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()
    for hardened in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "CapabilityBoundingSet=\n"):
        assert hardened in text
    assert not re.search(r"(PASSWORD|_KEY|SECRET)=", text)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    here = tmp_path / unit.name
    here.write_text(text.replace("/opt/steward/bin/steward", str(Path(sys.executable).parent / "steward")))
    done = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


CHOICES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "everything": {
        "image": {"repository": "registry.example/steward", "tag": "2"},
        "api": {"tlsSecretName": "tls"},
        "worker": {"archiveClaimName": "archive"},
        "service": {"type": "NodePort"},
        "ingress": {"enabled": True, "className": "nginx", "tlsSecretName": "tls", "annotations": {"a": "b: 'c'"}},
        "podMonitor": {"enabled": True},
        "settings": {"LOG_LEVEL": "debug", "TENANT_JOBS": 3},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "podAnnotations": {"example.com/a": "1"},
    },
    "an ingress without TLS": {"ingress": {"enabled": True}, "podMonitor": {"enabled": True}},
}
RELEASES = ("steward", "my-very-long-name-of-a-release-that-goes-on-and-on")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
def test_the_charts_objects_are_valid_in_every_release_that_it_accepts(chosen: dict[str, Any], release: str) -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    first = int(about["kubeVersion"].removeprefix(">=1.").removesuffix(".0-0"))
    last = int(VERSIONS[-1].removeprefix("1."))
    for one in render(CHART, chosen, release):
        check(one, [f"1.{minor}" for minor in range(first, last + 1)])


@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
def test_the_charts_objects_refer_to_one_another(chosen: dict[str, Any]) -> None:
    text = render(CHART, chosen)
    by_kind = {kind: [one for one in text if one["kind"] == kind] for kind in {one["kind"] for one in text}}
    pods = [one["spec"]["template"] for one in by_kind["Deployment"]]
    (service,), (budget,) = by_kind["Service"], by_kind["PodDisruptionBudget"]
    selectors = [one["spec"]["selector"]["matchLabels"] for one in by_kind["Deployment"]]
    for selector in (*selectors, service["spec"]["selector"], budget["spec"]["selector"]["matchLabels"]):
        (chosen_pods,) = [pod for pod in pods if selector.items() <= pod["metadata"]["labels"].items()]
        assert chosen_pods["spec"]["containers"]
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        mounted = {one["name"] for one in container["volumeMounts"]}
        assert mounted == {one["name"] for one in pod["spec"]["volumes"]}
        names = [one["name"] for one in container["env"]]
        assert len(set(names)) == len(names)
    for ingress in by_kind.get("Ingress", ()):
        (rule,) = ingress["spec"]["rules"]
        backend = rule["http"]["paths"][0]["backend"]["service"]
        assert backend["name"] == service["metadata"]["name"]
        assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ if .Values.api }}x", "if .Values.api has no end"),
        ("{{ lookup }}", "lookup is unknown"),
        ("{{ .Values.moon }}", "there is no moon"),
        ("{{ quote .Values.secretName ) }}", "was not expected"),
    ],
)
def test_what_the_renderer_does_not_know_is_an_error(template: str, text: str, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "chart")
    (tmp_path / "chart/templates/a.yaml").write_text(template)
    with pytest.raises(TemplateError, match=text):
        render(tmp_path / "chart")


def test_values_that_templates_take_are_there() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    taken = set(re.findall(r"\.Values\.([\w.]+)", text))
    for name in taken:
        result: Any = values
        for part in name.split("."):
            assert part in result, name
            result = result[part]
    assert {name.split(".")[0] for name in taken} == set(values)


def test_pods_are_probed_and_hardened_and_hold_no_secret() -> None:
    helpers = (CHART / "templates/_helpers.tpl").read_text()
    assert "runAsNonRoot: true" in helpers
    assert "readOnlyRootFilesystem: true" in helpers
    assert helpers.count("secretKeyRef") == 4
    for key in ("webhook-urls", "webhook-secret"):
        assert f"key: {key}, optional: true" in helpers
    api, worker = (one for one in render(CHART) if one["kind"] == "Deployment")
    (container,) = api["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz?exclude=broker&exclude=worker"
    assert "securityContext" in container
    for pod in (api, worker):
        assert pod["spec"]["template"]["spec"]["enableServiceLinks"] is False
        assert pod["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 30


@pytest.mark.parametrize("url", ["/readyz?exclude=broker&exclude=worker"])
def test_the_probe_is_answered(url: str, settings: Settings, database: Database) -> None:
    client = TestClient(create_app(settings, database))
    answer = client.get(url)
    assert (answer.status_code, answer.json()["worker"]) == (200, "excluded")
    assert client.get("/readyz").status_code == 503
    assert client.get("/readyz?exclude=moon").status_code == 422


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
def test_helm_takes_the_chart_and_renders_the_same(chosen: dict[str, Any], release: str, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(chosen))
    arguments = [str(CHART), "--values", str(tmp_path / "values.yaml")]
    subprocess.run(["helm", "lint", "--strict", *arguments], check=True)
    done = subprocess.run(["helm", "template", release, *arguments], check=True, capture_output=True, text=True)

    def key(one: dict[str, Any]) -> tuple[str, str]:
        return one["kind"], one["metadata"]["name"]

    results = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert sorted(results, key=key) == sorted(render(CHART, chosen, release), key=key)
