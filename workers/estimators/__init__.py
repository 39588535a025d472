"""Regression families for domain models behind one interface, and the selection among them."""
