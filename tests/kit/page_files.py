"""The files, runs, labels, ledgers and servers that the reader of a page has before its first block of shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from kit import page_inputs, page_ledgers, page_runs, page_servers
from kit.example_model import ExampleModel

Prepare = Callable[[Path, ExampleModel], Mapping[str, str]]
"""Writes what a page needs into the working directory. Returns what its commands have to name in place of what the page
shows: ids that differ each time, addresses."""


def prepare_nothing(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Leave the working directory empty: the page writes what it needs."""
    return {}


PREPARED: Mapping[str, Prepare] = {
    **page_runs.PREPARED,
    **page_ledgers.PREPARED,
    **page_inputs.PREPARED,
    **page_servers.PREPARED,
}
"""By the page's place in the repository."""
