"""Example workloads of the kinds, for a first visit: registered, with samples, and fitted."""

from __future__ import annotations

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.domain_models.service import FitRequest
from app.errors import NotFound
from app.kinds.registry import DEFAULT, KINDS, parse_spec
from app.samples import service as samples
from app.settings import Settings
from app.workloads import service as workloads


def example_names() -> list[tuple[str, str]]:
    """Names of kinds with summaries of their examples, the default kind first."""
    names = sorted(KINDS, key=lambda name: (name != DEFAULT, name))
    return [(name, KINDS[name].example.summary) for name in names]


def load(database: Database, tenant: str, settings: Settings, kind: str) -> str:
    """Register a kind's example, upload its samples and request a fit; returns its workload's name.

    Repeating it changes nothing.

    Raises:
        NotFound: there is no such kind.
        Conflict: another workload has its name.
    """
    if kind not in KINDS:
        raise NotFound(f"no kind {kind!r}; installed: {', '.join(KINDS)}")
    example = KINDS[kind].example
    spec = parse_spec({"kind": kind, **example.spec})
    name = workloads.register(database, tenant, spec).name
    media, body = max(example.samples.items(), key=lambda text: len(text[1]))
    named = KINDS[kind].samples.formats[media].named
    stored = samples.upload(
        database,
        tenant,
        name,
        samples.Upload(
            media_type=media,
            name="example" if named else None,
            chunks=iter([body]),
            gzip=False,
            limit_bytes=settings.upload_limit_bytes,
            json_limit_bytes=settings.json_limit_bytes,
        ),
    )
    if stored.accepted and KINDS[kind].simulated:
        domain_models.request_fit(database, tenant, name, FitRequest())
    return name
