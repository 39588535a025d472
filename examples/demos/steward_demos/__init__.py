"""Demonstrations of Steward: programs that call its API as any other client does."""
