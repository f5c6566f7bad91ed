"""Figures that were published about judges, computed again from the rows that were published with them."""
