"""What Steward can allocate for."""
