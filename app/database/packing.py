"""Storage format of reports and decisions: zstandard with a dictionary of examples of all kinds.

It compresses some hundred bytes of JSON to about a sixth, in microseconds. The first byte is the version of the
dictionary, which must never change once used: a new one is another file with another number.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path

import zstandard

VERSION = 1
PARAMETERS = zstandard.ZstdCompressionParameters(  # small tables, which stay in a processor's cache
    strategy=zstandard.STRATEGY_FAST,
    min_match=7,
    hash_log=13,
    chain_log=13,
    window_log=17,
    search_log=1,
    target_length=0,
    write_checksum=False,
    write_dict_id=False,
)
LARGEST = 64 << 20  # bytes of a report with its decision; more than any request may have
RUN = b"\x01"  # stands for the run's own id; JSON has no such character
BETWEEN = b"\n"
_local = threading.local()


class BrokenPack(ValueError):
    """The stored bytes have an unknown version, or can't be decompressed."""


@cache
def _dictionary(version: int) -> zstandard.ZstdCompressionDict:
    text = Path(__file__).with_name(f"reports_{version}.txt").read_bytes().replace(b"{run}", RUN)
    dictionary = zstandard.ZstdCompressionDict(text, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    dictionary.precompute_compress(compression_params=PARAMETERS)
    return dictionary


def pack_iteration(run: str, report: bytes, decision: bytes) -> bytes:
    """Compress a run's report and decision, both JSON without line feeds; ``unpack_iteration`` needs the same id."""
    text = (report + BETWEEN + decision).replace(run.encode(), RUN)
    # This thread's compressor, as compressors aren't thread-safe
    value: zstandard.ZstdCompressor | None = getattr(_local, "compressor", None)
    if value is None:
        dictionary = _dictionary(VERSION)
        value = _local.compressor = zstandard.ZstdCompressor(compression_params=PARAMETERS, dict_data=dictionary)
    return bytes([VERSION]) + value.compress(text)


def unpacked_size(pack: bytes) -> int:
    """Bytes of a report and its decision before compression, without the run's id; 0 if unknown."""
    try:
        return max(0, zstandard.frame_content_size(pack[1:]))
    except zstandard.ZstdError:  # unpacking raises the error
        return 0


def unpack_iteration(run: str, pack: bytes) -> tuple[bytes, bytes]:
    """Decompress a report and its decision, both JSON; raises BrokenPack for an unknown version or damaged bytes."""
    if pack[:1] != bytes([VERSION]):
        raise BrokenPack(f"a report of run {run} is packed by version {pack[:1]!r}, which is not known here")
    try:
        value: zstandard.ZstdDecompressor | None = getattr(_local, "decompressor", None)
        if value is None:
            value = _local.decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary(VERSION))
        text = value.decompress(pack[1:], max_output_size=LARGEST)
    except zstandard.ZstdError as error:
        raise BrokenPack(f"a report of run {run} can't be unpacked: {error}") from error
    report, _, decision = text.replace(RUN, run.encode()).partition(BETWEEN)
    return report, decision
