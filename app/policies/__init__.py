"""What answers a decision."""
