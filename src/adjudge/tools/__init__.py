"""Forged tools: reviewed when they are made, checked when they are used, reviewed again before they rise a tier."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
