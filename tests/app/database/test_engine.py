"""Connections: none outlives its database."""

import sqlite3

import psycopg
import pytest

from app.database.engine import Database


def test_a_connection_that_is_given_back_after_dispose_is_closed(any_database: Database) -> None:
    connection = any_database.engine.connect()
    dbapi_connection = connection.connection.dbapi_connection
    any_database.dispose()
    connection.close()
    assert dbapi_connection is not None
    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        dbapi_connection.cursor().execute("SELECT 1")
