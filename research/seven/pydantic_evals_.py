"""The jobs of pydantic-evals: a ``Dataset`` evaluated with ``LLMJudge``, its model one of pydantic-ai.

Read for what it lacks: pydantic.dev/docs/ai/evals and its pages on evaluators, retries, report evaluators and
concurrency, and the package.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import ConfusionMatrixEvaluator, EvaluationReason, Evaluator, EvaluatorContext, LLMJudge
from pydantic_evals.evaluators.llm_as_a_judge import GradingOutput, judge_output

from seven.work import (
    BROKEN,
    CRITERION,
    DONE,
    FINE,
    LABELLED,
    MODEL,
    NO_JSON,
    NONE,
    NOT,
    OWN,
    ROWS,
    RUDE,
    TIMEOUT_S,
    Found,
    Server,
    call_job,
    judge_rows,
    kill_at,
    shorten,
    weigh_fault,
    weigh_own_file,
    weigh_resumed,
    weigh_second,
)


def make_model(server: Server, mode: str, run: str = "one") -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=server.get_address(mode, run), api_key="sk-mock")
    return OpenAIChatModel(MODEL, provider=provider)


def make_judge(server: Server, mode: str, run: str = "one", **options: Any) -> LLMJudge:
    return LLMJudge(rubric=CRITERION, model=make_model(server, mode, run), **options)


def evaluate(contents: list[str], *evaluators: Any, **options: Any) -> Any:
    cases = [Case(name=str(at), inputs=content) for at, content in enumerate(contents)]
    dataset = Dataset(name="rows", cases=cases, evaluators=evaluators)
    return dataset.evaluate_sync(lambda text: text, progress=False, max_concurrency=1, **options)


def read_verdicts(report: Any) -> list[str]:
    return [describe(case) for case in sorted(report.cases, key=lambda case: int(case.name))]


def describe(case: Any) -> str:
    if case.evaluator_failures:
        return f"no verdict: evaluator failure: {shorten(case.evaluator_failures[0].error_message)}"
    found = [*case.assertions.values(), *case.scores.values()]
    if not found:
        return "no verdict: no result"
    words = {True: "passed", False: "failed"}
    return ", ".join(
        words.get(item.value, "") if isinstance(item.value, bool) else f"score {item.value}" for item in found
    )


def try_mode(server: Server, mode: str, **options: Any) -> Found:
    return weigh_fault(*read_verdicts(evaluate([FINE, BROKEN], make_judge(server, mode, **options))))


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    report = evaluate([FINE, BROKEN], make_judge(server, "scale", score={"include_reason": False}))
    fine, broken = read_verdicts(report)
    return weigh_fault(fine.partition(",")[0], broken)


def timeout(server: Server) -> Found:
    return try_mode(server, "hang", model_settings=ModelSettings(timeout=TIMEOUT_S))


def again(server: Server) -> Found:
    return weigh_second(lambda: read_verdicts(evaluate([BROKEN], make_judge(server, "again")))[0])


def orders(server: Server) -> Found:
    """No evaluator of evaluators/ compares two outputs; one of one's own may ask twice."""
    model = make_model(server, "good")

    @dataclass
    class Better(Evaluator):
        async def evaluate(self, ctx: EvaluatorContext) -> dict[str, bool]:
            pairs, asked = ((ctx.output, ROWS[0]), (ROWS[0], ctx.output)), "The first is better than the second."
            said = [(await judge_output(pair, asked, model)).pass_ for pair in pairs]
            return {"ab": said[0], "ba": said[1]}

    [case] = evaluate([FINE], Better()).cases
    said = {name: item.value for name, item in case.assertions.items()}
    return Found(OWN, f"an evaluator of our own that asks twice whether the first is better: {said}")


def function(_server: Server) -> Found:
    """Its page "Custom evaluators": a bool, a number, an EvaluationReason; an empty mapping is no result."""
    values: dict[str, Any] = {"true": True, "number": 0.25, "reason": EvaluationReason(0.25, "why"), "none": {}}

    @dataclass
    class Own(Evaluator):
        def evaluate(self, ctx: EvaluatorContext) -> Any:
            return values[ctx.output]

    told = dict(zip(values, read_verdicts(evaluate(list(values), Own())), strict=True))
    return Found(DONE if told["none"].startswith("no verdict") else NOT, f"a class with evaluate(): {told}")


def several(server: Server) -> Found:
    """No evaluator of evaluators/ combines others; each has its own column of the report."""
    judges = [make_judge(server, mode, mode) for mode in ("good", "good", "down-all")]
    votes = Counter(read_verdicts(evaluate([FINE], judge))[0].partition(":")[0] for judge in judges)
    word, count = votes.most_common(1)[0]
    return Found(OWN, f"counted by hand: {word} by {count} of 3")


def rule(server: Server) -> Found:
    """Every evaluator of a dataset runs; one of one's own may call another."""
    graded = make_judge(server, "good")

    @dataclass
    class JsonFirst(Evaluator):
        async def evaluate(self, ctx: EvaluatorContext) -> Any:
            try:
                json.loads(ctx.output)
            except ValueError:
                return EvaluationReason(False, "not JSON")
            return await graded.evaluate(ctx)

    told = read_verdicts(evaluate([NO_JSON], JsonFirst()))[0]
    return Found(OWN, f"an evaluator of our own around LLMJudge: {told} after {server.count()} requests")


def long_run(server: Server) -> Found:
    """A file per answer beside ``evaluate``, which has no way to go on."""
    return judge_rows(lambda content: read_verdicts(evaluate([content], make_judge(server, "slow")))[0])


def resume(server: Server) -> Found:
    """``Dataset.evaluate`` (dataset.py) returns its report at the end, and takes no earlier one."""
    before = kill_at(call_job("pydantic_evals", "long_run", server), server, 3)
    judged = int(long_run(server).evidence)
    told = weigh_resumed(before, server.count(), judged)
    return Found(
        OWN if told.word == DONE else NOT, f"an evaluation for each answer, and a file of our own: {told.evidence}"
    )


def cache(server: Server) -> Found:
    """Neither evals nor the models of pydantic-ai keep replies."""
    return weigh_own_file(long_run, server)


def budget(server: Server) -> Found:
    """``UsageLimits`` of pydantic-ai has ``cost_limit``; LLMJudge takes none, an evaluator with an agent does."""
    spent, limits = RunUsage(), UsageLimits(cost_limit=Decimal("0.001"))
    agent = Agent(make_model(server, "dear"), output_type=GradingOutput, instructions=CRITERION)

    @dataclass
    class Limited(Evaluator):
        async def evaluate(self, ctx: EvaluatorContext) -> bool:
            return (await agent.run(ctx.output, usage=spent, usage_limits=limits)).output.pass_

    told = Counter(item.partition(":")[0] for item in read_verdicts(evaluate(ROWS, Limited())))
    found = f"an evaluator of our own with UsageLimits: {dict(told)}, {spent.cost} spent of {limits.cost_limit} dollars"
    return Found(OWN if told["no verdict"] else NOT, found)


def status(server: Server) -> Found:
    report = evaluate([FINE, RUDE], make_judge(server, "good"))
    return Found(OWN, f"no command of its own; assert in pytest: assertions {report.averages().assertions}")


def people(server: Server) -> Found:
    """``ConfusionMatrixEvaluator`` of its page "Report evaluators"; the verdict has to be a label, so it is one."""
    graded = make_judge(server, "good")

    @dataclass
    class Worded(Evaluator):
        async def evaluate(self, ctx: EvaluatorContext) -> dict[str, str]:
            [found] = (await graded.evaluate(ctx)).values()
            return {"judge": "good" if found.value else "bad"}

    cases = [Case(inputs=content, expected_output="good" if good else "bad") for content, good in LABELLED]
    matrix = ConfusionMatrixEvaluator(predicted_from="labels", predicted_key="judge", expected_from="expected_output")
    dataset = Dataset(name="rows", cases=cases, evaluators=[Worded()], report_evaluators=[matrix])
    report = dataset.evaluate_sync(lambda text: text, progress=False)
    [found] = report.analyses
    return Found(DONE, f"ConfusionMatrixEvaluator: {found.class_labels} {found.matrix}")


def approval(_server: Server) -> Found:
    """pydantic-evals has nothing; pydantic-ai, which it asks models by, has deferred tools of its own agents."""
    return Found(NONE, "not pydantic-evals; the agents of pydantic-ai, another package, can defer a tool call")


def record(_server: Server) -> Found:
    return Found(NONE, "its reports go to Logfire, a service, or nowhere; nothing shows a change")
