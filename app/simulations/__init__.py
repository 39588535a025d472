"""Playing traces by strategies, from the command line."""
