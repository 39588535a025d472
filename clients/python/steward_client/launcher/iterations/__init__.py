"""Where iterations end: what the command tells in a file, what it writes, a file of its own."""
