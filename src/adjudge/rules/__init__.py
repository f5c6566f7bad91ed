"""Deterministic checks: no model, no cost, no waiting."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
