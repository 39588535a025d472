"""The audit log: who created, changed, promoted, ended or deleted which object."""
