"""A guard in front of an agent's tool calls."""
