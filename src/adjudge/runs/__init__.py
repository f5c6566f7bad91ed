"""A data set judged: what was asked, what came back, and where it is kept."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
