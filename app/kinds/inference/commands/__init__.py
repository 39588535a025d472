"""What the `steward` command can do with logs of requests; found by the entry points `steward.commands`."""
