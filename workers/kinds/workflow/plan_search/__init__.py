"""The search for plans of live workflows; ``python -m`` runs it as the service's child."""
