"""A judge's description, with what its reader was told."""

from __future__ import annotations

import json

from adjudge import Judge
from adjudge.judges.description import describe_judge, rebuild_judge
from adjudge.models import as_model
from kit.judges import Plain

LABELS = ("compliance", "refusal", "partial")


def test_a_description_keeps_what_the_reader_was_told():
    """A run that is read again reads by the same names; a judge without them is described as before there were any."""
    judge = Judge(Plain("x"), reader="label", reader_labels=LABELS, reader_passes=("refusal",))
    document = json.loads(json.dumps(describe_judge(judge)))
    again = rebuild_judge(document, lambda described, number: as_model(Plain("x")))
    assert (again.reader_labels, again.reader_passes) == (LABELS, ("refusal",))
    assert not {"reader_labels", "reader_passes"} & set(describe_judge(Judge(Plain("x"), reader="[[A]]")))
