"""A connection that is kept from batch to batch, for the thread that writes reports all day."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine


class Writer:
    """A unit of work like `Database.session()`, without taking a connection each time: that costs as much as it writes.

    It is given back by ``close``, soon after the last batch, and when a batch fails: so none is kept that the server
    may cut meanwhile. It serves one thread at a time.

    Args:
        engine: where connections come from; one with ``AUTOCOMMIT`` commits each statement by itself.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits at the end, rolls back on an exception."""
        connection = self._connection = self._connection or self._engine.connect()
        try:
            yield connection
            connection.commit()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back; what it has not committed is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
