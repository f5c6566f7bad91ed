"""The work of an agent: a run as a value, and readers of the transcripts that agents leave."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
