"""A judge measured against people: verdicts joined with labels, one pass, whatever the size."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
