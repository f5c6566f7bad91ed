"""The public API as a type checker sees it. Checked by ./scripts/lint, never run.

Calls that must be accepted stand plainly. Calls that must be rejected carry an ignore comment, and an ignore that is
not needed is an error, so both directions are held.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

from adjudge import (
    AdjudgeError,
    Approval,
    Approvals,
    AuditEntry,
    AuditQuery,
    Blocked,
    Budget,
    Case,
    CreationVerdict,
    Criterion,
    CriterionResult,
    Dataset,
    Decision,
    Diff,
    EmergentJudge,
    EmergentTool,
    FirewallVerdict,
    ForgeResult,
    Gate,
    Improvement,
    InputFirewall,
    InputVerdict,
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
    PairResult,
    Price,
    ProbeReport,
    ProbeResult,
    ProbeThresholds,
    PromotionVerdict,
    PromptFirewall,
    Question,
    Redecision,
    RejectedRule,
    Reply,
    ReplyCache,
    ReplyError,
    Request,
    ReuseVerdict,
    ReviewVerdict,
    Rubric,
    Rule,
    RuleResult,
    Rules,
    Run,
    RunItem,
    SemanticProbe,
    Threat,
    ToolCandidate,
    ToolRegistry,
    ToolTest,
    Usage,
    UsageError,
    Vote,
    compare,
    compare_sync,
    derive_audit,
    diff,
    evaluate_probe,
    evaluate_probes,
    forge,
    improve,
    judge,
    load_rules,
    open_dataset,
    open_run,
    parse_audit,
    read_result,
    redecide,
    run,
    wire,
    write_audit,
    write_cases,
)
from adjudge.approval import Webhook, verify_webhook
from adjudge.asgi import GateMiddleware, Receive, Scope, Send
from adjudge.dataset import BadRow, import_inspect, import_promptfoo
from adjudge.gate import Answer
from adjudge.ledger import Entry, Head, Verification, verify_export
from adjudge.report import Report, ShownCase, Spread, make_report, write_html, write_junit, write_markdown
from adjudge.testing import assert_passes
from adjudge.tools import ToolHistory, ToolRecord, validate_reuse


def answer(prompt: str) -> str:
    """A function from string to string is a model."""
    return prompt


async def answer_parts(system: str, user: str) -> str:
    """So is a coroutine function of system and user part."""
    return system + user


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
    single = Judge("openai:gpt-5-mini", rubric=RUBRIC, timeout=None, reask=0, structured="text", scoring="expected")
    chain = JudgeChain(
        ["openai:gpt-5-mini", answer, ("named", answer_parts), Adapter(), single, own], strategy="quorum", quorum=2
    )
    outer = JudgeChain([chain, Judge(model), Judge(OwnModel()), OwnJudge()], strategy="cascade", escalate_below=0.8)
    return [single, chain, outer, own, Judge(answer, name="claude-haiku"), JudgeChain([single], fail_open=True)]


def make_wired(judge: Judge) -> Any:
    """A cache, a budget and prices around a judge."""
    with ReplyCache(Path("replies.sqlite"), expires_in=60, max_bytes=1_000_000) as cache:
        prices: dict[str, Price | Mapping[str, float]] = {"a": Price(input=1, output=2), "b": {"input": 1, "output": 2}}
        return wire(judge, cache=cache, budget=Budget(5, per=60, spent=1), prices=prices, identities={"a": "1"})


def wrong_judges() -> None:
    """What must be rejected before it is run."""
    Judge()  # pyrefly: ignore[missing-argument]
    Judge("openai:gpt-5-mini", "login")  # pyrefly: ignore[bad-argument-count]
    Judge("openai:gpt-5-mini", structured="always")  # pyrefly: ignore[bad-argument-type]
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
    assert_type(await judge("content", rubric="security", judge="openai:gpt-5-mini"), JudgeResult)


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


async def prefer(single: Judge, chain: JudgeChain) -> None:
    """Which of two, by a judge, a chain or a spec."""
    pair = await compare("a", {"b": 1}, judge=single, criteria="Friendly.", on_conflict="undecided", ties=False)
    assert_type(pair, PairResult)
    assert_type(pair.preferred, Literal["first", "second", "tie"] | None)
    assert_type(pair.outcome, Outcome)
    assert_type(pair.flipped, bool | None)
    assert_type(pair.orders[0].result, JudgeResult)
    assert_type(compare_sync("a", "b", judge="openai:gpt-5-mini", rubric=RUBRIC), PairResult)
    compare_sync("a", "b", judge=single, on_conflict="first")  # pyrefly: ignore[bad-argument-type]
    compare_sync("a", "b", judge=single, referense="x")  # pyrefly: ignore[unexpected-keyword]
    await compare("a", "b", judge=chain, rubric=RUBRIC, task="the task", metadata={"case": "1"})
    await compare("a", "b", rubric=RUBRIC)  # pyrefly: ignore[missing-argument]
    await compare("a", "b", judge=single, on_conflict="first")  # pyrefly: ignore[bad-argument-type]
    await compare("a", "b", judge=single, referense="x")  # pyrefly: ignore[unexpected-keyword]


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
    assert_type(gate.guard(argument="prompt")(answer)("x"), str)
    decision.allowed = True  # pyrefly: ignore[read-only]
    GateMiddleware(serve, gate, on="response", largest=10_000, when=lambda scope: scope["type"] == "http")
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


async def probe_tool(judge: JudgeLike) -> None:
    """An output or a tool; a report's mean and drift may be unknown."""
    probe = SemanticProbe(name="hours", input={"q": 1}, expected="9 to 18", contract={"readOnly": True})
    result = await evaluate_probe(probe, judge, actual=None, thresholds=ProbeThresholds(low=0.8))
    assert_type(result, ProbeResult)
    assert_type(result.outcome, Outcome)
    assert_type(result.similarity, float | None)
    assert_type(result.drift, Literal["none", "low", "medium", "high"] | None)
    report = await evaluate_probes([probe], "openai:gpt-5-mini", tool=answer, concurrency=2)
    assert_type(report, ProbeReport)
    assert_type(report.mean, float | None)
    assert_type((await evaluate_probes([(probe, "9 to 18")], answer)).stable, bool)
    SemanticProbe(name="hours", input=1)  # pyrefly: ignore[missing-argument]
    await evaluate_probe(probe, judge, "x")  # pyrefly: ignore[bad-argument-count]
    result.outcome = "passed"  # pyrefly: ignore[read-only]


async def review_tools(judge: JudgeLike, tool: EmergentTool) -> None:
    """Any model, judge or chain in either place; verdicts are values."""
    candidate = ToolCandidate(
        name="add",
        description="Adds.",
        input_schema={"type": "object"},
        mode="sandbox",
        source="x",
        tests=(
            ToolTest(input={}, output=3, success=True),
            ToolTest(input={}, output=None, success=True, expected=None),
        ),
    )
    reviewer = EmergentJudge(judge_model=judge, promotion_model={"safety": answer, "correctness": "openai:gpt-5-mini"})
    verdict = await reviewer.review_creation(candidate)
    assert_type(verdict, CreationVerdict)
    assert_type(verdict.chain_result, JudgeChainResult | None)
    assert_type(reviewer.validate_reuse("t", 3, {"type": "integer"}, history=ToolHistory()), ReuseVerdict)
    promotion = await reviewer.review_promotion(tool)
    assert_type(promotion, PromotionVerdict)
    assert_type(promotion.safety, ReviewVerdict)
    assert_type(validate_reuse("t", b"", True, strict_properties=True).schema_errors, tuple[str, ...])
    ToolCandidate(name="add", description="", input_schema={}, mode="shell")  # pyrefly: ignore[bad-argument-type]
    await reviewer.review_creation(tool)  # pyrefly: ignore[bad-argument-type]
    verdict.approved = True  # pyrefly: ignore[read-only]


async def keep_tools(reviewer: EmergentJudge, candidate: ToolCandidate) -> None:
    """Tools are forged, used and promoted by id; what came of it is a value, true exactly when it went well."""
    async with ToolRegistry("sqlite:///a.db", session_cap=3) as registry:
        made = await forge(candidate, reviewer, registry, agent="ana", session="s1")
        assert_type(made, ForgeResult)
        assert_type(made.tool, EmergentTool | None)
        use = await registry.use("t", lambda tool, given: tool.name, {}, agent="ana", session="s1")
        assert_type(use.verdict, ReuseVerdict | None)
        risen = await registry.promote("t", reviewer, to="shared", approved_by="grace")
        assert_type(risen.verdict, PromotionVerdict | None)
        assert_type(await registry.demote("t", "it lies", by="grace"), ToolRecord)
        await registry.promote("t", reviewer, to="all")  # pyrefly: ignore[bad-argument-type]
        await registry.promote("t", answer)  # pyrefly: ignore[bad-argument-type]
        await registry.use("t", lambda *_: 1, {})  # pyrefly: ignore[missing-argument]


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
        await ledger.append(result, "publish")  # type: ignore[bad-argument-count]
        async for entry in ledger.query(outcome="passed", since=datetime.now().astimezone()):
            assert_type(entry, Entry)
        assert_type(await ledger.verify(await ledger.head(), public_key="ab"), Verification)
        assert_type(await ledger.export(Path("a.jsonl")), Head)
    assert_type(verify_export("a.jsonl", head="1:ab"), Verification)
    Ledger("sqlite:///a.db", store_content="all")  # type: ignore[bad-argument-type]


async def audit(ledger: Ledger) -> None:
    """An audit is of a ledger or of an export, and goes to text and back."""
    found = await derive_audit(ledger, gate="publish", since=datetime.now().astimezone())
    assert_type(await derive_audit(Path("a.jsonl"), opinion="adverse", opinion_by="Ada", reason="..."), AuditEntry)
    assert_type(parse_audit(write_audit(found)), AuditEntry)
    assert_type(AuditQuery(opinion=["adverse"], min_critical=1).matches(found), bool)
    AuditQuery(opinion="fine")  # type: ignore[bad-argument-type]
    found.opinion = "unqualified"  # pyrefly: ignore[read-only]


async def approve(result: JudgeResult, held: Decision, single: Judge) -> None:
    """People are asked about a result or a decision, and a gate takes approvals as whom it asks."""
    hook = Webhook("https://example.org/hook", secret=b"sixteen bytes or more", retries=2)
    async with Approvals("sqlite:///a.db", webhook=hook) as approvals:
        assert_type(await approvals.request(result, "Publish?", approvers=["ana"], expires_in=60), str)
        await approvals.request(held, "Publish?", approvers=("ana", "bob"), required=2, expires_in=timedelta(hours=1))
        await approvals.request(held, "?", approvers=["ana"], first=single, content="x", on_expiry="approve")
        await approvals.request(held, "?", approvers=["ana"], on_expiry="allow")  # pyrefly: ignore[bad-argument-type]
        await approvals.request(held, "Publish?")  # pyrefly: ignore[missing-argument]
        found = await approvals.decide("id", "ana", True, "why")
        assert_type(found, Approval)
        assert_type(found.votes, tuple[Vote, ...])
        assert_type(found.status, Literal["open", "approved", "denied"])
        assert_type(await approvals.wait("id"), Answer)
        assert_type(await approvals.list(status=None, approver="ana"), tuple[Approval, ...])
        assert_type(await approvals.find("8f3a"), str)
        assert_type(await approvals.is_open("id"), bool)
        assert_type(found.result, JudgeResult | None)
        assert_type(await approvals.history("id"), tuple[Entry, ...])
        assert_type(await approvals.export_labels(Path("a.jsonl")), int)
        Gate(
            "door", rules=["json"], on_failed="ask", approvals=approvals, ask={"approvers": ["ana"]}, show_content=True
        )
    assert_type(verify_webhook({}, b"", "secret"), dict[str, Any])


async def run_data(judge: Judge, ask: JudgeLike) -> None:
    """A run is awaited, iterated, or finished without a loop, and takes what a judge takes."""
    running = run("data.jsonl", judge, RUBRIC, out=Path("run"), concurrency=4, repeat=2, sample=10, resume=True)
    async for item in running:
        assert_type(item, RunItem)
        assert_type(item.result, JudgeResult | PairResult)
    assert_type(await running, Run)
    assert_type(run(["a"], answer, criteria="Is polite.").finish_sync(), Run)
    assert_type(list(open_run("run").items("failed")), list[RunItem])
    assert_type(open_run("run").usage, Usage)
    await run([], ask, retry=["error", "timeout"])
    await run([], judge, cache="replies.sqlite", budget=5, prices={"small": Price(input=1, output=2)}, concurrency=8)
    with ReplyCache("replies.sqlite") as cache:
        compared = await run([], judge, RUBRIC, cache=cache, budget=Budget(5), pairs=True, on_conflict="undecided")
    assert_type(compared.compares, bool)
    await run([], judge, pairs=True, on_conflict="first")  # type: ignore[bad-argument-type]
    await run([], ask, retry=["late"])  # type: ignore[bad-argument-type]
    await run(3, ask)  # type: ignore[bad-argument-type]


async def read_data_sets(lots: Judge) -> None:
    """Data sets are iterables of cases, and what judges take many of."""
    dataset = open_dataset(Path("answers.csv"), fields={"content": "answer", "label": None}, on_bad_row="skip")
    open_dataset("answers.csv", on_bad_row="ignore")  # pyrefly: ignore[bad-argument-type]
    assert_type(dataset.bad_rows, tuple[BadRow, ...])
    assert_type([case.id for case in dataset], list[str])
    assert_type(Dataset.of([Case(id="a", content="x"), "y"]), Dataset)
    assert_type(import_promptfoo("promptfooconfig.yaml").notes, Mapping[str, int])
    assert_type(write_cases("answers.jsonl", import_inspect("log.json")), int)
    async for result in lots.evaluate_many(dataset, criteria="Is polite."):
        assert_type(result, JudgeResult)


def report_run(done: Run) -> None:
    """A report is made of a run, and written in the forms it has."""
    report = make_report(done, most_cases=100)
    assert_type(report, Report)
    assert_type(report.shown, tuple[ShownCase, ...])
    assert_type(write_html(report), str)
    assert_type(write_markdown(report, needed=0.9), str)
    assert_type(list(write_junit(report, done.items())), list[str])
    assert_type(report.scores, Spread | None)
    make_report("monday")  # type: ignore[bad-argument-type]


def look_back(done: Run) -> None:
    """A run is redecided and compared as a value or a folder, without a loop."""
    found = redecide(done, rubric="security", strategy="majority", fail_open=False, judges=["a"], out=Path("new"))
    assert_type(found, Redecision)
    assert_type(found.changes[0].known, bool)
    redecide("run", strategy="votes")  # type: ignore[bad-argument-type]
    compared = diff(done, "new")
    assert_type(compared, Diff)
    assert_type(compared.score.p_value, float | None)
    assert_type(compared.listed[0].regressed, bool)


def assert_politeness(judged: Judge) -> None:
    """The assertion of a test returns the result, and takes what ``evaluate`` takes."""
    assert_type(assert_passes("Thank you.", criteria="Is polite.", judge=judged), JudgeResult)
    assert_passes("Thank you.", "rubrics/login.yaml", threshold=0.9)
    assert_passes("Thank you.", repeat=3)  # pyrefly: ignore[unexpected-keyword]
