"""Logs of the framework ``evals``, all of whose events are in memory together."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from adjudge import UsageError
from adjudge.dataset import import_openai_evals
from adjudge.dataset.importers import openai_logs

SPEC = {"spec": {"run_id": "1"}}


def write_log(count: int) -> bytes:
    event = {"sample_id": "a", "type": "match", "data": {"expected": "x" * 500}}
    answer = {"sample_id": "a", "type": "sampling", "data": {"sampled": "An answer."}}
    return "\n".join(map(json.dumps, [SPEC, answer, *[event] * count])).encode()


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "-"])
def test_a_log_has_a_size_unpacked_and_from_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """A packed one may hold two hundred times its own, and standard input has none to look at."""
    monkeypatch.setattr(openai_logs, "LARGEST_JSON", 5_000)
    monkeypatch.chdir(tmp_path)

    def open_log(count: int):
        log = write_log(count)
        if name != "-":
            Path(name).write_bytes(gzip.compress(log) if name.endswith("gz") else log)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log)))
        return import_openai_evals(name)

    assert [case.content for case in open_log(5)] == ["An answer."]
    with pytest.raises(UsageError, match="split it by its samples"):
        list(open_log(20))
