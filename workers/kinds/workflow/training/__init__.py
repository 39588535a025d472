"""Learning to schedule: agents for the ``workflow`` kind, from traces to the artifact that answers.

``train.py`` is what a task calls. Priorities are searched for on the exact objective (``search.py``); they replace what
answered before only where pieces of the traces that they were not searched on say so, and the verdict is given on
pieces that nothing was chosen on (``judge.py``).
"""
