"""Reports on runs: figures with their intervals, and the cases worth reading, failures first."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
