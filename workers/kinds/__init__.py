"""What learns, by kind: a package each, found through entry points; ``contract`` says what it has to be."""
