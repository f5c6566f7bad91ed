"""The records of decisions have one form, and can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit import house

FOLDER = house.ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
PARTS = ["Context", "Decision", "Consequences"]
LONGEST = 300
"""Words; a page in print."""


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_the_form_of_all(record: Path):
    """Number, title, status, and three parts of less than a page together."""
    text = record.read_text("utf-8")

    assert text.startswith(f"# {int(record.name[:4])}. ")
    assert re.search(r"^Status: (accepted|replaced by \[\d+\]\(\d{4}-[\w-]+\.md\))$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert len(text.split()) < LONGEST


def test_the_index_lists_every_record_in_order():
    """By the number and title that the record has."""
    rows = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", (FOLDER / "index.md").read_text("utf-8"), re.MULTILINE)
    titles = [record.read_text("utf-8").partition("\n")[0] for record in RECORDS]

    assert [f"# {number}. {title}" for number, title, _ in rows] == titles
    assert [name for _, _, name in rows] == [record.name for record in RECORDS]
    assert [int(number) for number, _, _ in rows] == list(range(1, len(RECORDS) + 1))
