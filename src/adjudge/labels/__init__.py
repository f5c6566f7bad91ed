"""People's labels of a run or a data set: who labels what next, where it is kept, and what the labels come to."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
