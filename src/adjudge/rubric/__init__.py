"""Rubrics, which say what good means: weighted criteria, read from Python or from a file."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
