"""A run on several machines: Ray gives out the cases, and this process alone writes."""
