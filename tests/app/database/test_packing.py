"""Reports are packed and unpacked byte by byte, whatever is in them; a foreign pack is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.database.packing import BrokenPack, pack_iteration, unpack_iteration
from app.kinds.registry import KINDS

values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(run=st.text("0123456789abcdef", min_size=1, max_size=32), report=values, decision=values)
def test_what_is_packed_is_unpacked_the_same(run: str, report: Any, decision: Any) -> None:
    both = json.dumps(report).encode(), json.dumps({"run": run, "more": decision}, ensure_ascii=False).encode()
    assert unpack_iteration(run, pack_iteration(run, *both)) == both


def test_large_ones_too_and_by_several_threads_at_once() -> None:
    large = json.dumps({"running": [{"id": f"t{i}", "start": i * 0.37} for i in range(20_000)]}).encode()
    with ThreadPoolExecutor(4) as threads:
        packs = list(threads.map(lambda i: pack_iteration("r", large, b'{"run":"r","n":%d}' % i), range(16)))
        items = list(threads.map(lambda pack: unpack_iteration("r", pack), packs))
    assert items == [(large, b'{"run":"r","n":%d}' % i) for i in range(16)]


@pytest.mark.parametrize("pack", [b"", b"\x00", b"\x02abc", b"\x01", b"\x01 no frame of any kind"])
def test_a_foreign_pack_is_refused(pack: bytes) -> None:
    with pytest.raises(BrokenPack, match="run r"):
        unpack_iteration("r", pack)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kinds_first_report_takes_half_of_its_json_at_most(kind: str) -> None:
    report = json.dumps(KINDS[kind].example.reports[0], separators=(",", ":")).encode()
    decision = b'{"run":"%s","workload":"other","kind":"%s","reported":0,"iteration":1,"noop":true}' % (b"0" * 32, b"k")
    assert len(pack_iteration("0" * 32, report, decision)) < (len(report) + len(decision)) / 2
