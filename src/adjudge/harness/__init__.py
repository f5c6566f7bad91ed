"""Coding agents that call hooks: what they send, what they accept as an answer, and how the hook is installed."""
