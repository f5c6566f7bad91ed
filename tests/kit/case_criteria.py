"""Doubles for cases that bring their own criteria."""

from __future__ import annotations

import re

from adjudge.models import Reply, Request
from adjudge.testing import make_scripted_reply

STRICT = {"name": "Strict", "passing_threshold": 0.9, "criteria": [{"name": "exact", "description": "Is exact."}]}


class Scores:
    """A model that gives every criterion it is asked about the same score."""

    def __init__(self, score: float = 0.8, name: str = "scores") -> None:
        self.name, self.score = name, score
        self.identity = {"kind": "scores", "score": score}  # so that a cache may keep what it says
        self.requests: list[Request] = []

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        names = re.findall(r"^\d+\. ([\w-]+)", request.system, re.MULTILINE)
        grades = [{"name": name, "reasoning": "r", "score": self.score} for name in names]
        return make_scripted_reply({"criteria": grades}, request, self.name)
