"""A description for people and programs: text, Mermaid, DOT, JSON."""

import json
from collections.abc import Callable
from dataclasses import asdict

from workers.learning.describe import Call, Description

NEWLINE = "\\n"  # in a label of DOT


def text(description: Description) -> str:
    """Return the graph as lines: inputs, calls with spaces and parameters, stage times."""
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
    """Return a Mermaid flowchart; composites are boxes around their inner calls, edges carry spaces."""
    lines = ["flowchart LR"]
    lines += [f'  {_id(name)}(["{name}<br/>{space}"])' for name, space in _roots(description).items()]
    lines += _nested(description, _mermaid_open, lambda call: f'{_id(call.path)}["{_label(call, "<br/>")}"]', "end")
    lines += [f'  {_id(source)} -->|"{port}: {space}"| {_id(to)}' for source, to, port, space in _edges(description)]
    return "\n".join(lines)


def dot(description: Description) -> str:
    """Return a Graphviz digraph; composites are clusters."""
    lines = ["digraph agent {", "  rankdir=LR; node [shape=box, fontsize=10]; edge [fontsize=8];"]
    lines += [f'  {_id(name)} [shape=oval, label="{name}\\n{space}"];' for name, space in _roots(description).items()]
    lines += _nested(description, _dot_open, lambda call: f'{_id(call.path)} [label="{_label(call, NEWLINE)}"];', "}")
    lines += [
        f'  {_id(source)} -> {_id(to)} [label="{port}: {space}"];' for source, to, port, space in _edges(description)
    ]
    return "\n".join([*lines, "}"])


def as_json(description: Description) -> str:
    """Return everything as JSON."""
    return json.dumps(asdict(description), indent=1, ensure_ascii=False)


FORMATS: dict[str, Callable[[Description], str]] = {"text": text, "mermaid": mermaid, "dot": dot, "json": as_json}


def _id(path: str) -> str:
    return "n_" + path.replace("_", "__").replace(".", "_")


def _label(call: Call, newline: str) -> str:
    size = f"{newline}{call.parameters:,} parameters" if call.parameters else ""
    kept = f"{newline}variables {call.variables}" if call.variables != "online" else ""
    return f"{call.path}{newline}{call.component}{size}{kept}"


def _mermaid_open(call: Call) -> str:
    return f'subgraph {_id(call.path)}["{_label(call, "<br/>")}"]'


def _dot_open(call: Call) -> str:
    return f'subgraph cluster_{_id(call.path)} {{ label="{_label(call, NEWLINE)}";'


def _nested(
    description: Description, opened: Callable[[Call], str], leaf: Callable[[Call], str], closed: str
) -> list[str]:
    """Lines of calls; those within a composite stand between its opening and closing line."""
    lines: list[str] = []
    within: list[str] = []
    for call in description.calls:
        while within and not call.path.startswith(f"{within[-1]}."):
            within.pop()
            lines.append("  " * (len(within) + 1) + closed)
        lines.append("  " * (len(within) + 1) + (opened(call) if call.composite else leaf(call)))
        if call.composite:
            within.append(call.path)
    return lines + ["  " * (depth + 1) + closed for depth in reversed(range(len(within)))]


def _leaves(description: Description) -> dict[str, Call]:
    return {call.path: call for call in description.calls if not call.composite}


def _edges(description: Description) -> list[tuple[str, str, str, str]]:
    """(from, to, port, space) between calls that are no composites; root inputs are sources too."""
    found = []
    for path, call in _leaves(description).items():
        for port, source in call.inputs.items():
            wire = description.aliases.get(source.wire, source.wire)
            found.append((wire.rpartition(".")[0] or wire, path, port, source.space))
    return found


def _roots(description: Description) -> dict[str, str]:
    used = {source for source, _, _, _ in _edges(description)}
    return {name: space for name, space in description.inputs.items() if name in used}
