"""A server's gates, judges, firewalls, approvals and labels, with the library's methods and results."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
