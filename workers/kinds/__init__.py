"""The learning halves of kinds, one package each, found through entry points; ``contract`` has their interface."""
