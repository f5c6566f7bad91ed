"""Statistics of how far a judge may be believed: numbers in, numbers out."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
