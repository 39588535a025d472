"""Training common to all kinds: the driver of stages, and the competition of trials.

``driver`` runs a kind's ``Trainer`` chunk by chunk. ``competition`` is the trainer of every kind with a
``TrainingProblem``: trials learn up to rungs, a plan competes with them, and the best is judged.
"""
