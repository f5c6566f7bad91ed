"""adjudge: ask language models whether something is good enough, and act on the answer safely."""

from adjudge.lazy import export_lazily

__version__ = "0.1.0"

__getattr__, __dir__ = export_lazily(__name__)
