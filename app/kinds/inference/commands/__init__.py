"""Subcommands of `steward` for request logs, found by the entry points `steward.commands`."""
