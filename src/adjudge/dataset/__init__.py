"""Data sets: cases, and where they come from and go to.

Whoever judges one content needs the type of a case and nothing else, so the rest is imported when it is first used.
"""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
