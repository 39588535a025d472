"""Run a test that uses ``client`` on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

on_both = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("database", id="sqlite"),
        pytest.param("postgres_database", id="postgresql", marks=pytest.mark.servers),
    ],
    indirect=True,
)
