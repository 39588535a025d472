"""Learning to schedule: agents for the ``workflow`` kind, from traces to the artifact that answers.

``train.py`` is what a task calls. A scorer is cloned from a strategy, trained by PPO (``proximal.py``), then searched
for on the exact objective (``search.py``); a gate over strategies and network is fitted (``gate.py``), an inspector is
searched for in the same way, and all are judged on sequences that nothing was fitted on (``judge.py``).
"""
