"""Training of schedulers for kind ``workflow``, from traces to the published artifact.

``train.py`` has the trainer. Priorities are searched for on the exact objective; they replace the present ones only if
they are better on parts of the traces outside the search, and the verdict uses parts outside both (``judge.py``).
"""
