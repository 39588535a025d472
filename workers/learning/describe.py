"""Descriptions of agents' graphs as text, Mermaid, DOT or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from gymnasium import spaces
from pydantic import ValidationError

from app.kinds.registry import parse_spec
from workers import plugins
from workers.learning.agent import make_agent
from workers.learning.algorithms import registry
from workers.learning.algorithms.config import Config, encode
from workers.learning.backends import BackendError
from workers.learning.build import Bound, BuildError, Completion
from workers.learning.components.base import Node, Space, reals


@dataclass(frozen=True)
class Input:
    """The wire that a component's input is connected to, and the wire's space as text ("reals[64]")."""

    wire: str
    space: str


@dataclass(frozen=True)
class Call:
    """One call of a component.

    Attributes:
        path: the call's name, with the names of the enclosing composites as prefix ("q.trunk").
        component: class name of the component.
        variables: name of the variable set ("online", "target").
        inputs: source wire and space of each input, by port.
        outputs: space of each output as text, by port.
        parameters: number of learned parameters that the call owns; for a composite, those of its inner components.
        shares: paths of the calls that own its parameters, if others do; else None.
        composite: whether inner calls of this one follow in the list.
    """

    path: str
    component: str
    variables: str
    inputs: Mapping[str, Input]
    outputs: Mapping[str, str]
    parameters: int
    shares: str | None
    composite: bool


@dataclass(frozen=True)
class Description:
    """A built graph: root inputs with spaces, calls (a composite before its inner ones), and totals.

    `inputs` maps names to spaces as text, `aliases` a composite's outputs to inner wires, `parameters` is the number of
    learned parameters, `seconds` the duration of each build stage.
    """

    inputs: Mapping[str, str]
    calls: tuple[Call, ...]
    aliases: Mapping[str, str]
    parameters: int
    seconds: Mapping[str, float]


def describe(bound: Bound) -> Description:
    """Return the description of a bound graph, without root inputs that no node reads."""
    completed, report = bound.completed, bound.report
    calls = tuple(call for node in completed.graph.calls for call in _calls(completed, node, node.name, node.inputs))
    read = {wire for node in completed.graph.nodes for wire in node.inputs.values()}
    inputs = {name: space_text(completed.spaces[name]) for name in completed.graph.inputs if name in read}
    seconds = {
        "compose": report.compose_seconds,
        "complete": report.complete_seconds,
        "bind": report.bind_seconds,
    }
    return Description(inputs, calls, dict(completed.graph.aliases), report.parameters, seconds)


def _calls(completed: Completion, node: Node, path: str, wires: Mapping[str, str]) -> list[Call]:
    """Return the call ``path`` of ``node`` and its inner calls; ``wires`` are the whole graph's wires by input name."""
    component, within = node.component, node.component.calls()
    ports = (
        component.results()
        if within
        else component.output_spaces({port: completed.spaces[wire] for port, wire in wires.items()})
    )
    result = Call(
        path,
        component.name,
        node.variables,
        {port: Input(wire, space_text(completed.spaces[wire])) for port, wire in wires.items()},
        {port: space_text(completed.spaces[f"{path}.{port}"]) for port in ports},
        _parameters(completed, path),
        _sharing_paths(completed, path),
        bool(within),
    )
    inner = []
    for call in within:
        whole = {
            port: wires[wire] if wire in component.takes else f"{path}.{wire}" for port, wire in call.inputs.items()
        }
        inside = Node(call.name, call.component, call.inputs, node.variables)
        inner.extend(_calls(completed, inside, f"{path}.{call.name}", whole))
    return [result, *inner]


def _parameters(completed: Completion, path: str) -> int:
    """Return the number of learned parameters that a call owns, inner components included."""
    inside = [owner for owner in completed.variables if owner == path or owner.startswith(f"{path}.")]
    return sum(variable.size for owner in inside for variable in completed.variables[owner].values())


def _sharing_paths(completed: Completion, path: str) -> str | None:
    """Return the paths, joined by ", ", of the other calls that own variables of this one; None if there are none."""
    inside = [name for name in completed.owners if name == path or name.startswith(f"{path}.")]
    owners = {completed.owners[name] for name in inside if completed.variables[completed.owners[name]]}
    others = {owner for owner in owners if owner != path and not owner.startswith(f"{path}.")}
    if not others:
        return None
    depth = path.count(".") + 1
    return ", ".join(sorted({".".join(owner.split(".")[:depth]) for owner in others}))


def space_text(space: Space) -> str:
    """Return a short text of a space, such as "reals[64]", "bits[9]" or "one of 9"."""
    if isinstance(space, spaces.Discrete):
        return f"one of {space.n}"
    shape = "×".join(str(length) for length in space.shape or ())
    size = f"[{shape}]" if shape else ""
    if isinstance(space, spaces.MultiBinary):
        return f"bits{size}" if size else "bit"
    if isinstance(space, spaces.Box) and space.is_bounded() and space.low.size:
        return f"reals{size} in [{space.low.min():g}, {space.high.max():g}]"
    return f"reals{size}" if size else "real"


# Formats of a description: text, Mermaid, DOT, JSON.


NEWLINE = "\\n"  # in a label of DOT


def text(description: Description) -> str:
    """Return the graph as lines of text: inputs, calls with spaces and parameters, and milliseconds of each stage."""
    lines = ["inputs"]
    lines += [f"  {name:<20} {space}" for name, space in description.inputs.items()]
    lines.append("components")
    for call in description.calls:
        lines += _call_lines(call)
    lines.append(f"parameters {description.parameters:,}")
    times = ", ".join(f"{stage} {1e3 * seconds:.2f} ms" for stage, seconds in description.seconds.items())
    lines.append(f"built in {1e3 * sum(description.seconds.values()):.2f} ms: {times}")
    return "\n".join(lines)


def _call_lines(call: Call) -> list[str]:
    indent = "  " * (call.path.count(".") + 1)
    notes = [f"{call.parameters:,} parameters"] if call.parameters else []
    notes += [f"shares those of {call.shares}"] if call.shares else []
    notes += [f"variables {call.variables!r}"] if call.variables != "online" else []
    head = f"{indent}{call.path} ({call.component})" + (f": {', '.join(notes)}" if notes else "")
    inputs = [f"{indent}    {port} ← {source.wire}: {source.space}" for port, source in call.inputs.items()]
    outputs = [f"{indent}    → {port}: {space}" for port, space in call.outputs.items()]
    return [head, *inputs, *outputs]


def mermaid(description: Description) -> str:
    """Return the graph as a Mermaid flowchart: composites are boxes around inner calls, edges carry spaces."""
    lines = ["flowchart LR"]
    lines += [f'  {_id(name)}(["{name}<br/>{space}"])' for name, space in _roots(description).items()]
    lines += _nested_lines(description, 'subgraph {id}["{label}"]', '{id}["{label}"]', "end", "<br/>")
    lines += [f'  {_id(source)} -->|"{port}: {space}"| {_id(to)}' for source, to, port, space in _edges(description)]
    return "\n".join(lines)


def dot(description: Description) -> str:
    """Return the graph as a Graphviz digraph (DOT), with composites as clusters."""
    lines = ["digraph agent {", "  rankdir=LR; node [shape=box, fontsize=10]; edge [fontsize=8];"]
    lines += [f'  {_id(name)} [shape=oval, label="{name}\\n{space}"];' for name, space in _roots(description).items()]
    lines += _nested_lines(
        description, 'subgraph cluster_{id} {{ label="{label}";', '{id} [label="{label}"];', "}", NEWLINE
    )
    lines += [
        f'  {_id(source)} -> {_id(to)} [label="{port}: {space}"];' for source, to, port, space in _edges(description)
    ]
    return "\n".join([*lines, "}"])


def as_json(description: Description) -> str:
    """Return the whole description as JSON text."""
    return json.dumps(asdict(description), indent=1, ensure_ascii=False)


FORMATS: dict[str, Callable[[Description], str]] = {"text": text, "mermaid": mermaid, "dot": dot, "json": as_json}


def _id(path: str) -> str:
    return "n_" + path.replace("_", "__").replace(".", "_")


def _label(call: Call, newline: str) -> str:
    size = f"{newline}{call.parameters:,} parameters" if call.parameters else ""
    note = f"{newline}variables {call.variables}" if call.variables != "online" else ""
    return f"{call.path}{newline}{call.component}{size}{note}"


def _nested_lines(description: Description, opened: str, leaf: str, closed: str, newline: str) -> list[str]:
    """Return the lines of all calls, with inner calls between the opening and closing line of their composite.

    ``opened`` and ``leaf`` are formats with {id} and {label}, ``closed`` is a line, ``newline`` a label's line break.
    """
    lines: list[str] = []
    within: list[str] = []
    for call in description.calls:
        while within and not call.path.startswith(f"{within[-1]}."):
            within.pop()
            lines.append("  " * (len(within) + 1) + closed)
        form = opened if call.composite else leaf
        lines.append("  " * (len(within) + 1) + form.format(id=_id(call.path), label=_label(call, newline)))
        if call.composite:
            within.append(call.path)
    return lines + ["  " * (depth + 1) + closed for depth in reversed(range(len(within)))]


def _edges(description: Description) -> list[tuple[str, str, str, str]]:
    """Return the edges (source, call, input port, space) to non-composite calls, from others or root inputs."""
    edges = []
    for path, call in {call.path: call for call in description.calls if not call.composite}.items():
        for port, source in call.inputs.items():
            wire = description.aliases.get(source.wire, source.wire)
            edges.append((wire.rpartition(".")[0] or wire, path, port, source.space))
    return edges


def _roots(description: Description) -> dict[str, str]:
    used = {source for source, _, _, _ in _edges(description)}
    return {name: space for name, space in description.inputs.items() if name in used}


# Command line: ``python -m workers.learning.describe CONFIG``.
#
# CONFIG is the name of an algorithm or a JSON file. The spaces come from a workload's spec (JSON), or from lengths of
# observation and actions. Exit status 2: the arguments cannot be read or built; the reason is printed.


class WrongInput(Exception):
    """Raised if a command-line argument is invalid; the message gives the reason."""


def main(arguments: list[str]) -> int:
    """Print the graph built from a config; return 0, or 2 with a message if the arguments cannot be read or built.

    Raises:
        SystemExit: argparse refuses an option.
    """
    wanted = _parser().parse_args(arguments)
    try:
        config = read_config(wanted.config)
        observation, actions, advice = _show_spaces(wanted)
        agent = make_agent(config, observation, actions, advice, np.random.default_rng(0))
    except (WrongInput, BuildError, BackendError, ValueError) as error:
        print(f"steward agent graph: {error}", file=sys.stderr)
        return 2
    bound = getattr(agent.learner, "bound", None)
    if not isinstance(bound, Bound):
        print(f"{wanted.config}: a table of [cells, {actions.n} actions], no graph. {encode(config).decode()}")
        return 0
    print(FORMATS[wanted.format](describe(bound)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="steward agent graph", description="Show the graph that a config builds.")
    parser.add_argument("config", help="name of an algorithm, or a JSON file")
    parser.add_argument("--workload", type=Path, help="JSON file with a workload's spec, which gives the spaces")
    parser.add_argument("--observation", help="length of the observation, or candidates x features, as in 12x5")
    parser.add_argument("--actions", type=int, help="number of actions")
    parser.add_argument("--format", choices=FORMATS, default="text")
    return parser


def read_config(name: str) -> Config:
    """Return the default config of the algorithm called ``name``, or the config in the JSON file at that path.

    Raises:
        WrongInput: the name is unknown, the file cannot be read, or has no valid config.
    """
    path = Path(name)
    if path.suffix != ".json" and not path.is_file():
        try:
            return registry.algorithm(name).config
        except registry.UnknownAlgorithm as error:
            raise WrongInput(str(error.args[0])) from error
    try:
        return registry.decode(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"can't read {name}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise WrongInput(f"{name} is not a config: {error}") from error


def _show_spaces(wanted: argparse.Namespace) -> tuple[spaces.Box, spaces.Discrete, slice | None]:
    """Return observation space, action space and advice slice (None: none); raise WrongInput for invalid arguments."""
    if wanted.workload is not None:
        if wanted.observation is not None or wanted.actions is not None:
            raise WrongInput("give either --workload, or --observation and --actions")
        spec = _spec(wanted.workload)
        observation, action, advice = plugins.load(plugins.LEARNED_KINDS, spec.kind).spaces(spec)
        return observation, action, advice
    if wanted.observation is None or wanted.actions is None:
        raise WrongInput("the spaces are missing: give --workload, or --observation and --actions")
    if wanted.actions < 1:
        raise WrongInput(f"--actions is {wanted.actions}, must be 1 or more")
    return reals(*_shape(wanted.observation)), spaces.Discrete(wanted.actions), None


def _shape(text: str) -> list[int]:
    parts = text.split("x")
    if len(parts) > 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise WrongInput(f"--observation is {text!r}, must be a length (16), or candidates x features (12x5)")
    return [int(part) for part in parts]


def _spec(path: Path) -> Any:
    try:
        body: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise WrongInput(f"{path} is not valid JSON: {error}") from error
    try:
        return parse_spec(body.get("spec", body) if isinstance(body, dict) else body)
    except ValidationError as error:
        fields = "; ".join(f"{'/'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors())
        raise WrongInput(f"{path} is not a spec of a workload: {fields}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
