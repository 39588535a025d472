"""The `steward` command, one file per group; what a command does is imported when it is called."""
