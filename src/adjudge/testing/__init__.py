"""Doubles for tests, the assertion `assert_passes`, and a plugin for pytest."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
