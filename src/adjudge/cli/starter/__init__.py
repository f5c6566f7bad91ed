"""The files that ``adjudge init`` writes."""
