"""Record once, then try other thresholds on the same replies: thresholds are not sent to the model.

Run it: python examples/try_thresholds.py [MODEL]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from adjudge import Criterion, Judge, Model, Rubric, open_model
from adjudge.models import RecordingModel, Request
from adjudge.testing import ScriptedModel

ANSWERS = ("Thank you for writing; it left on Monday.", "It left on Monday.", "Monday.")


def make_rubric(threshold: float) -> Rubric:
    """Make the same rubric with another passing threshold."""
    criteria = [
        Criterion(name="answers", description="Says when the parcel left.", weight=2),
        Criterion(name="polite", description="Thanks or greets the reader."),
    ]
    return Rubric(name="Reply", passing_threshold=threshold, criteria=criteria)


def stand_in(request: Request) -> dict[str, object]:
    """A judge that counts words, so that the example runs without a key."""
    content = request.user.partition(">>\n")[2].partition("\n<<end")[0]
    scores = {"answers": 1.0 if "left" in content else 0.5, "polite": 1.0 if "Thank" in content else 0.2}
    return {"criteria": [{"name": name, "reasoning": "", "score": score} for name, score in scores.items()]}


def main(names: list[str]) -> None:
    """Record every reply once, and print how many answers pass at each threshold."""
    model: Model = open_model(names[0]) if names else ScriptedModel(stand_in)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.jsonl"
        for answer in ANSWERS:
            Judge(RecordingModel(model, path)).evaluate_sync(answer, make_rubric(0.7))
        for threshold in (0.5, 0.7, 0.9):
            replayed = Judge(f"replay:{path}")
            passed = sum(replayed.evaluate_sync(answer, make_rubric(threshold)).passed for answer in ANSWERS)
            print(f"passing_threshold {threshold}: {passed} of {len(ANSWERS)} pass")


if __name__ == "__main__":
    main(sys.argv[1:])
