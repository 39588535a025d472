"""A batch by the driver alone: its errors are SQLAlchemy's, and what it leaves behind is clean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError, InternalError

from app.database.engine import Database, Writer, is_lost
from app.http import health
from app.http.problems import translate
from app.settings import Settings

KEY = "INSERT INTO change_log (id) VALUES (1)"


def make_table(database: Database) -> Writer:
    with database.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE change_log (id INTEGER PRIMARY KEY)")
    return database.writer()


def rows(database: Database) -> int:
    with database.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM change_log").scalar_one())


def test_a_drivers_error_is_sqlalchemys(any_database: Database) -> None:
    writer = make_table(any_database)
    with writer.batch() as driver:
        driver.execute(KEY)
    with pytest.raises(IntegrityError) as raised, writer.batch() as driver:
        driver.execute(KEY)
    assert not is_lost(raised.value)
    with pytest.raises(MemoryError), writer.batch() as driver:
        raise MemoryError
    with writer.batch() as driver:
        driver.execute(KEY.replace("1", "2"))
    assert rows(any_database) == 2
    writer.close()


def cut(driver: Any) -> None:
    """What a server does that ends a connection: it says why by an error of any class."""
    driver.close()
    raise psycopg.errors.TransactionTimeout


@pytest.mark.servers
def test_a_connection_that_is_lost_is_told_so_whatever_its_error(postgres_database: Database) -> None:
    writer = make_table(postgres_database)
    with pytest.raises(InternalError) as raised, writer.batch() as driver:
        cut(driver)
    assert is_lost(raised.value)
    with writer.batch() as driver:
        driver.execute(KEY)
    assert rows(postgres_database) == 1
    writer.close()


def test_no_failure_while_an_error_is_told_keeps_the_database_locked(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = make_table(database)

    def fail(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(database.engine.dialect, "is_disconnect", fail)
    with pytest.raises(MemoryError), writer.batch() as driver:
        driver.executemany(KEY.replace("1", "?"), [(1,), (1,)])
    monkeypatch.undo()
    with writer.batch() as driver:
        driver.execute(KEY)
    assert rows(database) == 1
    writer.close()


def test_a_database_that_takes_no_writes_counts_as_away(postgres_database: Database) -> None:
    """As after a failover to a standby: what is refused may be sent again."""

    def write() -> None:
        with postgres_database.session() as session:
            session.execute(text("SET TRANSACTION READ ONLY"))
            session.execute(text("DELETE FROM workloads"))

    with pytest.raises(DBAPIError) as refused:
        write()
    assert is_lost(refused.value)
    steward_error = translate(refused.value)
    assert steward_error is not None
    assert steward_error.status == 503


def test_readiness_tells_that_a_database_takes_no_writes(postgres_database: Database, tmp_path: Path) -> None:
    url = postgres_database.url.render_as_string(hide_password=False)
    settings = Settings(data_dir=tmp_path, database_url=url)
    assert health._database(postgres_database, settings) == "ok"
    with postgres_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = postgres_database.url.database
        connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only=on'))
    again = Database(url)
    try:
        assert health._database(again, settings) == "takes no writes: it is read-only"
    finally:
        again.dispose()
