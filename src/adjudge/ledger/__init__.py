"""An append-only record of results and decisions, in which any change shows; docs/ledger.md says what to rely on."""

from adjudge.lazy import export_lazily

__getattr__, __dir__ = export_lazily(__name__)
