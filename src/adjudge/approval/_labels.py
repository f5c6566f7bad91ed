"""Overrides as labelled cases: where people and a judge disagreed is where a rubric has something to learn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adjudge._plain import to_plain
from adjudge.approval._values import Approval
from adjudge.ledger._export import refuse_export


def make_row(approval: Approval) -> dict[str, Any]:
    """One override as a row of a data set; ``content`` is left out where it was not kept."""
    names = ("result_id", "outcome", "judge", "score", "threshold", "gate", "execution", "closed_at", "override_seq")
    about: dict[str, Any] = {"approval": approval.id, "subject": approval.subject}
    about |= {name: to_plain(getattr(approval, name)) for name in names}
    about["reasons"] = {vote.by: vote.reason for vote in approval.votes}
    row: dict[str, Any] = {"id": approval.id}
    if approval.content is not None:
        row["content"] = approval.content
    row["label"] = approval.status == "approved"
    row["labels"] = {vote.by: vote.approved for vote in approval.votes}
    return row | {"metadata": {**to_plain(approval.metadata), **about}}


def write_rows(rows: Iterable[dict[str, Any]], path: str | os.PathLike[str]) -> int:
    """Write rows to a new file that its owner alone can read, and return how many."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise refuse_export(path, error) from None
    count = 0
    try:
        with os.fdopen(descriptor, "wb") as file:
            for row in rows:
                file.write(json.dumps(row).encode() + b"\n")
                count += 1
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):  # a disk that is full
            raise refuse_export(path, error) from None
        raise
    return count
