"""Write a folder of what this version writes for later: recordings, a cache, a ledger, a run.

    python scripts/compared_files.py FOLDER

scripts/compare_versions has two versions write and read such folders. This uses public names alone, so that one script
serves every version.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, ClassVar

from adjudge import (
    Approvals,
    Case,
    Criterion,
    EmergentJudge,
    Example,
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    Ledger,
    PromptFirewall,
    ReplyCache,
    Rubric,
    SemanticProbe,
    ToolCandidate,
    ToolTest,
    compare,
    evaluate_probe,
    load_rubric,
    run,
)
from adjudge.models import RecordingModel, Request
from adjudge.testing import ScriptedModel

CRITERIA = {"correct": "States no falsehood.", "polite": "Is polite to the reader."}
RUBRIC = Rubric(
    name="Answer",
    passing_threshold=0.6,
    criteria=[
        Criterion(
            name="correct",
            description="States no falsehood.",
            weight=3,
            threshold=0.5,
            levels={0: "false", 0.5: "half true", 1: "true"},
            examples=[Example(content="2 + 2 = 5", score=0.0, why="It is 4.")],
        ),
        Criterion(name="short", description="Has one sentence.", weight=1, rule={"contains": "."}),
    ],
)
TOOL = ToolCandidate(
    name="count_words",
    description="Counts the words of a text.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
    mode="sandbox",
    source="def run(text): return {'n': len(text.split())}",
    tests=(ToolTest(input={"text": "a b"}, output={"n": 2}, success=True, expected={"n": 2}),),
)


PROBE = SemanticProbe(name="p", input={"q": 1}, expected={"a": 1})


def grade(*names: str) -> Any:
    """A script that scores these criteria, 1 unless the content says bad."""

    def say(request: Request) -> dict[str, Any]:
        score = 0.0 if "bad" in request.user.partition("<<content")[2] else 1.0
        return {"criteria": [{"name": name, "reasoning": "r", "score": score} for name in names], "suggestions": ["s"]}

    return say


ONE, TWO = grade("criteria"), grade("correct", "polite")
REVIEW = {
    "safety": {"passed": True, "concerns": []},
    "correctness": {"passed": True, "failedTests": []},
    "determinism": {"likely": True, "reasoning": "r"},
    "bounded": {"likely": True, "reasoning": "r"},
    "confidence": 0.9,
    "approved": True,
    "reasoning": "r",
}


class Script:
    """A stand-in whose next reply is set before each question."""

    def __init__(self) -> None:
        self.next: Any = None
        self.model = ScriptedModel(lambda request: self.next(request) if callable(self.next) else self.next, name="it")


async def ask_everything(judge: Judge, script: Script) -> dict[str, Any]:
    """One answer to each kind of question, as plain data."""
    answers: dict[str, Any] = {}
    for name, content in (("good", "It left on Monday."), ("bad", "It is bad."), ("json", {"a": [1, "é\u2028"]})):
        script.next = ONE
        answers[f"sentence, {name}"] = await judge.evaluate(content, criteria="Answers the question.", threshold=0.8)
        script.next = TWO
        answers[f"mapping, {name}"] = await judge.evaluate(content, criteria=CRITERIA, reference="Monday", task="When?")
        script.next = grade("correct")
        answers[f"rubric, {name}"] = await judge.evaluate(content, RUBRIC, context=["passage one", "passage two"])
    shipped = load_rubric("code-quality")
    script.next = grade(*(item.name for item in shipped.criteria))
    answers["shipped"] = await judge.evaluate("def f(): pass", shipped)
    script.next = ONE
    answers["conversation"] = await judge.evaluate([{"role": "user", "content": "When?"}], criteria="Is polite.")
    answers["instructions"] = await judge.evaluate("Hi.", criteria="Is polite.", instructions="Be strict.")
    script.next = {"safe": True}
    answers["ready-made"] = await judge.ask('Is this safe? Reply {"safe": true} or {"safe": false}.')
    script.next = {"reasoning": "r", "preferred": "tie"}
    answers["pair"] = await compare("one", "two", judge=judge, criteria="Is clearer.")
    script.next = {"safe": True, "rejected": []}
    answers["firewall of prompts"] = await PromptFirewall(judge).check(["Be kind.", "Be brief."])
    script.next = {"safe": False, "threats": [{"field": "path", "type": "path_traversal", "reason": "r"}]}
    answers["firewall of inputs"] = await InputFirewall(judge).check({"path": "../a.txt"})
    script.next = REVIEW
    answers["tool"] = await EmergentJudge(judge).review_creation(TOOL)
    script.next = {"similarityScore": 0.8, "contractViolated": False, "violations": [], "reasoning": "r"}
    answers["probe"] = await evaluate_probe(PROBE, judge, actual={"a": 2})
    return {name: value.to_dict() for name, value in answers.items()}


async def record_ledger(folder: Path) -> None:
    """A ledger with results, decisions, an approval and an override, its export and its head; one request pending."""
    async with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger, Approvals(ledger) as approvals:
        gate = Gate(
            "answers",
            rubric={"name": "Polite", "criteria": [{"name": "criteria", "description": "Is polite."}]},
            judge=ScriptedModel(ONE, name="it"),
            on_failed="ask",
            approvals=approvals,
            ask={"approvers": ["ana", "bob"], "expires_in": 10**9},
            wait=False,
            ledger=ledger,
        )
        sent = await gate.check("It left.")
        held = await gate.check("It is bad.")
        open_still = await gate.check("It is quite bad.")
        await approvals.decide(held.approval_id or "", "ana", approved=True, reason="fine today")
        write(folder / "decisions.json", [item.to_dict() for item in (sent, held, open_still)])
        head = await ledger.export(folder / "ledger.jsonl")
        write(
            folder / "head.json", head.to_dict() if hasattr(head, "to_dict") else {"seq": head.seq, "hash": head.hash}
        )


async def make_runs(folder: Path) -> None:
    """A run that is finished and one that was left at half."""
    cases = [
        Case(id=f"case-{place}", content=f"a {'bad' if place % 3 == 0 else 'good'} text {place}", label=place % 3 != 0)
        for place in range(6)
    ]
    judge = Judge(ScriptedModel(TWO, name="it"))
    await run(cases, judge, criteria=CRITERIA, out=folder / "finished")
    running = run(cases, judge, criteria=CRITERIA, out=folder / "left", concurrency=1)
    async for item in running:
        if item.place >= 2:
            break
    await running


def write(path: Path, value: Any) -> None:
    """Plain data as indented JSON."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


async def make(folder: Path) -> None:
    """Everything, into a new folder."""
    script = Script()
    judge = Judge(RecordingModel(script.model, folder / "recording.jsonl"))
    write(folder / "results.json", await ask_everything(judge, script))
    model = RecordingModel(ScriptedModel(TWO, name="it"), folder / "chain.jsonl")
    chain = JudgeChain([Judge(model, name="a"), Judge(model, name="b")], strategy="consensus")
    write(folder / "chain.json", (await chain.evaluate("It left.", criteria=CRITERIA)).to_dict())
    cache = ReplyCache(folder / "cache.sqlite")
    await add_cache(Judge(Addressed()), cache).evaluate("It left.", criteria=CRITERIA)
    cache.close()
    await record_ledger(folder)
    await make_runs(folder)


class Addressed(ScriptedModel):
    """A stand-in of which, as of a provider's model, more than its name is known; only such replies are cached."""

    identity: ClassVar = {"address": "none"}

    def __init__(self) -> None:
        super().__init__(TWO, name="it")


def add_cache(judge: Judge, cache: ReplyCache) -> Any:
    """The judge behind the cache; the function has had two names."""
    import adjudge

    if hasattr(adjudge, "wire"):
        return adjudge.wire(judge, cache=cache)
    from adjudge.judges import with_layers

    return with_layers(judge, cache=cache)


if __name__ == "__main__":
    named = Path(sys.argv[1])
    named.mkdir(parents=True)
    asyncio.run(make(named))
    for lock in named.rglob("run.lock"):
        lock.unlink()
