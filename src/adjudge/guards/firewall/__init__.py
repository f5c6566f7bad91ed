"""Firewalls: rules before they reach a prompt, arguments before they reach a function."""
