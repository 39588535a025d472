"""What the `steward` command can do with batch logs and workflows; found by the entry points `steward.commands`."""
