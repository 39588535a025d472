"""Secrets and the texts that carry them: `stw_<id>_<secret>`, of a run `stw_run_<id>_<secret>`.

The id says which row to compare with. The secret has 256 random bits: a plain SHA-256 of it is as good as a slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import NamedTuple

PREFIX, RUN_PREFIX = "stw_", "stw_run_"
SECRET_BYTES = 32
LONGEST = 128
NOBODY = "0" * 64
"""What the secret of an unknown id is compared with, so that it takes as long."""


class Made(NamedTuple):
    """A new secret: its id, the text that is shown once, and the hash that is kept."""

    id: str
    text: str
    digest: str


class Given(NamedTuple):
    """What a caller sent: whether it is a run's, its id, and its secret."""

    of_run: bool
    id: str
    secret: str


def make(prefix: str = PREFIX) -> Made:
    """A new secret."""
    identifier, secret = secrets.token_hex(8), secrets.token_urlsafe(SECRET_BYTES)
    return Made(identifier, f"{prefix}{identifier}_{secret}", digest(secret))


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(text: str) -> Given | None:
    """The parts of a text; None where it is none of ours."""
    of_run = text.startswith(RUN_PREFIX)
    if len(text) > LONGEST or not text.startswith(PREFIX):
        return None
    identifier, _, secret = text[len(RUN_PREFIX if of_run else PREFIX) :].partition("_")
    return Given(of_run, identifier, secret) if identifier and secret else None


def matches(secret: str, kept: str | None) -> bool:
    """Whether this is the secret of what is kept, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(digest(secret), kept or NOBODY) and kept is not None
