"""Backups that would do something by themselves once they are restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.database.backups import sqlite
from app.database.backups.contents import BackupError


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE TRIGGER grant AFTER INSERT ON runs BEGIN DELETE FROM api_keys; END", "trigger grant"),
        ("CREATE VIEW peek AS SELECT * FROM runs", "view peek"),
        ("CREATE VIRTUAL TABLE words USING fts5(text)", "table words"),
    ],
)
def test_what_is_none_of_stewards_is_refused(sqlite_url: str, tmp_path: Path, statement: str, named: str) -> None:
    file = tmp_path / "steward.db"
    assert sqlite.check(file).revision
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(BackupError, match=f"damaged.*{named}, which is none of Steward's"):
        sqlite.check(file)
