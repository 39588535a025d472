"""Subcommands of `steward` for job logs, found by the entry points `steward.commands`."""
