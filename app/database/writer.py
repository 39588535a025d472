"""A connection that is kept from batch to batch, for the thread that writes reports all day."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError


class Writer:
    """A unit of work like `Database.session()`, without taking a connection each time: that costs as much as it writes.

    It is given back by ``close``, soon after the last batch, and when a batch fails: so none is kept that the server
    may cut meanwhile. It serves one thread at a time.

    Args:
        engine: where connections come from; one with ``AUTOCOMMIT`` commits each statement by itself.
        failed: is told of errors that SQLAlchemy does not see itself.
    """

    def __init__(self, engine: Engine, failed: Callable[[BaseException], None]) -> None:
        self._engine, self._failed = engine, failed
        self._connection: Connection | None = None
        self._errors: Any = engine.dialect.loaded_dbapi.Error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits at the end, rolls back on an exception."""
        try:
            connection = self._connected()
            yield connection
            connection.commit()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def batch(self) -> Iterator[Any]:
        """The same, by the driver's own connection, which is quicker; its errors are raised as SQLAlchemy's."""
        try:
            driver: Any = self._connected().connection.driver_connection
            embedded = isinstance(driver, sqlite3.Connection)  # PostgreSQL commits each statement by itself
            if embedded:
                driver.execute("BEGIN IMMEDIATE")
            yield driver
            if embedded:
                driver.execute("COMMIT")
        except self._errors as error:
            raise self._told(error) from error
        except BaseException:
            self.close()
            raise

    def _told(self, error: Any) -> DBAPIError:
        """The driver's ``error`` as SQLAlchemy has it; a connection that it broke is never used again."""
        connection, dialect = self._connection, self._engine.dialect
        try:
            lost = connection is not None and dialect.is_disconnect(error, connection.connection, None)
            told: DBAPIError = DBAPIError.instance(None, None, error, self._errors, connection_invalidated=lost)
            if connection is not None and lost:
                connection.invalidate(told)
        finally:
            self.close()
        self._failed(told)
        return told

    def _connected(self) -> Connection:
        self._connection = self._connection or self._engine.connect()
        return self._connection

    def close(self) -> None:
        """Give the connection back; what it has not committed is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
