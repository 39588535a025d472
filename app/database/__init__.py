"""The database: engine and unit of work, and one table per file."""
