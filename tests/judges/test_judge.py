"""One model as a judge: what decides, what is asked, what the result says."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
from contextlib import aclosing

import pytest

from adjudge import Case, Judge, JudgeChain, JudgmentFailed, Rubric, Usage, UsageError, judge
from adjudge.models import Reply, as_model
from adjudge.testing import ScriptedModel
from kit.judges import NO, YES, Plain, complaint, names, scores, summarise
from kit.loops import run_virtual

GOOD = scores(0.9)
BAD = scores(0.1)
NAMED = scores(0.9, names=["good"])
"""As a model writes it that nobody fills names in for."""


def evaluate(reply=GOOD, content="The content.", rubric=None, **options):
    """A result and the model that was asked, by default about one criterion in words."""
    model = ScriptedModel(reply)
    options |= {} if rubric or "criteria" in options else {"criteria": "Good."}
    return asyncio.run(Judge(model).evaluate(content, rubric, **options)), model


def made_rubric(*criteria: dict, **more) -> Rubric:
    return Rubric(name="r", criteria=[{"description": "d", **item} for item in criteria], **more)


# ---------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ("Is polite.", ["is-polite"]),
        (["Is polite.", "Is short."], ["is-polite", "is-short"]),
        ({"polite": "Is polite.", "short": "Is short."}, ["polite", "short"]),
    ],
)
def test_criteria_in_words_are_a_rubric(criteria, names):
    """A sentence, a list, or a mapping: one criterion each, equal weights, threshold 0.7."""
    result, _ = evaluate(scores(*[0.7] * len(names), names=names), criteria=criteria)

    assert [(item.name, item.weight) for item in result.criteria] == [(name, 1.0) for name in names]
    assert (result.outcome, result.threshold) == ("passed", 0.7)


@pytest.mark.parametrize(
    ("sentence", "rubric", "criterion"),
    [
        ("Is polite.", "Is polite", "is-polite"),
        (
            "Says what to do next, in at most three short sentences.",
            "Says what to do next in at most three short",
            None,
        ),
        ("...", "criteria", "criteria"),
        ("答案有礼貌", "答案有礼貌", "答案有礼貌"),
    ],
)
def test_a_sentence_is_named_by_its_words(sentence: str, rubric: str, criterion: str | None):
    """As after ``--criteria``, so that a report says what was judged; one without words is called ``criteria``."""
    _, model = evaluate(GOOD, criteria=sentence)

    assert f"\nRubric: {rubric}\n" in model.requests[0].system
    assert f"1. {criterion or rubric.lower().replace(' ', '-')}: {sentence}" in model.requests[0].system


def test_a_threshold_in_the_call_is_in_force():
    """For criteria in words and over a rubric's own; it stands on the result, decided or not."""
    rubric = made_rubric({"name": "criteria"}, passing_threshold=0.5)

    assert evaluate(scores(0.6), rubric=rubric)[0].passed
    for options in ({"rubric": rubric}, {"criteria": "Good."}):
        result, _ = evaluate(scores(0.6), **options, threshold=0.65)
        assert (result.outcome, result.threshold) == ("failed", 0.65)
    assert evaluate("nonsense", rubric=rubric, threshold=0.65)[0].threshold == 0.65


def test_a_rubric_given_to_the_call_replaces_the_judges_own():
    """And without one the judge's own is used; a shipped name or a path will do for either."""
    own = made_rubric({"name": "own"})
    careful = Judge(ScriptedModel([scores(1.0, names=["own"]), GOOD]), rubric=own)

    assert careful.evaluate_sync("x").criteria[0].name == "own"
    assert careful.evaluate_sync("x", criteria="Good.").criteria[0].name == "good"
    assert Judge(ScriptedModel(YES), rubric="security").rubric.name


def test_a_yes_or_no_question_scores_one_or_zero():
    """``ask`` takes a ready-made prompt; a rubric's question may be asked too."""
    assert asyncio.run(Judge(ScriptedModel(YES)).ask("Safe?")).score == 1.0
    result = asyncio.run(Judge(ScriptedModel(NO)).ask("Safe?"))
    assert (result.outcome, result.score, result.threshold) == ("failed", 0.0, None)


# ---------------------------------------------------------------- which model


def test_a_model_in_the_call_wins_over_the_rubrics_and_that_over_the_judges():
    """All on the judge's own connection."""
    model = ScriptedModel(GOOD, name="own")
    asked = Judge(model)
    rubric = made_rubric({"name": "criteria"}, model="m-rubric")

    assert asked.evaluate_sync("x", criteria="Good.").model == "own"
    assert asked.evaluate_sync("x", rubric).model == "m-rubric"
    assert asked.evaluate_sync("x", rubric, model="m-call").model == "m-call"
    assert asked.evaluate_sync("x", criteria="Good.", model="m-call").judge == "m-call"


def test_a_model_whose_name_has_a_colon_is_no_prefix():
    """As in ``llama3:8b``: another model of the same server."""
    assert Judge(ScriptedModel(GOOD)).evaluate_sync("x", criteria="Good.", model="llama3:8b").model == "llama3:8b"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (ScriptedModel(YES, name="m"), "m"),
        (("pair", lambda prompt: YES), "pair"),
        (lambda prompt: YES, "function"),
        (lambda system, user: YES, "function"),
        (as_model(lambda prompt: YES, "wrapped"), "wrapped"),
    ],
    ids=["model", "pair", "one parameter", "two parameters", "wrapped"],
)
def test_a_judge_is_named_after_its_model(source, name):
    """Unless it has a name of its own."""
    assert asyncio.run(Judge(source).ask("Safe?")).judge == name
    assert asyncio.run(Judge(source, name="careful").ask("Safe?")).judge == "careful"


def test_the_short_form_takes_any_judge(monkeypatch):
    """A judge, a chain, a model; else the one that ADJUDGE_JUDGE names, read at the call."""
    seats = [Judge(ScriptedModel(GOOD)), JudgeChain([ScriptedModel(GOOD)]), ScriptedModel(GOOD)]
    for seat in seats:
        assert asyncio.run(judge("x", criteria="Good.", judge=seat)).passed
    monkeypatch.setenv("ADJUDGE_JUDGE", "nonsense")
    assert complaint(judge, "x", criteria="Good.").startswith("'nonsense' is not the name of a model")


# ---------------------------------------------------------------- rules first


FORBID = {"not_contains": "password"}


def test_a_failed_error_rule_decides_before_a_model_is_asked():
    """The result says so, and why."""
    result, model = evaluate(content="my password", rules=[FORBID])

    assert summarise(result) == {"outcome": "failed", "because": None, "by": "rule"}
    assert (model.requests, result.attempts, result.score, result.judge) == ([], 0, None, "rules")
    assert [item.passed for item in result.rule_results] == [False]
    assert result.detail.startswith("rule 'not_contains' failed: ")


def test_a_failed_error_rule_decides_for_a_chain_too():
    """No seat is asked, and no policy decided."""
    chain = JudgeChain([ScriptedModel(GOOD)], fail_open=True)
    result = asyncio.run(chain.evaluate("my password", criteria="Good.", rules=[FORBID]))

    assert summarise(result) == {"outcome": "failed", "because": None, "by": "rule"}
    assert (result.results, result.fallback_triggered) == ((), False)


def test_a_rule_that_raises_has_failed():
    """A broken check lets nothing through."""

    def broken(content):
        raise RuntimeError("oops")

    result, model = evaluate(rules=[broken])

    assert (result.outcome, model.requests) == ("failed", [])
    assert "RuntimeError: oops" in result.detail


def test_a_failed_warning_reaches_the_judge_as_data():
    """Fenced, since its message may quote the content; ``info`` is only recorded."""
    rules = [{**FORBID, "severity": "warning"}, {"length": 3, "severity": "info"}]
    result, model = evaluate(content="my password", rules=rules)
    request = model.requests[0]

    assert f'<<findings {request.token}>>\nnot_contains: contains "password"\n' in request.user
    assert "length" not in request.user
    assert [item.severity for item in result.rule_results] == ["warning", "info"]
    assert result.passed


def test_a_rule_criterion_is_scored_without_the_model():
    """One or zero, in the rubric's mean; the model is not told about it."""
    rubric = made_rubric({"name": "short", "rule": {"length": 5}}, {"name": "good"})
    result, model = evaluate(scores(1.0, names=["good"]), "far too long", rubric)

    assert [(item.name, item.score, item.rule) for item in result.criteria] == [
        ("short", 0.0, "length"),
        ("good", 1.0, None),
    ]
    assert (result.score, result.outcome) == (0.5, "failed")
    assert "short" not in model.requests[0].system
    assert [item.name for item in result.rule_results] == ["short"]


def test_a_score_for_a_rule_criterion_is_invented():
    """The model was not asked about it."""
    rubric = made_rubric({"name": "short", "rule": {"length": 5}}, {"name": "good"})
    result, _ = evaluate(scores(1.0, 1.0, names=["short", "good"]), "x", rubric)

    assert result.undecided_because == "missing_criterion"


def test_a_rubric_of_rules_asks_nobody():
    """Score and outcome come from the rules alone."""
    rubric = made_rubric(
        {"name": "short", "rule": {"length": 5}}, {"name": "b", "rule": {"contains": "x"}, "weight": 3}
    )

    for content, outcome, score in (("x", "passed", 1.0), ("too long x", "passed", 0.75), ("y", "failed", 0.25)):
        result, model = evaluate(GOOD, content, rubric)
        assert (result.outcome, result.score, result.decided_by, model.requests) == (outcome, score, "rule", [])
    assert Judge("rules").evaluate_sync("x", rubric).passed


def test_a_gated_rule_criterion_that_fails_decides_alone():
    """No score of the model could change the outcome, so it is not asked."""
    rubric = made_rubric({"name": "short", "rule": {"length": 5}, "threshold": 1.0, "weight": 0}, {"name": "good"})
    result, model = evaluate(GOOD, "far too long", rubric)

    assert summarise(result) == {"outcome": "failed", "because": None, "by": "rule"}
    assert (model.requests, result.score) == ([], None)
    assert "short" in result.detail


# ---------------------------------------------------------------- throwing


@pytest.mark.parametrize(("reply", "outcome"), [(BAD, "failed"), ("nonsense", "undecided")])
def test_throw_on_fail_raises_for_failed_and_undecided(reply, outcome):
    """The error's result tells which; without it the result is returned."""
    with pytest.raises(JudgmentFailed) as caught:
        evaluate(reply, throw_on_fail=True)
    assert caught.value.result.outcome == outcome
    assert evaluate(reply)[0].outcome == outcome


def test_throw_on_fail_returns_what_passed():
    """And it works for rules and chains."""
    assert evaluate(throw_on_fail=True)[0].passed
    with pytest.raises(JudgmentFailed):
        evaluate(content="password", rules=[FORBID], throw_on_fail=True)
    with pytest.raises(JudgmentFailed):
        JudgeChain([ScriptedModel(BAD)]).evaluate_sync("x", criteria="Good.", throw_on_fail=True)


# ---------------------------------------------------------------- the result


def test_the_result_tells_everything_about_one_call():
    """What was said, by whom, how often, at what cost, about what."""
    reply = Reply(
        text=json.dumps({**NAMED, "reasoning": "fine", "suggestions": ["less"]}),
        model="m-2026",
        usage=Usage(input_tokens=10, output_tokens=5),
    )
    result, model = evaluate(reply, metadata={"who": "me"})

    assert (result.reasoning, result.suggestions, result.model) == ("fine", ("less",), "m-2026")
    assert (result.attempts, result.finish_reason, result.usage.input_tokens) == (1, "stop", 10)
    assert result.raw_response == reply.text.replace("{", f'{{"token": "{model.requests[0].token}", ', 1)
    assert (len(result.question), len(result.subject), result.metadata) == (64, 64, {"who": "me"})
    assert (result.decided_by, result.fallback_triggered if hasattr(result, "fallback_triggered") else None) == (
        "judge",
        None,
    )
    assert result.duration_ms >= 0


def test_metadata_is_copied():
    """What the caller changes later does not change a result."""
    metadata = {"a": 1}
    result, _ = evaluate(metadata=metadata)
    metadata["a"] = 2

    assert result.metadata == {"a": 1}


def test_an_undecided_judge_is_decided_by_the_judge():
    """No policy is involved in a single judge."""
    assert summarise(evaluate("nonsense")[0]) == {"outcome": "undecided", "because": "unparseable", "by": "judge"}


def test_structured_replies_are_keyed_by_criterion():
    """With the token as a member, checked in code like any other."""
    keyed = {"criteria": {"good": {"reasoning": "so", "score": 0.9}}}
    model = ScriptedModel(keyed, structured=True)

    assert Judge(model).evaluate_sync("x", criteria="Good.").passed
    assert model.requests[0].form is not None
    assert Judge(model, structured="text").evaluate_sync("x", criteria="Good.").passed
    assert model.requests[1].form is None
    wrong = Plain(json.dumps({"token": "aaaaaaaa", **keyed}))
    assert Judge(wrong, structured="schema").evaluate_sync("x", criteria="Good.").undecided_because == "unparseable"


def test_a_model_that_cannot_copy_the_token_may_do_without():
    """Declared by name; then the object must stand alone."""
    plain = Plain(json.dumps(NAMED))

    assert Judge(plain).evaluate_sync("x", criteria="Good.").undecided_because == "unparseable"
    result = Judge(plain, token=False).evaluate_sync("x", criteria="Good.")
    assert result.passed
    assert '"token"' not in plain.requests[-1].system + plain.requests[-1].user.rpartition("\n")[2]
    chatty = Plain(f"{json.dumps(NAMED)}\nDone.")
    assert Judge(chatty, token=False).evaluate_sync("x", criteria="Good.").undecided_because == "unparseable"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("<think>Hm, {{}} or not?</think>\n%s", None),
        ("\n <think>%s</think>", "unparseable"),
        ("<think>%s", "truncated"),
        ("<think>a</think>%s</think>", "unparseable"),
        ("I <think>so</think> %s", None),
    ],
)
def test_one_leading_think_block_is_dropped(text, because):
    """It can only remove text: what is inside is never the answer."""
    plain = Plain(lambda request: text.replace("%s", json.dumps({"token": request.token, **NAMED})))

    assert Judge(plain, reask=0).evaluate_sync("x", criteria="Good.").undecided_because == because


@pytest.mark.parametrize(
    ("reader", "reply", "outcome"),
    [("Rating: [[7]]", "So: Rating: [[9]]", "passed"), ("Rating: [[7]]", "Rating: [[2]]", "failed")],
)
def test_a_reply_form_may_be_named(reader, reply, outcome):
    """The scale is the rubric's, and the model is told the style."""
    model = ScriptedModel(reply)
    result = Judge(model, reader=reader).evaluate_sync("x", made_rubric({"name": "a"}, scale=[1, 10]))

    assert result.outcome == outcome
    assert "from 1 to 10" in model.requests[0].system


def test_a_label_passes_when_the_caller_says_so():
    """``passes`` looks at the label."""

    @dataclasses.dataclass
    class Unused:
        passed: bool

    grader = Judge(ScriptedModel("GRADE: C"), reader="GRADE: C")
    message = complaint(grader.evaluate, "x", criteria="Good.", passes=lambda x: x == "C", result_format=Unused)
    assert names(message, "'GRADE: C'", "rubric", "result_format")
    assert grader.evaluate_sync("x", criteria="Good.", passes=lambda label: label == "C").value == "C"
    assert grader.evaluate_sync("x", criteria="Good.", passes=lambda label: label == "I").outcome == "failed"


# ---------------------------------------------------------------- many


class Counting(ScriptedModel):
    """Remembers how many requests were under way at once."""

    def __init__(self, script, **more):
        super().__init__(script, **more)
        self.now = self.most = self.cut = 0
        self.slower = 0.0
        """Seconds that each request takes longer than the one before."""

    async def complete(self, request, /):
        self.now += 1
        self.delay += self.slower
        self.most = max(self.most, self.now)
        try:
            return await super().complete(request)
        except asyncio.CancelledError:
            self.cut += 1
            raise
        finally:
            self.now -= 1


def test_many_contents_are_judged_at_once_and_in_order():
    """At most ``concurrency`` at a time; the results come in the order of the contents."""

    def slow_first(request):
        return GOOD if "odd" in request.user else BAD

    model = Counting(slow_first, delay=1.0)

    async def main():
        contents = (f"{number} {'odd' if number % 2 else 'even'}" for number in range(10))
        many = Judge(model).evaluate_many(contents, criteria="Good.", concurrency=3)
        return [result.passed async for result in many], asyncio.get_running_loop().time()

    assert run_virtual(main()) == ([False, True] * 5, 4.0)
    assert model.most == 3


def test_contents_are_taken_as_they_are_needed():
    """An endless stream is fine, and a stream may be asynchronous."""
    taken = []

    async def endless():
        for number in range(10**9):
            taken.append(number)
            yield f"{number}"

    async def main():
        async with aclosing(endless()) as contents:
            many = Judge(ScriptedModel(GOOD)).evaluate_many(contents, criteria="Good.", concurrency=4)
            first = [await anext(many) for _ in range(2)]
            await many.aclose()
        return first

    assert all(result.passed for result in run_virtual(main()))
    assert len(taken) <= 6


def test_leaving_the_loop_early_cancels_what_still_runs():
    """No call is left behind."""
    model = Counting(lambda request: GOOD, delay=1.0)
    model.slower = 0.5

    async def main():
        many = Judge(model).evaluate_many(map(str, range(50)), criteria="Good.", concurrency=5)
        async for _ in many:
            break
        await many.aclose()

    run_virtual(main())
    assert (model.now, model.cut, len(model.requests)) == (0, 4, 5)


def test_a_row_brings_what_belongs_to_it():
    """Its reference, task, context and metadata; its id is the case."""
    model = ScriptedModel(GOOD)
    row = Case(id="r1", content="CONTENT", reference="REF", task="TASK", context="CTX", metadata={"k": 1})

    async def main():
        return [item async for item in Judge(model).evaluate_many([row], criteria="Good.", metadata={"run": 7})]

    (result,) = run_virtual(main())
    assert result.metadata == {"case": "r1", "k": 1, "run": 7}
    assert model.requests[0].case == "r1"
    assert all(text in model.requests[0].user for text in ("CONTENT", "REF", "TASK", "CTX"))


def test_wrong_content_ends_the_iteration_without_complaints():
    """A ``UsageError`` is the caller's; others beside it are not reported as never retrieved."""

    async def main():
        many = Judge(ScriptedModel(GOOD)).evaluate_many([b"1", b"2", b"3"], criteria="Good.")
        with pytest.raises(UsageError, match="binary"):
            await anext(many)
        del many
        gc.collect()

    run_virtual(main())


def test_closing_a_judge_closes_its_models():
    """The one it has and those that calls named."""

    class Closing(ScriptedModel):
        closed: list[str] = []  # noqa: RUF012 - shared on purpose

        async def aclose(self):
            self.closed.append(self.name)

        def named(self, name):
            return Closing(GOOD, name=name)

    async def main():
        async with Judge(Closing(GOOD, name="own")) as asked, JudgeChain([Judge(Closing(YES, name="seat"))]):
            await asked.evaluate("x", criteria="Good.", model="other")

    asyncio.run(main())
    assert sorted(Closing.closed) == ["other", "own", "seat"]
