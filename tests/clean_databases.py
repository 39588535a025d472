"""Databases of one PostgreSQL server that tests use one after another: making one anew costs as much as many tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

import psycopg
from psycopg import sql

from tests.servers import PostgresServer

TEMPLATE = "migrated"
SHAPE = """SELECT array_agg(part ORDER BY part) FROM (
  SELECT concat_ws(' ', c.relname, c.relkind, c.relacl, c.reltablespace, a.attname, a.atttypid, a.attnotnull) AS part
    FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', 'setting', setconfig) FROM pg_db_role_setting) AS parts"""
"""Tables, columns, constraints, triggers, functions, rights and settings of a database."""


OTHERS = sql.SQL("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")


@dataclass
class CleanDatabases:
    """Databases as the migrations make them: one that was used is emptied, and given up if more than rows changed."""

    server: PostgresServer
    _free: list[str] = field(default_factory=list)
    _connections: dict[str, psycopg.Connection] = field(default_factory=dict)
    _made: object = None

    def take(self) -> str:
        """The name of an empty database that nobody else uses."""
        while self._free:
            name = self._free.pop()
            if self._emptied(name):
                return name
            self._connections.pop(name).close()
            self.server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        name = f"test_{uuid4().hex}"
        self.server.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        url = self.server.url(name).replace("+psycopg", "")
        self._connections[name] = psycopg.connect(url, autocommit=True)
        self._made = self._made or _shape(self._connections[name])
        return name

    def give_back(self, name: str) -> None:
        """It may be taken again; whoever is still connected to it then is disconnected."""
        self._free.append(name)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()

    def _emptied(self, name: str) -> bool:
        connection = self._connections[name]
        try:
            connection.execute(sql.SQL("SELECT pg_terminate_backend(pid, 10000) FROM ({}) AS others").format(OTHERS))
            if _shape(connection) != self._made:
                return False
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            connection.execute("SET session_replication_role = replica")  # in any order, whoever refers to whom
            for (table,) in tables:
                if table != "alembic_version":
                    connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        except psycopg.Error:  # for example, the database was deleted or the server was restarted
            return False
        return True


def _shape(connection: psycopg.Connection) -> object:
    """Shape and version; an error if there is no version."""
    version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    return connection.execute(SHAPE).fetchall(), version
