"""The audit: who promoted, changed and deleted what, and who made and revoked keys."""
