"""``adjudge serve``: gates, approvals and labels over HTTP, and the pages where people approve and label."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
