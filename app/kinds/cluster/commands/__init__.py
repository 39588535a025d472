"""What the `steward` command can do with logs of jobs; found by the entry points `steward.commands`."""
