"""Formats read strictly and shown safely: text, JSON, YAML, TOML, files, and arguments."""
