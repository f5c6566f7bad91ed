"""Questions, and the reading of their answers; pure."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
