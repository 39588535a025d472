"""How wide a scheduler's network is: hidden units of the layer over each candidate, and of the one behind it."""

WIDE, JOINT = 32, 16
