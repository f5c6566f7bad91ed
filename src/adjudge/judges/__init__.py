"""Judges: one model that answers a question, or several as a chain."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
