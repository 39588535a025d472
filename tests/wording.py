"""Finds retired labels and phrases in texts that people read; ``python -m tests.wording`` is part of ``make lint``.

It reads the strings of ``app``, ``workers`` and the clients but no docstrings, the dashboard's templates and scripts,
the descriptions and column heads in ``openapi.json``, and the documentation. A label counts where it is a whole text, a
phrase wherever its words occur in a row.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]

LABELS = {
    "What is known": "Performance model",
    "What is not known yet": "Model uncertainty",
    "Error of what was fitted, beside alternatives": "Cross-validation error by model",
    "What answers where": "Policy",
    "What it changes": "Impact",
    "What it would do": "Recommended change by state",
    "What answers now": "Current policy",
    "Who answered since when": "Promotion history",
    "Decided, and why": "Decision",
    "After": "Iteration",
    "By": "Source",
    "As decided?": "Same?",
    "What other policies would do now": "Alternatives",
    "What other policies would have done": "Decisions of other policies",
    "Counterfactual decisions": "Decisions of other policies",
    "Elapsed of deadline": "Time used (of deadline)",
    "What was asked for": "Parameters",
    "Told": "Message",
    "Made": "Result",
    "Live runs": "Active runs",
    "Who had how many GPUs": "GPU allocation by job",
    "What jobs have learnt": "Loss",
    "Jobs that wait": "Pending jobs",
    "Tasks that wait": "Pending tasks",
    "What convergence gave back": "Released GPUs",
    "GPUs given back": "released GPUs",
    "Requests that came": "Arrivals",
    "Requests that came, by user": "Arrivals",
    "Requests that wait": "Waiting requests",
    "Which variant answers": "Requests by variant",
    "Gate": "Reservation",
    "given back": "released",
    "ordered": "requested",
    "given up": "dropped",
    "runs late": "missed deadlines",
    "late by": "lateness",
    "class": "robustness level",
    "guarded": "fallback rate",
    "What users count": "Outcomes",
    "What there is to gain": "Headroom",
    "Who competed": "Candidates",
}
"""Whole texts, in any case, and what replaces them."""

PHRASES = {
    "would teach most": "most informative next sample: {}",
    "as they would be at": "at {}",
    "beside what it is compared with": "vs. baselines",
    "summed over the run": "elapsed time vs. deadline",
    "went to its end": "completed",
    "has no champion": "built-in policy active",
    "have one trained": "train an agent",
    "not told apart": "other",
    "how long batches take on": "batch latency",
    "how quickly applications run": "throughput by application",
    "may overtake": "can be backfilled",
    "is given back": "is released",
    "bring it to": "{allocation}: finish at {}",
    "what is left costs": "remaining cost {} (was {})",
    "worth most by the weights": "best trade-off",
    "as sure as is asked for": "can't be met",
    "{} sure)": "({} %)",
    "% asked for": "target {} at {} %",
    "promise only": "gain below threshold",
    "and a change must promise": "gain below threshold",
    "goes on answering": "stays active",
    "a heuristic answers": "the built-in policy decides",
    "until it is ended": "no fixed length",
    "answers now": "current policy",
    "answers at present": "current policy",
    "counts as none": "tolerance {}",
    "gap of the advantage": "generalisation gap",
    "train-to-test gap": "generalisation gap",
    "on runs that really happened": "off-policy evaluation",
    "governed from": "controlling from",
    "a mean's": "baseline",
    "once more ends it": "press Ctrl-C again to kill",
    "is no JSON": "is not valid JSON",
    "answers no JSON": "does not respond with JSON",
    "not JSON": "is not valid JSON",
    "malformed JSON": "is not valid JSON",
    "tells what is accepted": "see --help",
    "tells which there are": "see {command}",
    "times never fall": "must be at least {} (the last time reported)",
    "time does not go backwards": "must be at least {} (the last time reported)",
    "the moment of the": "the time of the",
    "and no more may": "the maximum",
    "can't be had": "is not available",
    "can be had": "is available",
    "can't be told": "is unknown",
    "it is told of": "available for",
    "is not there any more": "was deleted",
    "a job that is there": "a job of the run",
    "nothing is reported yet": "no report yet",
    "what is there as": "the state as",
    "nobody knows": "is unknown",
    "nothing to win": "nothing to gain",
    "to win here": "to gain",
    "what is left to gain": "remaining gain",
    "little is left to gain": "little remaining gain",
    "largest static": "fixed {} %",
    "careful static": "fixed {} %",
    "how it stands": "state",
    "is no number": "is not a number",
    "is none of": "must be one of {}, not {}",
    "is no address": "is not an address",
    "is no config": "is not a config",
    "is no spec": "is not a spec",
    "is no version": "is not a version",
    "is no backup": "is not a backup",
    "what draws is not installed": "plots need {}",
    "send it again": "repeat the request",
    "ask again": "repeat the request",
    "nothing is done twice": "nothing runs twice",
    "was asked for": "was requested",
    "what is set stays": "the present limits stay",
    "what was decided before holds": "the previous allocation stays",
    "the command goes on": "the command continues",
    "cpu × hours": "core-hours",
    "gpus × hours": "GPU-hours",
    "percent-hours": "core-hours, or hours at {} % of a node",
}
"""Words in a row, in any case, with ``{}`` for a value, and what replaces them."""

EXCUSED: dict[tuple[str, str], str] = {}
"""False positives by file pattern and label or phrase, each with its reason."""


class Text(NamedTuple):
    """A text that people read, with its file relative to the repository, and its first line."""

    path: str
    line: int
    text: str


class Find(NamedTuple):
    """A retired label or phrase in a text, and what replaces it."""

    where: Text
    retired: str
    instead: str


def python_texts(path: str, source: str) -> Iterator[Text]:
    """The strings of a Python module, without docstrings; ``{}`` stands for a value in an f-string."""
    tree, skipped = ast.parse(source), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}  # but no text within an expression
            skipped |= {id(part.format_spec) for part in node.values if isinstance(part, ast.FormattedValue)}
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                skipped.add(id(statement.value))  # a docstring of a module, class, function or attribute
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in skipped:
            parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield Text(path, node.lineno, "".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield Text(path, node.lineno, node.value)


ATTRIBUTE_OR_TEXT = re.compile(r"""(?:title|aria-label|alt|placeholder)="([^"]*)"|>([^<]+)<""")


def _line_ends(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def template_texts(path: str, source: str) -> Iterator[Text]:
    """The text between tags of a template, and the attributes that are read out; ``{}`` stands for a value."""
    shown = re.sub(r"\{#.*?#\}|\{%.*?%\}", lambda result: "\n" * result[0].count("\n"), source, flags=re.DOTALL)
    shown = re.sub(r"\{\{.*?\}\}", lambda result: "{}" + "\n" * result[0].count("\n"), shown, flags=re.DOTALL)
    joined = re.sub(r"</?(?:a|abbr|b|code|em|i|kbd|small|span|strong)\b[^<>]*>", _line_ends, shown)
    read = [*ATTRIBUTE_OR_TEXT.finditer(shown), *ATTRIBUTE_OR_TEXT.finditer(joined)]  # also across inline tags
    for line, text in dict.fromkeys(
        (one.string.count("\n", 0, one.start()) + 1, one[1] or one[2] or "") for one in read
    ):
        yield Text(path, line, text)
    for match in re.finditer(r"\{[{%].*?[}%]\}", source, flags=re.DOTALL):  # texts that macros are called with
        for quoted in re.finditer(r"""\"([^"]+)"|'([^']+)'""", match[0]):
            yield Text(path, source.count("\n", 0, match.start()) + 1, quoted[1] or quoted[2])


def script_texts(path: str, source: str) -> Iterator[Text]:
    """The strings of a JavaScript or TypeScript module in one line, and templates without comments."""
    for match in re.finditer(r"""//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`""", source, re.DOTALL):
        text = match[1] or re.sub(r"\$\{.*?\}", "{}", match[2] or "")
        if text:
            yield Text(path, source.count("\n", 0, match.start()) + 1, text)


def page_texts(path: str, source: str) -> Iterator[Text]:
    """The headings of a Markdown page without their marks, and its paragraphs."""
    for match in re.finditer(r"[^\n]+(?:\n[^\n]+)*", source):
        yield Text(path, source.count("\n", 0, match.start()) + 1, match[0].lstrip("# "))


def schema_texts(path: str, source: str) -> Iterator[Text]:
    """The descriptions and summaries of an OpenAPI schema, and the heads of its lists' columns (“head: member”)."""

    def walk(node: Any, within: str = "") -> Iterator[tuple[str, str]]:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            if not isinstance(value, str):
                yield from walk(value, key if isinstance(key, str) else within)
            elif key in ("description", "summary"):
                yield value, value
            elif within in ("columns", "wide") and isinstance(node, list):
                yield value, value.partition(": ")[0]

    for value, text in walk(json.loads(source)):
        yield Text(path, source.count("\n", 0, max(source.find(json.dumps(value, ensure_ascii=False)), 0)) + 1, text)


READERS = {
    "app/**/*.py": python_texts,
    "workers/**/*.py": python_texts,
    "clients/python/steward_client/**/*.py": python_texts,
    "app/dashboard/templates/*.html": template_texts,
    "app/dashboard/static/actions.js": script_texts,
    "app/dashboard/static/dashboard.js": script_texts,
    "clients/typescript/src/index.ts": script_texts,
    "openapi.json": schema_texts,
    "README.md": page_texts,
    "CONTRIBUTING.md": page_texts,
    "docs/**/*.md": page_texts,
    "clients/*/README.md": page_texts,
}


def texts(root: Path = ROOT) -> Iterator[Text]:
    """All texts of the repository at ``root``; generated code and what others wrote is left out."""
    for pattern, read in READERS.items():
        for file in sorted(root.glob(pattern)):
            path = file.relative_to(root).as_posix()
            if "/generated/" not in path:
                yield from read(path, file.read_text())


def _pattern(phrase: str) -> re.Pattern[str]:
    words = [re.escape(word).replace(re.escape("{}"), r"(?:\{\}|[\d.]+)(?: ?%)?") for word in phrase.split()]
    start, end = (r"(?<!\w)" if phrase[0].isalnum() else ""), (r"(?!\w)" if phrase[-1].isalnum() else "")
    return re.compile(start + r"\s+".join(words) + end, re.IGNORECASE)


def finds(parts: Iterable[Text]) -> Iterator[Find]:
    """The retired labels and phrases in texts, without the excused ones."""
    labels = {label.lower(): (label, instead) for label, instead in LABELS.items()}
    phrases = [(phrase, instead, _pattern(phrase)) for phrase, instead in PHRASES.items()]
    fixed = [max(phrase.lower().split("{}"), key=len).strip() for phrase in PHRASES]  # a quick look first
    for one in parts:
        text = " ".join(one.text.split()).lower()
        hits = [labels[text]] if text in labels and _is_label(one) else []
        likely = [phrase for phrase, part in zip(phrases, fixed, strict=True) if part in text]
        hits += [(phrase, instead) for phrase, instead, pattern in likely if pattern.search(one.text)]
        for retired, instead in hits:
            if not any(fnmatch(one.path, path) and retired == what for path, what in EXCUSED):
                yield Find(one, retired, instead)


def _is_label(one: Text) -> bool:
    """Whether a whole text is one that people read: in code a word in lower case may be a key, and one
    with blanks around it is a part."""
    code = one.path.endswith((".py", ".js", ".ts"))
    return not code or (one.text == one.text.strip() and (" " in one.text or one.text[:1].isupper()))


def main() -> int:
    """Print each find, and return 1 if there is one, else 0."""
    result = sorted(set(finds(texts())))
    for where, retired, instead in result:
        print(f"{where.path}:{where.line}: “{retired}” is retired: {instead}")
    return int(bool(result))


if __name__ == "__main__":
    raise SystemExit(main())
