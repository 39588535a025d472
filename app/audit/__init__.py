"""The audit log: who promoted, changed or deleted which object, and who created or revoked keys."""
