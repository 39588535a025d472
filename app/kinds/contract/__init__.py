"""What a kind is made of, and the types that kinds and the service share."""
