"""`steward doctor`: what is wrong with this installation, each with its remedy, whether it serves or not."""
