"""The evaluation's view of the ``workflow`` kind: worlds, yardsticks, and what is seen of a schedule."""
