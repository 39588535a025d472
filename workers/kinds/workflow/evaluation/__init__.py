"""What agents of kind `workflow` are judged on, and beside."""
