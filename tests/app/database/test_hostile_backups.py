"""Backups that would do something by themselves once they are restored."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from app.database import backup_postgresql, backup_sqlite
from app.database.backup_sqlite import BackupError


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
    assert backup_sqlite.check(file).revision
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(BackupError, match=f"damaged.*{named}, which is not Steward's"):
        backup_sqlite.check(file)


def test_a_backup_in_which_one_bit_is_another_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    file, random = tmp_path / "kept.backup", Random(7)
    result = backup_sqlite.backup(tmp_path / "steward.db", file)
    assert [path for path in tmp_path.iterdir() if "kept" in path.name] == [file]
    assert backup_sqlite.check(file) == result
    whole = file.read_bytes()
    for _ in range(40):
        at = random.randrange(len(whole) - len(backup_sqlite.SEAL) - backup_sqlite.DIGEST_CHARACTERS)
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :])
        with pytest.raises(BackupError):
            backup_sqlite.check(file)
    other = tmp_path / "copied.db"
    file.write_bytes(whole)
    backup_sqlite.restore(file, other)
    assert backup_sqlite.check(other) == result
    assert not other.read_bytes().endswith(whole[-backup_sqlite.DIGEST_CHARACTERS :])


@pytest.mark.skipif(sys.platform != "linux", reason="a program's processor time is bounded on Linux")
def test_a_dump_that_is_never_read_to_its_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, file = tmp_path / "pg_restore", tmp_path / "round.dump"
    program.write_text(f"#!{sys.executable}\nwhile True: pass\n")
    program.chmod(0o755)
    file.write_bytes(backup_postgresql.MAGIC)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(backup_postgresql, "READING_SECONDS", 1)
    with pytest.raises(BackupError, match=r"round\.dump is damaged: it isn't read to its end in 1 s of a processor"):
        backup_postgresql.check(file)
