"""Backups of a database while it is used, and their restoration: one file, consistent as of one moment."""
