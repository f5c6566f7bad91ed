"""What is asked, and how the answer is read; pure."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
