"""What pages show of clusters."""
