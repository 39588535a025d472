"""Trainings of agents of kind `iterative`."""
