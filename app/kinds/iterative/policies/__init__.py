"""Policies of kind `iterative`, and their guard."""
