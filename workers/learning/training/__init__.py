"""One way to train for all kinds: a driver of stages, and the competition of learners that most kinds' trainings are.

``driver`` runs what a kind's ``Trainer`` does, chunk by chunk. ``competition`` is the trainer of every kind that has a
``TrainingProblem``: trials learn in rungs, a plan competes, the best is judged.
"""
