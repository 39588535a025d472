"""What agents of kind `iterative` are judged on, and beside."""
