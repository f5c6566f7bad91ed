"""Adapters for other libraries: one file each, imported by nobody here."""
