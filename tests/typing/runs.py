"""The public API of runs, data sets, tools and approvals as a type checker sees it; as api.py says. Never run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

from adjudge import (
    Approvals,
    Budget,
    Case,
    Criterion,
    Dataset,
    Decision,
    EmergentJudge,
    EmergentTool,
    Gate,
    Judge,
    JudgeChain,
    JudgeChainResult,
    JudgeLike,
    JudgeResult,
    Ledger,
    Outcome,
    PairResult,
    ProbeReport,
    ReplyCache,
    Rubric,
    Rule,
    SemanticProbe,
    ToolCandidate,
    ToolRegistry,
    ToolTest,
    Usage,
    compare,
    compare_sync,
    evaluate_probe,
    evaluate_probes,
    load_rubric,
    open_dataset,
    open_run,
    run,
)
from adjudge.dataset import (
    AnnotationTool,
    BadRow,
    CaseCriteria,
    ContentSet,
    ImportedLabels,
    Label,
    LabelDesign,
    LabelKind,
    LabelMap,
    LabelOrder,
    LabelValue,
    SplitRow,
    digest_content,
    import_inspect,
    import_labels,
    import_langfuse,
    import_langsmith,
    import_mlflow,
    import_openai_evals,
    import_phoenix,
    import_promptfoo,
    load_labels,
    make_content_set,
    parse_label_map,
    write_cases,
    write_labels,
)
from adjudge.guards import (
    Approval,
    ApprovalAnswer,
    PendingDecision,
    ProbeResult,
    ProbeThresholds,
    Vote,
    Webhook,
    verify_webhook,
)
from adjudge.judges import with_layers
from adjudge.labels import (
    LabelImport,
    LabelPlan,
    LabelProgress,
    LabelQueue,
    LabelTask,
    Look,
    PlanStatus,
    Truth,
    TruthTable,
    UndoneAnswer,
    continue_plan,
    find_plan_status,
    find_truths,
    load_looks,
    load_plan,
    make_paired_plans,
    make_plan,
    open_label_queue,
    tabulate_truths,
    write_case_list,
    write_plan,
)
from adjudge.ledger import AuditEntry, AuditQuery, Entry, derive_audit, read_audit, render_audit
from adjudge.measurement import (
    Better,
    CallRates,
    CallStep,
    Decider,
    DeciderRates,
    JudgeDifference,
    PlanProgress,
    PreferenceDifference,
    RateDecision,
    RateLimit,
    ShareDifference,
    SystemDifference,
    compare_judges,
    compare_systems,
    decide_rate,
    make_call_rates,
    make_measurement,
    record_difference_look,
)
from adjudge.models import Price
from adjudge.report import (
    Diff,
    OwnSummary,
    Report,
    RubricSummary,
    ShownCase,
    Spread,
    diff,
    make_report,
    render_html,
    render_junit,
    render_markdown,
)
from adjudge.runs import Redecision, Run, RunItem, redecide
from adjudge.tools import (
    CreationVerdict,
    ForgeResult,
    PromotionVerdict,
    ReuseVerdict,
    ReviewVerdict,
    ToolHistory,
    ToolRecord,
    forge,
    validate_reuse,
)
from adjudge.trust import (
    Allocation,
    Estimate,
    LabelsNeeded,
    LiveRate,
    allocate_labels,
    allocate_pilot,
    compute_labels_needed,
    compute_live_rate,
    estimate_more_labels,
    group_scores,
    score_signals,
)

RUBRIC = Rubric(
    name="Login",
    passing_threshold=0.8,
    criteria=[
        Criterion(name="security", description="Hashes passwords with bcrypt or argon2", weight=3, threshold=0.9),
        Criterion(name="errors", description="Tells the user what went wrong", levels={0: "never", 1: "always"}),
        Criterion(name="length", description="Is short", rule={"length": 400}),
    ],
)


def answer(prompt: str) -> str:
    """A function from string to string is a model."""
    return prompt


def add_layers(judge: Judge) -> Judge:
    """A cache, a budget and prices around a judge."""
    with ReplyCache(Path("replies.sqlite"), expires_in=60, max_bytes=1_000_000) as cache:
        prices: dict[str, Price | Mapping[str, float]] = {"a": Price(input=1, output=2), "b": {"input": 1, "output": 2}}
        return with_layers(judge, cache=cache, budget=Budget(5, per=60, spent=1), prices=prices, identities={"a": "1"})


async def prefer(single: Judge, chain: JudgeChain) -> None:
    """Which of two, by a judge, a chain or a spec."""
    pair = await compare("a", {"b": 1}, judge=single, criteria="Friendly.", on_conflict="undecided", ties=False)
    assert_type(pair, PairResult)
    assert_type(pair.preferred, Literal["first", "second", "tie"] | None)
    assert_type(pair.outcome, Outcome)
    assert_type(pair.flipped, bool | None)
    assert_type(pair.orders[0].result, JudgeResult)
    assert_type(compare_sync("a", "b", judge="openai:gpt-6.1-terra", rubric=RUBRIC), PairResult)
    compare_sync("a", "b", judge=single, on_conflict="first")  # pyrefly: ignore[bad-argument-type]
    compare_sync("a", "b", judge=single, referense="x")  # pyrefly: ignore[unexpected-keyword]
    await compare("a", "b", judge=chain, rubric=RUBRIC, task="the task", metadata={"case": "1"})
    await compare("a", "b", rubric=RUBRIC)  # pyrefly: ignore[missing-argument]
    await compare("a", "b", judge=single, on_conflict="first")  # pyrefly: ignore[bad-argument-type]
    await compare("a", "b", judge=single, referense="x")  # pyrefly: ignore[unexpected-keyword]


async def probe_tool(judge: JudgeLike) -> None:
    """An output or a tool; a report's mean and drift may be unknown."""
    probe = SemanticProbe(name="hours", input={"q": 1}, expected="9 to 18", contract={"readOnly": True})
    result = await evaluate_probe(probe, judge, actual=None, thresholds=ProbeThresholds(low=0.8))
    assert_type(result, ProbeResult)
    assert_type(result.outcome, Outcome)
    assert_type(result.similarity, float | None)
    assert_type(result.drift, Literal["none", "low", "medium", "high"] | None)
    report = await evaluate_probes([probe], "openai:gpt-6.1-terra", tool=answer, concurrency=2)
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
    reviewer = EmergentJudge(
        judge_model=judge, promotion_model={"safety": answer, "correctness": "openai:gpt-6.1-terra"}
    )
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
        use = await registry.use("t", lambda tool, arguments: tool.name, {}, agent="ana", session="s1")
        assert_type(use.verdict, ReuseVerdict | None)
        risen = await registry.promote("t", reviewer, to="shared", approved_by="grace")
        assert_type(risen.verdict, PromotionVerdict | None)
        assert_type(await registry.demote("t", "it lies", by="grace"), ToolRecord)
        await registry.promote("t", reviewer, to="all")  # pyrefly: ignore[bad-argument-type]
        await registry.promote("t", answer)  # pyrefly: ignore[bad-argument-type]
        await registry.use("t", lambda *_: 1, {})  # pyrefly: ignore[missing-argument]


async def audit(ledger: Ledger) -> None:
    """An audit is of a ledger or of an export, and goes to text and back."""
    report = await derive_audit(ledger, gate="publish", since=datetime.now().astimezone())
    assert_type(await derive_audit(Path("a.jsonl"), opinion="adverse", opinion_by="Ada", reason="..."), AuditEntry)
    assert_type(read_audit(report.to_dict()), AuditEntry)
    assert_type(render_audit(report), str)
    assert_type(AuditQuery(opinion=["adverse"], min_critical=1).matches(report), bool)
    AuditQuery(opinion="fine")  # type: ignore[bad-argument-type]
    report.opinion = "unqualified"  # pyrefly: ignore[read-only]


async def approve(result: JudgeResult, held: Decision, single: Judge) -> None:
    """People are asked about a result or a decision, and a gate takes approvals as whom it asks."""
    hook = Webhook("https://example.org/hook", secret=b"sixteen bytes or more", retries=2)
    async with Approvals("sqlite:///a.db", webhook=hook, keep_for=60.0) as approvals:
        assert_type(await approvals.forget_due(most=5), int)
        assert_type(await approvals.request(result, "Publish?", approvers=["ana"], expires_in=60), str)
        await approvals.request(held, "Publish?", approvers=("ana", "bob"), required=2, expires_in=timedelta(hours=1))
        await approvals.request(held, "?", approvers=["ana"], first=single, content="x", on_expiry="approve")
        await approvals.request(held, "?", approvers=["ana"], on_expiry="allow")  # pyrefly: ignore[bad-argument-type]
        await approvals.request(held, "Publish?")  # pyrefly: ignore[missing-argument]
        approval = await approvals.decide("id", "ana", True, "why")
        assert_type(approval, Approval)
        assert_type(approval.votes, tuple[Vote, ...])
        assert_type(approval.status, Literal["open", "approved", "denied"])
        assert_type(await approvals.wait("id"), ApprovalAnswer)
        assert_type(await approvals.list(status=None, approver="ana"), tuple[Approval, ...])
        assert_type(await approvals.find("8f3a"), str)
        assert_type(await approvals.is_open("id"), bool)
        assert_type(approval.result, JudgeResult | None)
        assert_type(await approvals.list_decided("ana", approved=False, gates=["a"]), tuple[tuple[str, ...], int])
        assert_type(await approvals.count_open_by_gate("ana"), dict[str | None, int])
        assert_type(await approvals.list_reasons("ana", id="id"), tuple[str, ...])
        assert_type(await approvals.history("id"), tuple[Entry, ...])
        assert_type(await approvals.pending("id"), PendingDecision | None)
        assert_type(await approvals.list_pending(gate="door", status="approved"), tuple[PendingDecision, ...])
        assert_type(await approvals.find_pending("digest"), str | None)
        assert_type(await approvals.export_labels(Path("a.jsonl")), int)
        assert_type([label async for label in approvals.override_labels()], list[Label])
        gate = Gate(
            "door",
            rules=["json"],
            on_failed="ask",
            on_rule="block",
            approvals=approvals,
            ask={"approvers": ["ana"]},
            show_content=True,
        )
        assert_type(await gate.pending(status=None), tuple[Decision, ...])
        assert_type(await gate.resume("id", content={"a": 1}), Decision)
        waits = await approvals.pending("id")
        if waits is not None:
            assert_type(waits.decision, Decision)
            assert_type(waits.approval, Approval)
            assert_type(await approvals.use(waits.decision), int | None)
    assert_type(verify_webhook({}, b"", "secret"), dict[str, Any])


async def run_data(judge: Judge, ask: JudgeLike) -> None:
    """A run is awaited, iterated, or finished without a loop, and takes what a judge takes."""
    running = run("data.jsonl", judge, RUBRIC, out=Path("run"), concurrency=4, repeat=2, sample=10, resume=True)
    async for item in running:
        assert_type(item, RunItem)
        assert_type(item.erased, bool)
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
    open_dataset("suite.csv", case_criteria=True, criteria_field="assert", rubrics={"mine": load_rubric("security")})
    open_dataset("suite.csv", case_criteria="yes")  # pyrefly: ignore[bad-argument-type]
    own = Case(id="a", content="x", criteria={"tone": "Is polite."}, rules=["secrets", {"length": 9}], threshold=0.5)
    assert_type(own.rules, tuple[Rule, ...])
    assert_type(Case(id="a", content="x", rubric="security").rubric, Rubric | None)
    Case(id="a", content="x", threshold="0.5")  # pyrefly: ignore[bad-argument-type]
    assert_type(CaseCriteria(members=True).split_row({"content": "x"}, ()), SplitRow)
    assert_type(import_promptfoo("promptfooconfig.yaml").notes, Mapping[str, int])
    assert_type(import_openai_evals("items.jsonl", graders="eval.json").notes, Mapping[str, int])
    assert_type(write_cases("answers.jsonl", import_inspect("log.json")), int)
    async for result in lots.evaluate_many(dataset, criteria="Is polite."):
        assert_type(result, JudgeResult)


def work_with_labels(words: LabelMap, tool: AnnotationTool) -> None:
    """Labels have values of their own, files of their own, and are joined to cases."""
    label = Label(case="late", rater="ann", value=True, design=LabelDesign(plan="p", stratum="s", p=0.5))
    assert_type(digest_content({"a": "left", "b": "right"}), str)
    assert_type(make_content_set([digest_content("text")]), ContentSet)
    assert_type(label.subject, str | None)
    assert_type(label.kind, LabelKind)
    assert_type(label.value, bool | float | str)
    assert_type(label.order, LabelOrder | None)
    assert_type(load_labels(Path("labels.csv"), label_map=words), tuple[Label, ...])
    assert_type(write_labels("labels.jsonl", [label]), int)
    assert_type(parse_label_map("yes=true"), dict[str, LabelValue])
    assert_type(open_dataset("answers.csv", label_map={"yes": True}).with_labels([label], name="polite"), Dataset)
    imported = assert_type(import_labels("scores.json", format=tool, label_name="correct"), ImportedLabels)
    assert_type(imported.labels, tuple[Label, ...])
    import_labels("scores.json", format="excel")  # type: ignore[arg-type]  # pyrefly: ignore[bad-argument-type]
    for load in (import_langfuse, import_langsmith, import_mlflow, import_phoenix):
        assert_type(load("export.json", label_map=words, label_name="correct"), Dataset)


def label_run(done: Run) -> None:
    with open_label_queue(done, per_case=2, by_criterion=False, store=Path("l.sqlite")) as queue:
        assert_type(queue, LabelQueue)
        task = queue.next("ann", blind=True)
        assert_type(task, LabelTask | None)
        assert task is not None
        parts: tuple[tuple[str, str], ...] = task.parts
        side: Literal["first", "second"] = task.name_shown("first")
        assert_type(queue.record("ann", task.case, True, comment=parts[0][1]), Label)
        assert_type(queue.adjudicate("zoe", task.case, side), Label)
        queue.skip("ann", task.case)
        assert_type(queue.undo("ann"), UndoneAnswer | None)
        assert_type(queue.progress("ann"), LabelProgress)
        assert_type(queue.count_left("ann"), int)
        assert_type(queue.next_difference("zoe", case=task.case, criterion=None), LabelTask | None)
        assert_type(queue.import_labels(list(queue.labels())), LabelImport)
        truths = find_truths(queue.labels(), criterion="polite")
        assert_type(truths, dict[str, Truth])
        assert_type(tabulate_truths(truths, {"a": "passed"}), TruthTable)


def plan_labels(done: Run) -> None:
    plan = make_plan(done, within=0.03, expect=0.9, seed=1)
    assert_type(plan, LabelPlan)
    assert_type(load_plan(done), LabelPlan | None)
    assert_type(write_plan(plan, done.folder), Path)
    status = find_plan_status(plan, load_labels("labels.jsonl"))
    assert_type(status, PlanStatus)
    assert_type(status.live, LiveRate)
    assert_type(continue_plan(plan, done, status).needed.planned, int)
    assert_type(write_case_list("cases.csv", plan, done, status.pending, rater="ann"), int)


def decide_rates(done: Run) -> None:
    decision = decide_rate(done, 0.8, labels=load_labels("labels.jsonl"), labels_are_random=True, target="run")
    assert_type(decision, RateDecision)
    assert_type(decision.limit, RateLimit | None)
    assert_type(make_measurement(done).plan, PlanProgress | None)
    assert_type(load_looks(done.folder), tuple[Look, ...])


def compare_runs(before: Run, after: Run) -> None:
    plans = make_paired_plans(before, after, within=0.05, seed=1)
    assert_type(plans, tuple[LabelPlan, ...])
    assert_type(plans[0].against, str | None)
    systems = compare_systems(before, after, labels_are_random=True)
    assert_type(systems, SystemDifference)
    assert_type(systems.standing, Better)
    record_difference_look(before, systems, by="ci")
    judges = compare_judges(before, after)
    assert_type(judges, JudgeDifference)
    record_difference_look(before, judges, by="ci")
    assert_type(make_measurement(after).preference, PreferenceDifference | None)
    assert_type(judges.agreement, ShareDifference)
    rates = make_call_rates(after, labels=load_labels("labels.jsonl"), labels_are_random=False)
    assert_type(rates, CallRates)
    assert_type(rates.deciders, tuple[DeciderRates, ...])
    assert_type(rates.deciders[0].name, Decider)
    assert_type(rates.deciders[0].calls, Mapping[CallStep, int])
    assert_type(rates.deciders[0].wrong_passes_of_bad, Estimate)


def compute_rates() -> None:
    rate = compute_live_rate([60, 40], [(0, True), (1, None)], allocations=[Allocation(first=0, shares=(0.5, 0.5))])
    assert_type(rate, LiveRate)
    assert_type(estimate_more_labels(rate, within=0.03), int | None)
    strata = group_scores([score_signals(verdict=True, votes=[False], score=0.4)])
    assert_type(strata, tuple[int, ...])
    pilot = allocate_pilot([60, 40], 200)
    assert_type(allocate_labels([60, 40], 80, labelled=pilot, good=[0, 0]), tuple[int, ...])
    assert_type(compute_labels_needed([60, 40], [0.9, 0.2], within=0.05), LabelsNeeded)


def report_run(done: Run) -> None:
    """A report is made of a run, and written in the forms it has."""
    report = make_report(done, most_cases=100, labels=load_labels("labels.jsonl"), label_name="polite")
    assert_type(report, Report)
    assert_type(report.shown, tuple[ShownCase, ...])
    assert_type(render_html(report), str)
    assert_type(render_markdown(report, needed=0.9), str)
    assert_type(list(render_junit(report, done.items())), list[str])
    assert_type(report.scores, Spread | None)
    assert_type(report.own, OwnSummary | None)
    assert_type(report.rubrics, tuple[RubricSummary, ...])
    assert_type([item.rubric for item in done.items()], list[Rubric | None])
    assert_type(done.read_case("a"), list[RunItem])
    make_report("monday")  # type: ignore[bad-argument-type]


def look_back(done: Run) -> None:
    """A run is redecided and compared as a value or a folder, without a loop."""
    redecision = redecide(done, rubric="security", strategy="majority", fail_open=False, judges=["a"], out=Path("new"))
    assert_type(redecision, Redecision)
    assert_type(redecision.changes[0].known, bool)
    assert_type(redecide("run", threshold=0.5, all_cases=True).kept_own, int)
    redecide("run", strategy="votes")  # type: ignore[bad-argument-type]
    compared = diff(done, "new")
    assert_type(compared, Diff)
    assert_type(compared.score.p_value, float | None)
    assert_type(compared.listed[0].regressed, bool)
