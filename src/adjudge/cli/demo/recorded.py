"""The three judges of ``adjudge demo``: their replies were written for it, and are read like those of any model.

One judge agrees with most people, one is strict, and one fails now and then: its server answers with an error, it
writes prose, or it leaves out the token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adjudge.errors import ModelError
from adjudge.judges.judge import Judge
from adjudge.models.model import Reply, Request
from adjudge.question.token import MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenModel:
    """A model that replies to each case with a text from a file."""

    name: str
    lines: Mapping[str, Mapping[str, str]] = field(repr=False)
    """The line of the file for each case, by the case's id: it has a ``reply`` or an ``error``."""

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply that the file has for the case; raises ``ModelError`` where it has an error, or nothing."""
        line = self.lines.get(request.case or "", {})
        if "reply" not in line:
            raise ModelError(line.get("error", f"nothing was written about {request.case!r}"))
        return Reply(text=line["reply"].replace(MASK, request.token or ""), model=self.name)


def load_judges(path: Path) -> list[Judge]:
    """Load the judges of a file of replies, in the order in which their names first occur."""
    lines_by_judge: dict[str, dict[str, Mapping[str, str]]] = {}
    for text in path.read_text("utf-8").splitlines():
        line = json.loads(text)
        lines_by_judge.setdefault(line["judge"], {})[line["case"]] = line
    return [Judge(WrittenModel(name=name, lines=lines)) for name, lines in lines_by_judge.items()]
