"""How domain models of the kind are fitted."""
