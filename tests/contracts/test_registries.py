"""Every room that has a part for each kind has it for all of them."""

from typing import Any

import pytest

from app.dashboard.specs import KINDS as TOLD
from app.dashboard.specs import told
from app.decisions.desks import DESKS
from app.kinds.contract.base import Change, InvalidInput
from app.kinds.registry import KINDS, layout_of, read_spec
from app.samples.shelves import SHELVES
from app.workloads.schemas import CLUSTER_EXAMPLE, EXAMPLE
from workers.kinds.registry import learned_kind, learned_kinds

SPECS: dict[str, dict[str, Any]] = {"iterative": EXAMPLE, "workflow": CLUSTER_EXAMPLE}


REGISTRIES: dict[str, dict[str, Any]] = {
    "desk": DESKS,
    "shelf": SHELVES,
    "told": TOLD,
    "learned": {name: learned_kind(name) for name in learned_kinds()},
    "spec": SPECS,
}


@pytest.mark.parametrize("name", REGISTRIES)
def test_every_registry_knows_every_kind(name: str) -> None:
    assert list(REGISTRIES[name]) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
class TestKind:
    """What the rooms ask of a kind."""

    def test_a_spec_is_read_back_as_it_was(self, kind: str) -> None:
        spec = read_spec(SPECS[kind])
        assert spec.kind == kind
        assert type(spec) is KINDS[kind].spec
        assert read_spec(spec.model_dump(mode="json")) == spec

    def test_a_layout_keeps_its_spec_and_says_what_policies_read(self, kind: str) -> None:
        spec = read_spec(SPECS[kind])
        layout = layout_of(spec)
        assert layout.spec is spec
        shown, actions = KINDS[kind].reads(layout)
        assert isinstance(shown, tuple)
        assert actions >= 0

    def test_an_empty_change_changes_nothing_and_unknown_names_are_named(self, kind: str) -> None:
        spec, changed = read_spec(SPECS[kind]), KINDS[kind].changed
        assert changed(spec, Change({}, {}, {})) == spec
        with pytest.raises(InvalidInput) as caught:
            changed(spec, Change({"no": 1.0}, {"such": 1.0}, {"name": 1.0}))
        assert [issue.pointer for issue in caught.value.errors] == ["/targets/no", "/prices/such", "/weights/name"]

    def test_it_is_told_in_words(self, kind: str) -> None:
        assert all(told(read_spec(SPECS[kind])))
