"""`steward agent graph`: what is printed about a built graph, and what is said about wrong input."""

import json
import re
from pathlib import Path

import pytest

from tests.planted import planted_spec
from workers.learning.algorithms.config import DQN, NAMED, Network, QTable, Scorer, built_in_config, encode
from workers.learning.describe import main

PLAIN = ["--observation", "16", "--actions", "9"]
TRUNK, HEAD = 16 * 64 + 64 + 64 * 64 + 64, 64 * 9 + 9


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 2
    return capsys.readouterr().err


def test_text_tells_spaces_parameters_and_times(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "dqn", *PLAIN)
    assert f"q (QNetwork): {TRUNK + HEAD:,} parameters" in text
    assert f"    q.trunk (Trunk): {TRUNK:,} parameters" in text
    assert "features ← q.trunk.features: reals[64]" in text
    assert "q_target.head (LinearHead): shares those of q.head, variables 'target'" in text
    assert re.search(r"built in [\d.]+ ms: compose [\d.]+ ms, complete [\d.]+ ms, bind [\d.]+ ms", text)


@pytest.mark.parametrize("name", sorted(name for name, config in NAMED.items() if not isinstance(config, QTable)))
def test_json_holds_every_call_of_every_algorithm(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    body = json.loads(shown(capsys, name, *PLAIN, "--format", "json"))
    calls = {call["path"]: call for call in body["calls"]}
    assert body["parameters"] == sum(call["parameters"] for call in body["calls"] if not call["composite"])
    for path, call in calls.items():
        for source in call["inputs"].values():
            giver = source["wire"].rpartition(".")[0]
            values = (
                calls[giver]["outputs"][source["wire"].rpartition(".")[2]] if giver else body["inputs"][source["wire"]]
            )
            assert values == source["space"], path
    assert set(body["seconds"]) == {"compose", "complete", "bind"}


def test_drawings_nest_composites_and_join_what_computes(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = shown(capsys, "double_dqn", *PLAIN, "--format", "mermaid")
    assert drawn.startswith("flowchart LR")
    assert drawn.count("subgraph") == drawn.count("\n  end") == 4  # q, q_target, q_next, q_learn
    assert 'n_q_head -->|"values: reals[9]"| n_explore' in drawn
    graphviz = shown(capsys, "double_dqn", *PLAIN, "--format", "dot")
    assert graphviz.count("{") == graphviz.count("}") == 5
    assert 'n_q_trunk -> n_q_head [label="features: reals[64]"];' in graphviz


def test_a_file_and_a_workload_give_config_and_spaces(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config, spec = tmp_path / "agent.json", tmp_path / "workload.json"
    config.write_bytes(encode(built_in_config("dueling_dqn")))
    spec.write_text(planted_spec().model_dump_json())
    assert "q.head (DuelingHead)" in shown(capsys, str(config), "--workload", str(spec))
    sets = encode(DQN(network=Network(scorer=Scorer())))
    config.write_bytes(sets)
    drawn = shown(capsys, str(config), "--observation", "12x5", "--actions", "12")
    assert "observation ← observation: reals[12×5]" in drawn
    assert "a table of [cells, 9 actions]" in shown(capsys, "tabular_q", *PLAIN)


def test_wrong_input_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    assert "no algorithm is called 'sarsa'; there are a2c" in refused(capsys, "sarsa", *PLAIN)
    assert "can't read" in refused(capsys, str(wrong), *PLAIN)
    wrong.write_text('{"type": "dqn", "gamma": 3}')
    assert "$.gamma" in refused(capsys, str(wrong), *PLAIN)
    wrong.write_text('{"name": "x"}')
    assert "resources: Field required" in refused(capsys, "dqn", "--workload", str(wrong))
    wrong.write_text("[")
    assert "is not valid JSON" in refused(capsys, "dqn", "--workload", str(wrong))
    assert "the spaces are missing" in refused(capsys, "dqn", "--observation", "3")
    assert "either" in refused(capsys, "dqn", "--workload", str(wrong), *PLAIN)
    assert "--observation is '3x', must be a length" in refused(capsys, "dqn", "--observation", "3x", "--actions", "2")
    assert "--actions is 0" in refused(capsys, "dqn", "--observation", "3", "--actions", "0")
