"""The public API as a type checker sees it. Checked by ./scripts/lint, never run.

Calls that must be accepted stand plainly. Calls that must be rejected carry an ignore comment, and an ignore that is
not needed is an error, so both directions are held.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, assert_type

from adjudge import (
    AdjudgeError,
    Blocked,
    Criterion,
    CriterionResult,
    Decision,
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeChainResult,
    JudgeLike,
    JudgeResult,
    JudgmentFailed,
    Ledger,
    Model,
    ModelError,
    Outcome,
    PartResult,
    PromptFirewall,
    Question,
    ReplyError,
    Rubric,
    Rule,
    RuleResult,
    Rules,
    Usage,
    UsageError,
    improve,
    judge,
    judge_function,
    load_rules,
    model_function,
)
from adjudge.guards import FirewallVerdict, InputVerdict, RejectedRule, Threat
from adjudge.integrations.asgi import GateMiddleware, Receive, Scope, Send, identify_caller
from adjudge.judges import Improvement, read_result
from adjudge.ledger import Entry, Head, StoreContent, Verification, verify_export
from adjudge.models import FunctionIdentity, FunctionInput, ReplayModel, Reply, Request
from adjudge.testing import assert_passes


def answer(prompt: str) -> str:
    """A function from string to string is a model."""
    return prompt


async def answer_parts(system: str, user: str) -> str:
    """So is a coroutine function of system and user part."""
    return system + user


def look(content: dict[str, Any], rubric: Rubric | None = None) -> bool | float:
    """A function that is given the content is a judge in code."""
    return bool(content) and rubric is not None


def say_outright() -> None:
    """What a function is can be said, whatever its parameters are called."""
    assert_type(judge_function(len, name="length", identity="v1", max_concurrency=4), Model)
    assert_type(model_function(answer, name="mine"), Model)
    judge_function("look")  # pyrefly: ignore[bad-argument-type]
    JudgeChain([look, ("look", look), judge_function(answer)], strategy="consensus")
    ReplayModel("said.jsonl", function=look)
    which = FunctionIdentity(module="m", qualname="look", code="0" * 64)
    assert_type(Reply(text="true", function=which).function, FunctionIdentity | None)
    assert_type(Request(system="", user="").function_input, FunctionInput | None)
    assert_type(Request(system="", user="", subject="5" * 64).subject, str | None)


class Adapter:
    """The seeds' adapter: a name, and text to text."""

    name = "adapter"

    async def evaluate(self, prompt: str) -> str:
        """Answer."""
        return prompt


class OwnModel:
    """A model of somebody else's needs no base class."""

    @property
    def name(self) -> str:
        """Its name."""
        return "own"

    async def complete(self, request: Request, /) -> Reply:
        """Answer."""
        return Reply(text=request.user, usage=Usage(input_tokens=1))


class OwnJudge:
    """A judge of somebody else's needs no base class."""

    name = "own"

    async def ask(self, question: Question | str, /) -> JudgeResult:
        """Answer."""
        return JudgeResult(outcome="passed", judge=self.name, detail=str(question))


@dataclass(frozen=True)
class Review:
    """A reply form of the caller's."""

    passed: bool
    remarks: list[str]


def name_worst_part(result: JudgeResult) -> str:
    worst: PartResult = min(result.parts, key=lambda part: part.score or 0.0)
    assert_type(worst.score, float | None)
    return f"{worst.part}, {worst.criterion}: {worst.reasoning}"


def check_length(content: str) -> RuleResult:
    """A rule is any function of the content."""
    return RuleResult(name="length", passed=len(content) < 400, severity="warning")


RULE = Rule(name="length", evaluate=check_length, severity="info")


RUBRIC = Rubric(
    name="Login",
    passing_threshold=0.8,
    criteria=[
        Criterion(name="security", description="Hashes passwords with bcrypt or argon2", weight=3, threshold=0.9),
        Criterion(name="errors", description="Tells the user what went wrong", levels={0: "never", 1: "always"}),
        Criterion(name="length", description="Is short", rule={"length": 400}),
    ],
)


def make_judges(model: Model, own: JudgeLike) -> list[JudgeLike]:
    """Everything that is accepted as a judge's model or a chain's seat; chains are judges."""
    single = Judge("openai:gpt-6.1-terra", rubric=RUBRIC, timeout=None, reask=0, structured="text", scoring="expected")
    chain = JudgeChain(
        ["openai:gpt-6.1-terra", answer, ("named", answer_parts), Adapter(), single, own], strategy="quorum", quorum=2
    )
    outer = JudgeChain([chain, Judge(model), Judge(OwnModel()), OwnJudge()], strategy="cascade", escalate_below=0.8)
    return [single, chain, outer, own, Judge(answer, name="claude-haiku"), JudgeChain([single], fail_open=True)]


def wrong_judges() -> None:
    """What must be rejected before it is run."""
    Judge()  # pyrefly: ignore[missing-argument]
    Judge("openai:gpt-6.1-terra", "login")  # pyrefly: ignore[bad-argument-count]
    Judge("openai:gpt-6.1-terra", structured="always")  # pyrefly: ignore[bad-argument-type]
    JudgeChain([answer], strategy="best")  # pyrefly: ignore[bad-argument-type]
    JudgeChain([answer], time_out=3)  # pyrefly: ignore[unexpected-keyword]


async def evaluate(single: Judge, chain: JudgeChain) -> None:
    """Content and what to judge it by, in every form; a chain's result says it is one."""
    assert_type(await single.evaluate("content", RUBRIC), JudgeResult)
    assert_type(await chain.evaluate({"any": ["JSON", 1]}, "security"), JudgeChainResult)
    assert_type(await chain.evaluate("content", Path("rubrics/login.yaml")), JudgeChainResult)
    assert_type(await chain.evaluate("content", criteria="Accurate and concise.", threshold=0.8), JudgeChainResult)
    assert_type(await chain.ask("Is this safe?"), JudgeChainResult)
    assert_type(single.evaluate_sync("content", criteria={"tone": "Friendly."}), JudgeResult)
    assert_type(chain.evaluate_sync("content", criteria=["Friendly.", "Short."]), JudgeChainResult)
    await single.evaluate(
        Review(passed=True, remarks=[]),
        RUBRIC,
        reference="gold",
        task="the task",
        context=["passage"],
        model="openai:gpt-5",
        rules=["secrets", {"regex": "x"}, check_length, RULE],
        instructions="Be strict.",
        throw_on_fail=True,
        metadata={"case": "1"},
    )
    await single.evaluate("content", result_format=Review, passes=lambda review: not review.remarks)
    await single.evaluate("content", RUBRIC, treshold=0.8)  # pyrefly: ignore[unexpected-keyword]
    assert_type(await judge("content", rubric=RUBRIC, throw_on_fail=True), JudgeResult)
    assert_type(await judge("content", criteria="Friendly.", judge=chain), JudgeResult)
    assert_type(await judge("content", rubric="security", judge="openai:gpt-6.1-terra"), JudgeResult)


async def evaluate_many(single: Judge) -> AsyncIterator[float | None]:
    """Many contents, in order."""
    async for result in single.evaluate_many(["one", "two"], RUBRIC, concurrency=4):
        assert_type(result, JudgeResult)
        yield result.score


async def check_by_rules() -> None:
    """Several rules as one value."""
    rules = Rules(["json", RULE, check_length])
    assert_type(rules.get("json"), Rule | None)
    assert_type(rules[0], Rule)
    assert_type(await rules.evaluate("content", reference="reference"), tuple[RuleResult, ...])
    assert_type(rules.evaluate_sync("content"), tuple[RuleResult, ...])
    assert_type(load_rules("rules.yaml"), Rules)
    Gate("door", rules=rules)
    Rules({"named": {"regex": "x"}})
    load_rules(3)  # pyrefly: ignore[bad-argument-type]


def shorten(content: str, result: JudgeResult) -> str:
    """Rewrite."""
    return content if result.passed else content[:100]


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """An application."""


async def decide(single: Judge) -> None:
    """A gate's check, its guard and the rounds of improving."""
    Gate("door", RUBRIC, single, rules=[])
    Gate("door", RUBRIC, single, [])  # pyrefly: ignore[bad-argument-count]
    gate = Gate("door", rubric=RUBRIC, judge=single, rules=["json", RULE], on_undecided="allow", mode="observe")
    Gate(name="door", rules=["json"], sample=0.5, redact=str, on_result=print, on_event=print)
    Gate("door", rules=["json"], on_failed="allow")  # pyrefly: ignore[bad-argument-type]
    decision = await gate.check("content", task="the task", metadata={"case": "1"})
    assert_type(decision, Decision)
    assert_type(decision.allowed, bool)
    assert_type(decision.decided_by, Literal["judge", "rule", "policy", "human"])
    assert_type(decision.result, JudgeResult | None)
    assert_type(gate.check_sync("content"), Decision)
    assert_type(gate.check_sync("content", task="the task", metadata={"case": "1"}).allowed, bool)
    gate.check_sync("content", tsk="the task")  # pyrefly: ignore[unexpected-keyword]
    gate.check_sync("content", metadata=1)  # pyrefly: ignore[bad-argument-type]
    gate.check_sync()  # pyrefly: ignore[missing-argument]
    assert_type(Gate.check_sync(gate, "content"), Decision)
    assert_type(await gate.resume(decision, content="content"), Decision)
    assert_type(gate.resume_sync("8f3a", content="content", metadata={"case": "1"}), Decision)
    gate.resume_sync(decision, text="content")  # pyrefly: ignore[unexpected-keyword]
    assert_type(gate.pending_sync(status=None), tuple[Decision, ...])
    assert_type(gate.guard(argument="prompt")(answer)("x"), str)
    decision.allowed = True  # pyrefly: ignore[read-only]
    GateMiddleware(serve, gate, on="response", largest=10_000, when=lambda scope: scope["type"] == "http")
    GateMiddleware(serve, gate, identify=identify_caller, retry_after=30, resume_within=None)
    assert_type(identify_caller({}), str | None)
    GateMiddleware(serve, gate, on="both")  # pyrefly: ignore[bad-argument-type]
    rules = PromptFirewall(single, on_unsafe="drop_flagged", on_event=print, name="support")
    PromptFirewall(single, on_unsafe="keep")  # pyrefly: ignore[bad-argument-type]
    sorted_rules = await rules.check(["a rule"])
    assert_type(sorted_rules, FirewallVerdict)
    assert_type(sorted_rules.allowed, tuple[str, ...])
    assert_type(sorted_rules.rejected, tuple[RejectedRule, ...])
    assert_type(sorted_rules.chain_result, JudgeChainResult | None)
    firewall = InputFirewall(judge=answer, error_code="NO", tool_name="billing")
    assert_type(await firewall.check({"q": "x"}), InputVerdict)
    assert_type(firewall.check_sync({}).threats, tuple[Threat, ...])
    assert_type(firewall.guard(trusted=["prompt"])(answer)("x"), str)
    done = await improve("content", single, RUBRIC, shorten, rounds=3, task="the task")
    assert_type(done, Improvement)
    assert_type(done.result, JudgeResult)


def read(result: JudgeResult, chained: JudgeChainResult) -> None:
    """Every field that a program branches on has a closed type."""
    assert_type(result.passed, bool)
    assert_type(result.outcome, Outcome)
    assert_type(result.decided_by, Literal["judge", "rule", "policy", "human"])
    assert_type(result.score, float | None)
    assert_type(result.criteria, tuple[CriterionResult, ...])
    assert_type(result.rule_results, tuple[RuleResult, ...])
    assert_type(result.criterion("security"), CriterionResult)
    assert_type(result.usage, Usage | None)
    assert_type(result.created_at, datetime)
    assert_type(result.raise_if_failed(), JudgeResult)
    assert_type(result.to_dict(), dict[str, Any])
    assert_type(JudgeResult.from_dict(result.to_dict()), JudgeResult)
    assert_type(read_result({}), JudgeResult)
    assert_type(chained.results, tuple[JudgeResult, ...])
    assert_type(chained.fallback_triggered, bool)
    assert_type(chained.total_duration_ms, float)
    assert_type(RUBRIC.shares, dict[str, float])
    replace(result, metadata={"case": "2"})
    JudgeResult(outcome="perhaps", judge="x")  # pyrefly: ignore[bad-argument-type]
    result.passed = True  # pyrefly: ignore[read-only]
    result.score = 1.0  # pyrefly: ignore[read-only]


def describe(error: AdjudgeError) -> str | Mapping[str, Any]:
    """The error tree, as a caller takes it apart."""
    if isinstance(error, JudgmentFailed):
        assert_type(error.result, JudgeResult)
        return error.result.to_dict()
    if isinstance(error, Blocked):
        assert_type(error.decision, Decision)
    if isinstance(error, ModelError):
        assert_type(error.status, int | None)
    if isinstance(error, UsageError):
        value_error: ValueError = error
        return str(value_error)
    return error.detail if isinstance(error, ReplyError) else str(error)


async def record(result: JudgeResult, secret: bytes) -> None:
    """A ledger takes results and mappings, and yields entries."""
    async with Ledger("sqlite:///a.db", store_content="redacted", redact=str.upper, key=secret) as ledger:
        assert_type(await ledger.append(result, gate="publish"), int)
        await ledger.append({"passed": 3}, kind="run", subject="suite")
        await ledger.append(result, content="a", context={"task": "b"})
        await ledger.append(result, context=["b"])  # type: ignore[bad-argument-type]
        assert_type(ledger.store_content, StoreContent)
        assert_type(ledger.keeps_content, bool)
        assert_type(await ledger.clear_space(("adjudge_votes",)), str)
        await ledger.append(result, "publish")  # type: ignore[bad-argument-count]
        async for entry in ledger.query(outcome="passed", since=datetime.now().astimezone()):
            assert_type(entry, Entry)
        assert_type(await ledger.verify(await ledger.head(), public_key="ab"), Verification)
        assert_type(await ledger.export(Path("a.jsonl")), Head)
    assert_type(verify_export("a.jsonl", head="1:ab"), Verification)
    Ledger("sqlite:///a.db", store_content="held")
    Ledger("sqlite:///a.db", store_content="all")  # type: ignore[bad-argument-type]


def assert_politeness(judged: Judge) -> None:
    """The assertion of a test returns the result, and takes what ``evaluate`` takes."""
    assert_type(assert_passes("Thank you.", criteria="Is polite.", judge=judged), JudgeResult)
    assert_passes("Thank you.", "rubrics/login.yaml", threshold=0.9)
    assert_passes("Thank you.", repeat=3)  # pyrefly: ignore[unexpected-keyword]
