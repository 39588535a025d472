"""What the kind adds to the `steward` command."""
