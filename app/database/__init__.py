"""The database: engine, sessions, tables, leases and backups."""
