"""Subcommands of `steward` for kind ``iterative``, found by the entry points `steward.commands`."""
