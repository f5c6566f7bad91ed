"""Forgetting: everything that is kept about one content, or about whom metadata name, is deleted wherever it is."""
