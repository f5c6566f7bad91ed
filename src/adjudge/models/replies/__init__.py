"""Answers of models, remembered: in a recording (JSON lines), in a cache (SQLite) and in the folder of a run.

All three keep the same row (``row``) under keys made in one place (``key``), and one check says whether a row answers a
request. What each does beside that is its own: a recording is used up in order, a cache joins requests that are under
way, a run's replies are looked up by their place.
"""
