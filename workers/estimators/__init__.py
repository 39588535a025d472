"""Domain-model families behind one contract, their selection, and the table that is exported."""
