"""Bodies as lines: cut anywhere, packed or not, the lines are the same."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest, Invalid, TooLarge
from app.kinds.contract.inputs import filled_lines
from app.samples.body import PIECE, blocks, decompress, limit_size


def lines(pieces: Iterable[bytes], longest_bytes: int) -> Iterator[bytes]:
    return (line for block in blocks(pieces, longest_bytes) for line in block.split(b"\n"))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=20), st.integers(1, 30))
def test_lines_do_not_depend_on_chunks(whole: list[bytes], size: int) -> None:
    text = b"".join(line + b"\n" for line in whole)
    assert list(lines(cut(text, size), 1000)) == whole
    packed = gzip.compress(text, 1)
    assert list(lines(decompress(cut(packed, size)), 1000)) == whole


@pytest.mark.parametrize("size", [1, 7, 50, 1_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nd\n"])
def test_a_line_that_is_too_long_is_refused_however_it_comes(size: int, end: bytes) -> None:
    pieces = cut(b"a\n" + b"b" * 20 + b"\n" + b"c" * 21 + end, size)
    with pytest.raises(Invalid, match="line 3 is longer than 20 bytes"):
        list(lines(pieces, 20))
    assert list(_until_refused(lines(pieces, 20))) == [b"a", b"b" * 20]


def _until_refused(chunks: Iterator[bytes]) -> Iterator[bytes]:
    with suppress(Invalid):
        yield from chunks


def test_a_last_line_needs_no_end() -> None:
    assert list(lines([b"a\nb"], 10)) == [b"a", b"b"]


def test_a_line_that_does_not_end_is_refused_before_it_is_held() -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 100

    with pytest.raises(Invalid, match="line 1 is longer than 1,000 bytes"):
        list(lines(endless(), 1000))  # type: ignore[arg-type]
    assert taken == 11


def test_a_small_packed_body_is_unpacked_in_pieces() -> None:
    bomb = gzip.compress(b"0" * (50 * PIECE))
    pieces = list(decompress([bomb]))
    assert sum(map(len, pieces)) == 50 * PIECE
    assert max(map(len, pieces)) <= PIECE
    with pytest.raises(TooLarge, match="exceeds"):
        list(limit_size(decompress([bomb]), 10 * PIECE))


def test_what_ends_early_or_is_no_gzip_is_refused() -> None:
    packed = gzip.compress(b"some text")
    with pytest.raises(BadRequest, match="body is truncated"):
        list(decompress([packed[:-4]]))
    with pytest.raises(Invalid, match="isn't gzip"):
        list(decompress([packed, b"rubbish"]))
    assert list(decompress([])) == []


LINES = st.sampled_from([b"", b" ", b"\t\r", b"\x0b\x0c", b"{}", b" a ", b"\xff", b"a\r", b"\x00"])


@given(st.lists(LINES), st.integers(0, 5))
def test_lines_that_are_filled_have_their_numbers(whole: list[bytes], before: int) -> None:
    expected = [(number, line) for number, line in enumerate(whole, before + 1) if line and not line.isspace()]
    assert list(filled_lines(b"\n".join(whole), before)) == expected
