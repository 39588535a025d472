"""Subcommands of `steward` for batch logs and workflows, found by the entry points `steward.commands`."""
