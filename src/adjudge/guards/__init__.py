"""May this go through: gates, approvals, firewalls and probes."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
