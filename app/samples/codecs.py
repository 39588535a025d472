"""The sample codecs of all kinds."""

from __future__ import annotations

from app.database.tables import Workload
from app.kinds.contract.samples import Format, SampleCodec
from app.kinds.registry import KINDS, layout_of, read_spec

FORMATS: dict[str, Format] = {media: form for kind in KINDS.values() for media, form in kind.samples.formats.items()}
"""Of all kinds; a media type is read under the same limits whatever the kind."""
EXPORTS: dict[str, Format | None] = {
    media: FORMATS.get(media) for kind in KINDS.values() for media in kind.samples.exports
}
"""What samples are handed out as, and what is documented of it as an upload."""


def codec_of(workload: Workload) -> SampleCodec:
    """The codec of a workload, by its spec."""
    return KINDS[workload.kind].samples(layout_of(read_spec(workload.spec)))
