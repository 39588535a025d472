"""A kind with other roles than it has, for as long as a test lasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.kinds.registry import KINDS


def with_roles(monkeypatch: pytest.MonkeyPatch, kind: str, roles: Sequence[str]) -> None:
    """Let workloads of a kind have a policy of their own for each of these roles."""
    monkeypatch.setitem(KINDS, kind, replace(KINDS[kind], roles=lambda _spec: roles))
