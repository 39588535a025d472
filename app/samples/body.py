"""Request bodies of uploads: decompression, size limits and splitting into lines."""

from __future__ import annotations

import asyncio
import ctypes
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import anyio.from_thread
from starlette.types import Receive

from app.database.engine import check_deadline
from app.database.tables import Workload
from app.errors import BadRequest, FieldError, Invalid, TooLarge
from app.kinds.contract.samples import Format, SampleCodec
from app.kinds.registry import KINDS, layout_of, read_spec

if TYPE_CHECKING:
    from zlib import _Decompress as _Unpacker


# A body is decompressed, limited and split into blocks of lines with only one piece in memory.


PIECE = 1 << 18  # most bytes decompressed at once
FEED_BYTES = 1 << 12  # most compressed bytes passed at once: zlib copies the unread rest for each piece and member
GZIP = 16 + zlib.MAX_WBITS
GZIP_MAGIC = b"\x1f\x8b"


def detect_gzip(chunks: Iterable[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether the bytes begin like gzip, and an iterator over all chunks, including those already read."""
    rest = iter(chunks)
    first = b""
    while len(first) < len(GZIP_MAGIC) and (chunk := next(rest, b"")):
        first += chunk
    return first.startswith(GZIP_MAGIC), chain([first], rest)


def decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress gzip (several members are concatenated), at most ``PIECE`` bytes at a time.

    Raises:
        Invalid: the bytes aren't gzip.
        BadRequest: the gzip data is truncated.
    """
    unpacker = zlib.decompressobj(GZIP)
    started = False
    for fed in (chunk[at : at + FEED_BYTES] for chunk in chunks for at in range(0, len(chunk), FEED_BYTES)):
        rest = fed
        while rest:
            if unpacker.eof:
                unpacker = zlib.decompressobj(GZIP)
            started = True
            yield _decompress_piece(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    if started and not unpacker.eof:
        raise BadRequest("the gzip body is truncated; the execution being read was discarded")


def _decompress_piece(unpacker: _Unpacker, data: bytes) -> bytes:
    try:
        return unpacker.decompress(data, PIECE)
    except zlib.error as error:
        raise Invalid(
            f"the body isn't gzip, as its content-encoding or first bytes announce: {error}",
            errors=[FieldError("/header/content-encoding", "must describe the body", "gzip")],
        ) from error


def limit_size(chunks: Iterable[bytes], limit_bytes: int) -> Iterator[bytes]:
    """Pass chunks on as long as their total is at most ``limit_bytes``; raises TooLarge once it is exceeded."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > limit_bytes:
            raise TooLarge(
                f"the body exceeds {limit_bytes:,} bytes", errors=[FieldError("", f"at most {limit_bytes} bytes", None)]
            )
        yield chunk


def check_between(pieces: Iterable[bytes], check: Callable[[], None]) -> Iterator[bytes]:
    """Pass pieces on in slices of at most ``PIECE`` bytes; ``check`` is called before each and raises to stop."""
    for piece in pieces:
        for at in range(0, len(piece), PIECE):
            check()
            yield piece[at : at + PIECE]


def blocks(pieces: Iterable[bytes], longest_bytes: int) -> Iterator[bytes]:
    """Split a byte stream at line ends into blocks of whole lines, without the last newline of each block.

    Lines before an error are passed on, however the stream is divided into pieces.
    Raises Invalid if a line is longer than ``longest_bytes``.
    """
    rest: list[bytes] = []  # joined once: a long line may come in many pieces
    size = before = 0
    for piece in pieces:
        whole, end, begun = piece.rpartition(b"\n")
        if end:
            block = b"".join([*rest, whole])
            if len(block) > longest_bytes:  # else no line can be
                lines = block.split(b"\n")
                sound = next((at for at, line in enumerate(lines) if len(line) > longest_bytes), len(lines))
                if sound < len(lines):
                    if sound:
                        yield b"\n".join(lines[:sound])
                    raise _too_long(before + sound + 1, longest_bytes)
            before += block.count(b"\n") + 1
            yield block
            rest, size = [], 0
        rest.append(begun)
        size += len(begun)
        if size > longest_bytes:
            raise _too_long(before + 1, longest_bytes)
    if size:
        yield b"".join(rest)


def _too_long(number: int, longest_bytes: int) -> Invalid:
    message = f"line {number} is longer than {longest_bytes:,} bytes"
    return Invalid(message, errors=[FieldError(f"/lines/{number}", message, None)])


# Memory of an upload is returned to the system when it ends.


T = TypeVar("T")


def returning(work: Callable[[], T]) -> T:
    """Run ``work``, then return freed memory to the system; passes on its result or exception.

    An exception, which may be stored for long, references frames that reference all data read: they are cleared.
    glibc's allocator retains small freed blocks, and is made to release them.
    """
    try:
        return work()
    except BaseException as error:
        _forget_frames(error)
        raise
    finally:
        if _malloc_trim is not None:
            _malloc_trim(0)


def _forget_frames(error: BaseException) -> None:
    visited: set[int] = set()
    following = [error]
    while following:
        each = following.pop()
        if id(each) not in visited:
            visited.add(id(each))
            traceback.clear_frames(each.__traceback__)
            following += [other for other in (each.__cause__, each.__context__) if other is not None]


def _glibc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None


_malloc_trim = _glibc_trim()


# The sample codecs of all kinds.


def _formats() -> Iterator[tuple[str, Format]]:
    """Each media type with the format of the first kind that reads it, and the schemas of all kinds that do."""
    every = [form for kind in KINDS.values() for form in kind.samples.formats.items()]
    for media in dict.fromkeys(media for media, _ in every):
        forms = [form for name, form in every if name == media]
        schemas = [form.schema for i, form in enumerate(forms) if form.schema not in [f.schema for f in forms[:i]]]
        yield media, forms[0] if len(schemas) == 1 else forms[0]._replace(schema={"anyOf": list(map(dict, schemas))})


FORMATS: dict[str, Format] = dict(_formats())
"""Upload formats of all kinds by media type; limits depend on the media type, not on the kind."""
EXPORTS: dict[str, Format | None] = {
    media: FORMATS.get(media) for kind in KINDS.values() for media in kind.samples.exports
}
"""Media types of exports; with the upload format that documents them, or None."""


def codec_of(workload: Workload) -> SampleCodec:
    """What encodes and decodes a workload's samples, by its spec; raises MissingKind or BrokenRow if that can't be
    read."""
    return KINDS[workload.kind].samples(layout_of(read_spec(workload.spec)))


# An upload's body is received on the event loop and read in a thread.


AHEAD = 4
"""Number of chunks that are received ahead of the reader."""
SILENT_SECONDS = 60.0
SILENT = f"no data was received for {SILENT_SECONDS:g} s; the execution being read was discarded"
GONE = "the body ended early; the execution being read was discarded"


class Body:
    """A request body: ``feed`` receives it on the event loop, ``chunks`` yields it in a thread.

    The event loop goes on listening after the last chunk, so that ``check`` notices when the client has disconnected.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._chunks: asyncio.Queue[bytes | Exception] = asyncio.Queue(AHEAD)
        self._gone = False

    async def feed(self) -> None:
        """Receive chunks until the client disconnects or pauses for 60 s; errors are raised in the reading thread."""
        whole = False
        try:
            while not self._gone:
                message = await (self._receive() if whole else asyncio.wait_for(self._receive(), SILENT_SECONDS))
                self._gone = message["type"] == "http.disconnect"
                if chunk := message.get("body", b""):
                    await self._chunks.put(chunk)
                if message["type"] == "http.request" and not message.get("more_body", False):
                    whole = True
                    await self._chunks.put(b"")
        except TimeoutError:
            await self._chunks.put(BadRequest(SILENT))
        except Exception as error:  # noqa: BLE001 - raised where the body is read
            await self._chunks.put(error)
        if self._gone:
            self.abandon()

    def abandon(self) -> None:
        """Make the thread's next ``check`` fail; a thread that waits for a chunk is woken."""
        self._gone = True
        if self._chunks.empty():
            self._chunks.put_nowait(b"")

    def check(self) -> None:
        """Check that the upload may go on; the reading thread calls it regularly.

        Raises:
            BadRequest: the client has disconnected.
            DeadlinePassed: the request's time limit is exceeded.
        """
        if self._gone:
            raise BadRequest(GONE)
        check_deadline()

    def chunks(self) -> Iterator[bytes]:
        """Iterate over the body's chunks, in a worker thread of the event loop.

        Raises:
            BadRequest: the body ended early, or nothing came for 60 s.
            DeadlinePassed: the request's time limit is exceeded.
        """
        while True:
            chunk = anyio.from_thread.run(self._chunks.get)
            self.check()
            if isinstance(chunk, Exception):
                raise chunk
            if not chunk:
                return
            yield chunk
