"""Ways in which a file goes wrong, or is made to: each takes what is sound and a generator, and gives what is sent."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from random import Random

Mutation = Callable[[bytes, Random], bytes]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9.-]*")
ODD_NUMBERS = (
    *(b"1e308", b"-1e308", b"1e400", b"-1e400", b"1e-400", b"NaN", b"Infinity", b"-Infinity", b"-0", b"-1", b"0"),
    *(b"9" * 400, b"0." + b"0" * 400 + b"1", b"9223372036854775808", b"18446744073709551616", b"4294967296"),
    *(b"1e100", b"-1e100", b"1e15", b"1e-100", b"5e-324", b"0.9999999999999999"),
    *(b"0x10", b"1_000", b"1e", b"+5", b"\xd9\xa3", b"true", b"null", b'"7"', b"1e9999999999999999999"),
)
NOT_UTF8 = (b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\\ud800", b"\\u0000")
TEXTS = (b"=1+1", b"@SUM(A1)", b"\r\n", b'"', b"'", b"\\", b",", b";", b"../../etc/passwd", b"\xe2\x80\xae", b"\x1b[2J")
DEPTHS = (30, 200, 1000, 20_000, 200_000)
BOMB_BYTES = 16 << 20


def _piece(seed: bytes, rng: Random) -> tuple[int, int]:
    """A stretch of a file: short, or up to all of it."""
    begin = rng.randrange(len(seed) + 1)
    longest = rng.choice((1, 4, 16, 64, 256, len(seed)))
    return begin, min(len(seed), begin + rng.randint(1, max(longest, 1)))


def _replaced(pattern: re.Pattern[bytes], seed: bytes, rng: Random, text: bytes) -> bytes:
    """One of the places where a pattern is found, replaced; where there is none, text put in somewhere."""
    matches = list(pattern.finditer(seed))
    begin, end = rng.choice(matches).span() if matches else (rng.randrange(len(seed) + 1),) * 2
    return seed[:begin] + text + seed[end:]


def bits(seed: bytes, rng: Random) -> bytes:
    """Some bits flipped."""
    changed = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 8, 32))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(seed: bytes, rng: Random) -> bytes:
    """Its end is missing, or its beginning."""
    at = rng.randrange(len(seed))
    return seed[:at] if rng.random() < 0.8 else seed[at:]


def removed(seed: bytes, rng: Random) -> bytes:
    """A stretch is missing."""
    begin, end = _piece(seed, rng)
    return seed[:begin] + seed[end:]


def repeated(seed: bytes, rng: Random) -> bytes:
    """A stretch stands there several times."""
    begin, end = _piece(seed, rng)
    return seed[:end] + seed[begin:end] * rng.choice((1, 1, 2, 50)) + seed[end:]


def moved(seed: bytes, rng: Random) -> bytes:
    """A stretch stands elsewhere."""
    begin, end = _piece(seed, rng)
    rest = seed[:begin] + seed[end:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + seed[begin:end] + rest[at:]


def numbers(seed: bytes, rng: Random) -> bytes:
    """A number is huge, tiny, or none."""
    return _replaced(NUMBER, seed, rng, rng.choice(ODD_NUMBERS))


def characters(seed: bytes, rng: Random) -> bytes:
    """NUL, what is no UTF-8, formulas, ends of lines, or what tells terminals and file systems something."""
    text = rng.choice((b"\0", *NOT_UTF8, *TEXTS))
    return _replaced(TOKEN, seed, rng, text) if rng.random() < 0.5 else _inserted(seed, rng, text)


def _inserted(seed: bytes, rng: Random, text: bytes) -> bytes:
    at = rng.randrange(len(seed) + 1)
    return seed[:at] + text + seed[at:]


def deep(seed: bytes, rng: Random) -> bytes:
    """Lists in lists, or objects in objects, where a number was, or instead of all."""
    depth = rng.choice(DEPTHS)
    left, right = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b"")))
    nested = left * depth + b"1" + right * depth
    return nested if rng.random() < 0.3 else _replaced(NUMBER, seed, rng, nested)


def long(seed: bytes, rng: Random) -> bytes:
    """A name, or a line, of a hundred thousand characters."""
    return _replaced(TOKEN, seed, rng, rng.choice((b"a", b"1", b"\\", b'\\"', b"\xc3\xa9", b",")) * 100_000)


def noise(seed: bytes, rng: Random) -> bytes:
    """Nothing of it, but random bytes; or nothing at all."""
    return rng.randbytes(rng.choice((0, 1, 8, len(seed))))


def packed(seed: bytes, rng: Random) -> bytes:
    """Packed; cut or damaged half of the time."""
    whole = gzip.compress(seed, 1, mtime=0)
    return whole if rng.random() < 0.5 else rng.choice((bits, cut, removed, repeated))(whole, rng)


def bomb(seed: bytes, rng: Random) -> bytes:
    """Packed, and 16 MiB when it is not: of itself again and again, or of one character."""
    piece = rng.choice((seed + b"\n", b"0", b"[", b" ", b"\n", b'{"a":'))
    return gzip.compress(piece * (BOMB_BYTES // len(piece)), 6, mtime=0)


TWICE = (bits, removed, repeated, moved, numbers, characters)


def several(seed: bytes, rng: Random) -> bytes:
    """Two or three of the others, one after another."""
    for _ in range(rng.choice((2, 3))):
        seed = rng.choice(TWICE)(seed, rng) or b"\0"
    return seed


MUTATIONS: Mapping[Mutation, float] = {
    **dict.fromkeys((bits, cut, removed, repeated, moved, characters, several), 1.0),
    numbers: 2.0,
    deep: 0.4,
    long: 0.3,
    noise: 0.2,
}
"""What files of all formats suffer, and how often against one another."""
ZIPPED: Mapping[Mutation, float] = {**MUTATIONS, packed: 0.4, bomb: 0.02}
"""The same where files may be packed, without saying so or saying so."""


def mutated(seed: bytes, rng: Random, ways: Mapping[Mutation, float] = MUTATIONS) -> tuple[str, bytes]:
    """One way, and what it makes of a file."""
    (way,) = rng.choices(list(ways), weights=list(ways.values()))
    return way.__name__, way(seed, rng)
