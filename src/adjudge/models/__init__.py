"""Models: one request in, one reply out. Providers, local servers, recordings, and any function."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
