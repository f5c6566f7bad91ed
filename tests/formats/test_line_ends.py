"""Files whose lines end as on Windows say the same: an editor or a checkout there may have changed them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, UsageError
from adjudge.agents import read_run
from adjudge.guards import read_certificate
from adjudge.ledger import verify_export
from adjudge.models import ReplayModel
from kit.house import TESTS
from kit.upgrade_facts import describe_files, describe_run, find_differences
from kit.upgrade_files import unpack

pytest.importorskip("scipy")

NEWEST = max((TESTS / "upgrade").glob("*/expected.json*")).parent

TEXTS = (".csv", ".json", ".jsonl", ".toml", ".yaml")

TRANSCRIPTS = sorted((TESTS / "data" / "agents").glob("*.json*"))


def change_line_ends(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    """One of each file, and every text among them but the certificate with the other line ends."""
    folder = unpack(NEWEST, tmp_path / "files")
    for path in folder.rglob("*"):
        if path.suffix in TEXTS and path.name != "certificate.json":
            change_line_ends(path)
    return folder


def test_files_say_the_same(folder: Path):
    """Labels, data sets, rubrics, rules, probes, policies, agents' runs; and of a run its manifest, plan and looks."""
    expected = json.loads((folder / "expected.json").read_text("utf-8"))

    assert list(find_differences(expected["files"], plain(describe_files(folder)))) == []
    assert list(find_differences(expected["runs"]["monday"], plain(describe_run(folder / "runs" / "monday")))) == []


def test_a_recording_replays(folder: Path):
    """The texts in it are what they were."""
    judge = Judge(ReplayModel(folder / "recording.jsonl"))

    assert asyncio.run(judge.evaluate("a good text", folder / "polite.yaml", task="Answer it.")).passed


def test_what_is_one_form_alone_is_refused(folder: Path):
    """A certificate is bound to its bytes, and every byte of an exported ledger is verified."""
    change_line_ends(folder / "certificate.json")

    with pytest.raises(UsageError):
        read_certificate(folder / "certificate.json")
    assert not verify_export(folder / "ledger.jsonl")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name)
def test_a_transcript_says_the_same(path: Path, tmp_path: Path):
    """In every format."""
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    change_line_ends(copy)

    assert read_run(copy) == read_run(path)
