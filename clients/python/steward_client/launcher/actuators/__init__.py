"""What sets resources: the contract, those that are installed, and the kit that each must pass."""
