"""The sample codecs of all kinds."""

from __future__ import annotations

from collections.abc import Iterator

from app.database.tables import Workload
from app.kinds.contract.samples import Format, SampleCodec
from app.kinds.registry import KINDS, layout_of, read_spec


def _formats() -> Iterator[tuple[str, Format]]:
    """Each media type, as the first kind that reads it has it; its schema is that of any kind that does."""
    every = [form for kind in KINDS.values() for form in kind.samples.formats.items()]
    for media in dict.fromkeys(media for media, _ in every):
        forms = [form for name, form in every if name == media]
        schemas = [form.schema for i, form in enumerate(forms) if form.schema not in [f.schema for f in forms[:i]]]
        yield media, forms[0] if len(schemas) == 1 else forms[0]._replace(schema={"anyOf": list(map(dict, schemas))})


FORMATS: dict[str, Format] = dict(_formats())
"""Of all kinds; a media type is read under the same limits whatever the kind."""
EXPORTS: dict[str, Format | None] = {
    media: FORMATS.get(media) for kind in KINDS.values() for media in kind.samples.exports
}
"""What samples are handed out as, and what is documented of it as an upload."""


def codec_of(workload: Workload) -> SampleCodec:
    """The codec of a workload, by its spec."""
    return KINDS[workload.kind].samples(layout_of(read_spec(workload.spec)))
