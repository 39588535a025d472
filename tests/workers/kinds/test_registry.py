"""What is said of kinds that are not installed, or broken."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from workers import plugins
from workers.kinds.contract import learned_kind, learned_kinds

ENTRIES = {
    "gone": "workers.nowhere:KIND",
    "nameless": "workers.kinds.contract:KIND",
    "partial": f"{__name__}:PARTIAL",
    "other": "workers.kinds.iterative:KIND",
}
PARTIAL = SimpleNamespace(name="partial", algorithms=(), reads_runs=False, fit=None)


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {name: EntryPoint(name, value, plugins.LEARNED_KINDS) for name, value in ENTRIES.items()}
    monkeypatch.setattr(plugins, "_entry_points", lambda _group: points)


def test_an_unknown_kind_is_told_with_those_that_there_are() -> None:
    with pytest.raises(plugins.PluginError, match="has no 'unheard_of'; installed are " + ", ".join(learned_kinds())):
        learned_kind("unheard_of")


@pytest.mark.usefixtures("_broken")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gone", r"'gone' of steward.learned_kinds, in package workers.nowhere, can't be loaded: No module"),
        ("nameless", "can't be loaded: .*has no attribute 'KIND'"),
        ("partial", "kind 'partial' lacks baselines, evaluation, off_policy"),
        ("other", "kind 'other' calls itself 'iterative'"),
    ],
)
def test_a_broken_kind_is_told_with_its_fault(name: str, text: str) -> None:
    with pytest.raises(plugins.PluginError, match=text):
        learned_kind(name)
