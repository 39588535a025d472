"""The contract of a kind: types shared by kinds and the service."""
