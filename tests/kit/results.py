"""Results to look at."""

from __future__ import annotations

from adjudge import JudgeChainResult, JudgeResult


def chain(*seats: JudgeResult) -> JudgeChainResult:
    return JudgeChainResult(
        outcome="undecided",
        undecided_because="split",
        decided_by="policy",
        judge="c",
        strategy="majority",
        results=seats,
    )
