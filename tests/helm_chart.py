"""Renders the templates of our chart without Helm: the part of Go's template language that they use.

Helm itself isn't needed to run the tests. What this module doesn't know is an error, never passed over, and
`tests/test_deploy.py` compares its result with Helm's wherever Helm is installed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\(|\)|\||:=|,|[^\s()|,]+')


class TemplateError(Exception):
    """A template uses what this module doesn't know."""


@dataclass
class Node:
    """A control structure: its keyword, its arguments, what it holds, and what stands after its ``else``."""

    word: str
    arguments: str = ""
    body: list[Node | str] = field(default_factory=list)
    otherwise: list[Node | str] = field(default_factory=list)


def render(chart: Path, values: Mapping[str, Any] | None = None, release: str = "steward") -> list[Json]:
    """All objects of a chart, in the order of its files.

    Args:
        chart: folder of the chart.
        values: values that replace those of ``values.yaml``, nested as they are there.
        release: the release's name.

    Raises:
        TemplateError: a template uses what isn't known here.
    """
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope = {
        "Values": _merged(yaml.safe_load((chart / "values.yaml").read_text()), values or {}),
        "Chart": {name[0].upper() + name[1:]: value for name, value in about.items()},
        "Release": {"Name": release, "Service": "Helm", "Namespace": "default"},
    }
    templates = Templates()
    files = sorted((chart / "templates").iterdir())
    parsed = {path.name: templates.parse(path.read_text()) for path in files if path.suffix in {".yaml", ".tpl"}}
    texts = [templates.text(nodes, scope, {"$": scope}) for name, nodes in parsed.items() if name.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return copy.deepcopy(new)
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}


class Templates:
    """Parsed templates, with those that ``define`` names."""

    def __init__(self) -> None:
        self._defined: dict[str, list[Node | str]] = {}

    def parse(self, text: str) -> list[Node | str]:
        """The nodes of a file; what it defines is kept for all files."""
        stack = [Node("file")]
        for piece in _pieces(text):
            if isinstance(piece, str):
                _last(stack[-1]).append(piece)
                continue
            word, _, arguments = piece[0].partition(" ")
            if word in {"if", "with", "range", "define"}:
                stack.append(Node(word, arguments.strip()))
            elif word == "else" and not arguments and not stack[-1].arguments.endswith("\0"):
                stack[-1].arguments += "\0"  # what follows belongs to `otherwise`
            elif word == "end":
                node = stack.pop()
                node.arguments = node.arguments.removesuffix("\0")
                if node.word == "define":
                    self._defined[node.arguments.strip('"')] = node.body
                else:
                    _last(stack[-1]).append(node)
            else:
                _last(stack[-1]).append(Node("value", piece[0]))
        if len(stack) != 1:
            raise TemplateError(f"{stack[-1].word} {stack[-1].arguments} has no end")
        return stack[0].body

    def text(self, nodes: list[Node | str], dot: Any, names: Mapping[str, Any]) -> str:
        """What nodes print, with ``.`` and the variables ``names``."""
        return "".join(node if isinstance(node, str) else self._printed(node, dot, names) for node in nodes)

    def _printed(self, node: Node, dot: Any, names: Mapping[str, Any]) -> str:
        if node.word == "value":
            return _string(self._value(node.arguments, dot, names))
        if node.word == "range":
            variables, _, over = node.arguments.partition(":=")
            key, value = (name.strip() for name in variables.split(","))
            result = self._value(over, dot, names)
            return "".join(
                self.text(node.body, each, {**names, key: name, value: each}) for name, each in sorted(result.items())
            )
        result = self._value(node.arguments, dot, names)
        if not result:
            return self.text(node.otherwise, dot, names)
        return self.text(node.body, result if node.word == "with" else dot, names)

    def _value(self, text: str, dot: Any, names: Mapping[str, Any]) -> Any:
        tokens = TOKEN.findall(text)
        pipeline = self._pipeline(tokens, dot, names)
        if tokens:
            raise TemplateError(f"{text}: {tokens[0]} was not expected")
        return pipeline

    def _pipeline(self, tokens: list[str], dot: Any, names: Mapping[str, Any]) -> Any:
        """Take a pipeline off the tokens; its value: each command gets the one before as its last argument."""
        command = self._command(tokens, dot, names, ())
        while tokens and tokens[0] == "|":
            tokens.pop(0)
            command = self._command(tokens, dot, names, (command,))
        return command

    def _command(self, tokens: list[str], dot: Any, names: Mapping[str, Any], piped: tuple[Any, ...]) -> Any:
        first, arguments = tokens.pop(0), list[Any]()
        if first in FUNCTIONS or first == "include":
            while tokens and tokens[0] not in {"|", ")"}:
                arguments.append(self._operand(tokens.pop(0), tokens, dot, names))
            arguments += piped
            if first == "include":
                name, inner = arguments
                return self.text(self._defined[name], inner, {"$": inner})
            return FUNCTIONS[first](*arguments)
        return self._operand(first, tokens, dot, names)

    def _operand(self, token: str, tokens: list[str], dot: Any, names: Mapping[str, Any]) -> Any:
        if token == "(":
            pipeline = self._pipeline(tokens, dot, names)
            if tokens.pop(0) != ")":
                raise TemplateError("a bracket isn't closed")
            return pipeline
        if token.startswith('"'):
            return token[1:-1]
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        start, _, path = token.partition(".")
        if token == "." or (start in names and not path):
            return dot if token == "." else names[start]
        if start not in {"", *names}:
            raise TemplateError(f"{token} is unknown")
        pipeline = names[start] if start else dot
        for part in path.split("."):
            if part not in pipeline:
                raise TemplateError(f"{token}: there is no {part}")
            pipeline = pipeline[part]
        return pipeline


def _pieces(text: str) -> Iterator[str | tuple[str]]:
    """Plain text, and in tuples the contents of ``{{ }}``; dashes take the white space beside them."""
    parts = re.split(r"(\{\{-?\s.*?\s-?\}\}|\{\{-?.*?-?\}\})", text, flags=re.DOTALL)
    for number in range(0, len(parts), 2):
        plain = parts[number]
        if number and parts[number - 1].endswith("-}}"):
            plain = plain.lstrip()
        if number + 1 < len(parts) and parts[number + 1].startswith("{{-"):
            plain = plain.rstrip()
        yield plain
        if number + 1 < len(parts):
            yield (parts[number + 1].removeprefix("{{").removesuffix("}}").strip("-").strip(),)


def _last(node: Node) -> list[Node | str]:
    return node.otherwise if node.arguments.endswith("\0") else node.body


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _to_yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=False).removesuffix("\n").removesuffix("\n...")


def _indented(width: int, text: str) -> str:
    return "\n" + "\n".join(" " * width + line for line in text.split("\n"))


def _quoted(value: Any) -> str:
    return '"' + _string(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "contains": lambda part, whole: part in whole,
    "default": lambda other, value: value or other,
    "ne": lambda one, other: one != other,
    "nindent": _indented,
    "printf": lambda form, *values: form.replace("%s", "{}").format(*values),
    "quote": _quoted,
    "ternary": lambda yes, no, chosen: yes if chosen else no,
    "toYaml": _to_yaml,
    "trimSuffix": lambda end, text: text.removesuffix(end),
    "trunc": lambda length, text: text[:length],
}
"""Those of Sprig and of Go's templates that the chart uses."""
