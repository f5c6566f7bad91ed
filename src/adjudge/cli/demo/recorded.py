"""Three judges whose replies were written for the demonstration; they are read as those of any model are.

No model said any of it. One agrees with most people, one is strict, and one fails now and then: its server answers with
an error, it writes prose, or it leaves out the token.
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
    """A model that says of each case what was written for it."""

    name: str
    lines: Mapping[str, Mapping[str, str]] = field(repr=False)
    """By the id of the case: a ``reply``, or an ``error``."""

    async def complete(self, request: Request, /) -> Reply:
        """Return what was written; raises ``ModelError`` where that is an error, or nothing was."""
        line = self.lines.get(request.case or "", {})
        if "reply" not in line:
            raise ModelError(line.get("error", f"nothing was written about {request.case!r}"))
        return Reply(text=line["reply"].replace(MASK, request.token or ""), model=self.name)


def load_judges(path: Path) -> list[Judge]:
    """The judges of a file, in the order in which it names them first."""
    replies: dict[str, dict[str, Mapping[str, str]]] = {}
    for text in path.read_text("utf-8").splitlines():
        line = json.loads(text)
        replies.setdefault(line["judge"], {})[line["case"]] = line
    return [Judge(WrittenModel(name=name, lines=lines)) for name, lines in replies.items()]
