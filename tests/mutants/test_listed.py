"""The list of surviving mutants names those that can still be made."""

import re
from importlib.util import find_spec
from pathlib import Path

from tests.mutants.__main__ import KNOWN
from tests.mutants.mutations import mutants
from tests.mutants.targets import TARGETS


def test_every_listed_mutant_can_be_made() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| ", KNOWN.read_text(), re.MULTILINE)
    gone = []
    for module, cell in rows:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        there = {one.text for one in mutants(Path(spec.origin).read_text())}
        gone += [(module, one) for one in re.findall(r"`([^`]+ → [^`]+)`", cell) if one not in there]
    assert {module for module, _ in rows} <= TARGETS.keys()
    assert len(rows) > 20
    assert gone == []
