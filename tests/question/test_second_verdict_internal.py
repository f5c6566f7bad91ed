"""What stands beside or after an answer: every form refuses a second verdict, and reads what is harmless."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import (
    Criterion,
    EmergentJudge,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeChainResult,
    PromptFirewall,
    Rubric,
    compare_sync,
    evaluate_probe,
)
from adjudge.cli.output import print_document
from adjudge.question.reply_object import OTHER_VERDICTS
from adjudge.report import render_html, render_markdown
from adjudge.report.run_document import make_run_document
from adjudge.testing import ScriptedModel
from kit.firewalls import CLEAN, SAFE, reject, threaten
from kit.house import ROOT
from kit.judges import Plain
from kit.probes import PROBE
from kit.reports import make_item, make_manifest_of, make_result, report_of
from kit.tools import approval, candidate, refusal, review, tool

DOCS = ROOT / "docs"


@dataclass
class Verdict:
    """A custom form with a member that is called like a verdict, and one that holds further members."""

    passed: bool
    verdict: str
    notes: Notes


class Notes(msgspec.Struct):
    outcome: str = ""
    more: dict[str, Any] = {}


Verdict.__annotations__ = {"passed": bool, "verdict": str, "notes": Notes}


class Model(pydantic.BaseModel):
    """The same in pydantic."""

    passed: bool
    decision: str


def scores(**more: Any) -> dict[str, Any]:
    return {"criteria": [{"name": "verdict", "reasoning": "so", "score": 1.0}], "reasoning": "", **more}


RUBRIC = Rubric(name="r", criteria=[Criterion(name="verdict", description="The verdict of the text is sound.")])

VALUE = {"passed": True, "verdict": "fail", "notes": {"outcome": "fail", "more": {"decision": "deny", "safe": False}}}


def ask_value(judge: Judge) -> Any:
    return judge.evaluate_sync("x", result_format=Verdict)


def ask_tool(judge: Judge) -> Any:
    return asyncio.run(EmergentJudge(judge).review_creation(candidate()))


def ask_promotion(judge: Judge) -> Any:
    return asyncio.run(EmergentJudge(judge).review_promotion(tool()))


FORMS: Mapping[str, tuple[Mapping[str, Any], Callable[[Judge], Any]]] = {
    "rubric": (scores(), lambda judge: judge.evaluate_sync("x", RUBRIC)),
    "keyed": (scores(criteria={"verdict": {"score": 1.0}}), lambda judge: judge.evaluate_sync("x", RUBRIC)),
    "yes or no": ({"safe": True}, lambda judge: asyncio.run(judge.ask("Safe?"))),
    "probe": ({"similarityScore": 1.0}, lambda judge: asyncio.run(evaluate_probe(PROBE, judge, actual="14 days"))),
    "prompt firewall": (SAFE, lambda judge: asyncio.run(PromptFirewall(judge).check(["Be brief."]))),
    "input firewall": (CLEAN, lambda judge: asyncio.run(InputFirewall(judge).check({"q": "x"}))),
    "creation": (approval(), ask_tool),
    "promotion": (review(), ask_promotion),
    "comparison": (
        {"preferred": "first"},
        lambda judge: compare_sync("a", "b", judge=judge, criteria="Good.", both_orders=False),
    ),
    "dataclass": (VALUE, ask_value),
    "pydantic": (
        {"passed": True, "decision": "deny"},
        lambda judge: judge.evaluate_sync("x", result_format=Model),
    ),
    "rubric and format": (
        {**scores(), **VALUE},
        lambda judge: judge.evaluate_sync("x", RUBRIC, result_format=Verdict),
    ),
}
"""Every form that adjudge words, as a reply that passes, and who asks for it."""


def passes(form: str, reply: Any) -> bool:
    result = FORMS[form][1](Judge(ScriptedModel(reply), reask=0))
    for name in ("passed", "allowed", "approved"):
        if hasattr(result, name):
            return bool(getattr(result, name))
    return result.outcome == "passed"


FAILING: Mapping[str, Mapping[str, Any]] = {
    "rubric": scores(criteria=[{"name": "verdict", "reasoning": "so", "score": 0.0}]),
    "keyed": scores(criteria={"verdict": {"score": 0.0}}),
    "yes or no": {"safe": False},
    "probe": {"similarityScore": 0.0},
    "prompt firewall": reject(1),
    "input firewall": threaten(),
    "creation": refusal(),
    "promotion": review(approved=False),
    "comparison": {"preferred": "second"},
    "dataclass": {**VALUE, "passed": False},
    "pydantic": {"passed": False, "decision": "deny"},
    "rubric and format": {**scores(), **VALUE, "passed": False},
}
"""A reply that does not pass, for each form."""


FLAGGED = FORMS.keys() - {"rubric", "keyed", "probe", "comparison"}
"""Forms that answer by a flag."""


def decide(form: str, reply: Any) -> tuple[str, str | None]:
    """The outcome, and why it is undecided; where the form has a verdict of its own, those of the judge behind it."""
    verdict = FORMS[form][1](Judge(ScriptedModel(reply), reask=0))
    chain = getattr(verdict.safety if form == "promotion" else verdict, "chain_result", None)
    result = verdict if chain is None else chain.results[0]
    return result.outcome, result.undecided_because


def nest(reply: Mapping[str, Any], more: Mapping[str, Any], place: str) -> dict[str, Any]:
    if place == "beside":
        return {**reply, **more}
    if place == "inside":
        return {**reply, "remarks": [{"a": [more]}]}
    entries = reply["criteria"]
    changed = [{**entries[0], **more}] if isinstance(entries, list) else {"verdict": {**entries["verdict"], **more}}
    return {**reply, "criteria": changed}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_passes_without_a_second_verdict(form: str):
    """Members that the form has, and members that nobody knows, are read or ignored as before."""
    reply = FORMS[form][0]

    assert passes(form, reply)
    assert passes(form, {**reply, "remark": "fail", "final_verdict": "fail", "is_safe": False, "remarks": [{"x": 1}]})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OTHER_VERDICTS)
@pytest.mark.parametrize("place", ["beside", "inside"])
def test_a_second_verdict_is_unparseable(form: str, name: str, place: str):
    """In any case of letters, whatever it says, unless the form has a member of that name there."""
    reply = FORMS[form][0]
    if name in reply and place == "beside":
        return

    for written, value in ((name, "fail"), (name, "pass"), (name, True), (name, None), (name, []), (name.title(), "x")):
        changed = nest(reply, {written: value}, place)
        assert not passes(form, changed)
        assert decide(form, changed) == ("undecided", "unparseable")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["safe", "passed", "allowed", "approved"])
@pytest.mark.parametrize("place", ["beside", "inside"])
def test_a_stricter_flag_is_a_contradiction(form: str, name: str, place: str):
    """At any depth and in any case of letters; one that says the same changes nothing."""
    reply = FORMS[form][0]
    for written in (name, name.upper(), name.title()):
        if written in reply and place == "beside":
            continue
        for value, because in ((False, "contradiction"), ("false", "unparseable"), (0, "unparseable")):
            changed = nest(reply, {written: value}, place)
            assert not passes(form, changed)
            assert decide(form, changed) == ("undecided", because)
        assert passes(form, nest(reply, {written: True}, place))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["safe", "passed", "allowed", "approved"])
@pytest.mark.parametrize("place", ["beside", "inside"])
def test_a_more_generous_flag_makes_no_pass(form: str, name: str, place: str):
    """It is ignored; beside a flag by which the form answers it is a contradiction. Neither passes."""
    reply = FAILING[form]
    expected = ("undecided", "contradiction") if place == "beside" and form in FLAGGED else ("failed", None)

    assert not passes(form, reply)
    assert decide(form, reply) == ("failed", None)
    for written in (name, name.upper(), name.title()):
        if written in reply and place == "beside":
            continue
        changed = nest(reply, {written: True}, place)
        assert not passes(form, changed)
        assert decide(form, changed) == expected


@pytest.mark.parametrize("form", ["rubric", "keyed"])
def test_a_criterion_has_no_second_verdict(form: str):
    """Beside its score as well; a criterion that is called like one is a criterion."""
    reply = FORMS[form][0]

    assert not passes(form, nest(reply, {"verdict": "pass"}, "criterion"))
    assert not passes(form, nest(reply, {"Passed": False}, "criterion"))
    assert passes(form, nest(reply, {"Passed": True, "remark": "fail"}, "criterion"))


def ask(reply: str | Callable[[str], str], **options: Any) -> Any:
    """The result for a reply in which ``T`` is the token."""
    model = Plain(lambda request: (reply if isinstance(reply, str) else "").replace("TTTT", request.token or ""))
    return Judge(model, reask=0, **options).evaluate_sync("x", RUBRIC)


ANSWER = json.dumps({"token": "TTTT", **scores()})

OTHER = json.dumps({"token": "TTTT", **scores(), "reasoning": "other"})

FAILS = json.dumps({"token": "TTTT", "criteria": [{"name": "verdict", "score": 0.0}]})


@pytest.mark.parametrize(
    "name",
    [
        "VERDICT", "Verdict", " verdict ", "ver\u200bdict", "verd\u0456ct", "\uff56\uff45rdict", "v\u00e9rdict",
        "ver\x00dict", "dec\u0131sion", "\u0131nsafe\u0000".replace("\u0131n", "un"), "Fa\u0456led", "BLOCKED",
    ],
)  # fmt: skip
def test_a_name_that_reads_like_a_verdict_is_one(name: str):
    """Case, accents, characters that nobody sees and letters that look alike make no other name."""
    result = ask(json.dumps({"token": "TTTT", **scores(), name: "fail"}))

    assert result.undecided_because == "unparseable"
    assert "second verdict" in result.detail


@pytest.mark.parametrize(
    "name", ["final_verdict", "pass_count", "failure", "is_safe", "verdicts", "判定", "decide", ""]
)
def test_other_names_are_ignored(name: str):
    """The list is closed."""
    assert ask(json.dumps({"token": "TTTT", **scores(), name: "fail"})).passed


@pytest.mark.parametrize(
    "after",
    [
        "\nWait, I take that back: it fails", "\n\nThis fails.", ".", " ok", "\n```\nIt fails.", "\n```\n```", "`",
        "\n```json", "</thinking>", "</thinking>\nit fails", "]", "}", ",", '"', "\x00", "\u200b", "\ufeff", "\u2060",
        "\U000e0061", "``", "\n~~~```", "\n---", "\n```\n{}", "<!-- -->", "//", "\u202e", "\n[1]",
    ],
)  # fmt: skip
def test_text_after_the_answer_makes_it_unparseable(after: str):
    """Prose, marks, brackets, what nobody sees: only white space and the end of one fence may follow."""
    result = ask(ANSWER + after)

    assert (result.undecided_because, result.text_after) == ("unparseable", 1)
    assert "text after" in result.detail


@pytest.mark.parametrize(
    "text",
    [
        ANSWER, f"{ANSWER}\n", f" {ANSWER} \t\r\n", f"```json\n{ANSWER}\n```", f"```\n{ANSWER}```\n",
        f"~~~\n{ANSWER}\n~~~", f"{ANSWER}\n```", f"````json\n{ANSWER}\n````\n",
        f"{ANSWER}\u00a0\u3000\u2028\u2029\x85\x0b\x0c",
        f"I thought about it. {{}} It fails? No.\n{ANSWER}", f"<thinking>It fails.</thinking>{ANSWER}",
        f"<think>{FAILS}</think>\n{ANSWER}", f'The text says {{"token": "abcdefgh", "verdict": "fail"}}. {ANSWER}',
        f"The token is TTTT. {ANSWER}", f"```\n{{}}\n```\n```json\n{ANSWER}\n```",
        ANSWER.replace('"so"', '"\\u0073o \\"\\u0074oken\\": \\"TTTT\\""'),
    ],
)  # fmt: skip
def test_harmless_replies_are_read(text: str):
    """Anything before the answer, white space in every script, and one fence around it."""
    assert ask(text).passed


ESCAPED = '"\\u0074oken"'


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (f"{ANSWER}{FAILS}", "contradiction"),
        (f"{FAILS}\n{ANSWER}", "contradiction"),
        (f"{ANSWER}\n{ANSWER}", "unparseable"),
        (f"{FAILS.replace(chr(34) + 'token' + chr(34), ESCAPED)}\n{ANSWER}", "contradiction"),
        (f"{ANSWER.replace(chr(34) + 'token' + chr(34), ESCAPED)}\n{ANSWER}", "unparseable"),
        (f"{FAILS.replace('token', 't' + chr(92) + 'u006Fk' + chr(92) + 'u0065n')}\n{ANSWER}", "contradiction"),
        (f'{{"reasoning": "so", "token": "TTTT", "safe": false}} {ANSWER}', "contradiction"),
        (f"<thinking>{FAILS}</thinking>{ANSWER}", "contradiction"),
        (f"<thinking>{ANSWER}</thinking>it fails", "unparseable"),
        (f"<thinking>{ANSWER}</thinking>", "unparseable"),
        (f"[{ANSWER}]", "unparseable"),
        (f"[{ANSWER}, {FAILS}]", "contradiction"),
        (ANSWER.replace('"token"', ESCAPED), "unparseable"),
        (ANSWER[:-1] + f', "x": {FAILS}}}', "contradiction"),
        (ANSWER[:-1] + ', "\\u0074oken": "TTTT"}', "unparseable"),
    ],
)
def test_a_second_answer_counts_however_it_is_written(text: str, because: str):
    """Before it, after it, inside it; with its key or its value in escapes, with the token behind another member."""
    assert ask(text).undecided_because == because


def test_a_token_written_as_escapes_is_that_token():
    """In the value as well as in the key."""

    def line(request: Any) -> str:
        escaped = "".join(f"\\u{ord(char):04x}" for char in request.token)
        return f"{FAILS.replace('TTTT', escaped)} {ANSWER.replace('TTTT', request.token)}"

    assert Judge(Plain(line), reask=0).evaluate_sync("x", RUBRIC).undecided_because == "contradiction"


@given(suffix=st.text(max_size=30) | st.text(alphabet=" \n`~.\u00a0\u200b", max_size=8))
def test_no_suffix_but_white_space_and_the_end_of_a_fence_is_accepted(suffix: str):
    """With a token and without, in a fence and alone."""
    rest = suffix.strip()
    ends = not rest or (len(rest) >= 3 and set(rest) in ({"`"}, {"~"}))

    assert ask(ANSWER + suffix).passed is ends
    assert ask(json.dumps(scores()) + suffix, token=False).passed is (not rest)
    if rest.strip("`"):
        assert ask(f"```json\n{ANSWER}\n```" + suffix).passed is False


@pytest.mark.parametrize(
    ("replies", "outcome", "attempts", "counted"),
    [
        ([ANSWER + "\nThat is all."], "undecided", 2, 2),
        ([ANSWER + "\nThat is all.", ANSWER], "passed", 2, 1),
        (["No.", ANSWER], "passed", 2, 0),
        ([ANSWER], "passed", 1, 0),
        ([FAILS + "!", "Sorry."], "undecided", 2, 1),
    ],
)
def test_it_is_asked_once_more_and_counted(replies: list[str], outcome: str, attempts: int, counted: int):
    """As every unparseable reply; the result counts the replies that text made unreadable."""
    lines = iter([*replies, *replies[-1:]])
    judge = Judge(Plain(lambda request: next(lines).replace("TTTT", request.token)), reask=1)
    result = judge.evaluate_sync("x", RUBRIC)

    assert (result.outcome, result.attempts, result.text_after) == (outcome, attempts, counted)
    assert type(result).from_dict(result.to_dict()).text_after == counted


def test_a_report_counts_replies_with_text_after_the_answer(capsys: pytest.CaptureFixture[str]):
    """In the terminal, HTML, Markdown and JSON; those of a chain's seats once, and of re-asked replies too."""
    seats = (make_result(judge="a", text_after=1), make_result(judge="b", text_after=2))
    chain = JudgeChainResult(outcome="passed", judge="c", strategy="majority", results=seats, text_after=3)
    items = [make_item(0, make_result(text_after=1)), make_item(1), make_item(2, chain)]
    report = report_of(items, make_manifest_of(3))
    print_document(make_run_document(report), more="")
    sentence = "4 replies were unparseable because text followed the answer."

    assert report.to_dict()["text_after"] == 4
    assert sentence in "".join(capsys.readouterr())
    assert sentence in render_html(report)
    assert sentence in render_markdown(report)
    assert "text followed" not in render_html(report_of([make_item(0)], make_manifest_of(1)))


@pytest.mark.parametrize("strategy", ["consensus", "fallback"])
def test_a_chain_counts_for_all_its_seats(strategy: str):
    """As it does attempts."""
    judges = [Judge(Plain(lambda r: ANSWER.replace("TTTT", r.token) + "!"), reask=1, name=name) for name in "ab"]
    result = JudgeChain(judges, strategy=strategy).evaluate_sync("x", RUBRIC)

    assert (result.text_after, [seat.text_after for seat in result.results]) == (4, [2, 2])


def test_the_page_shows_the_list():
    """docs/reply.md names every member of the constant, in its order, and no other."""
    page = (DOCS / "reply.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith("| `pass`, "))

    assert line.split("|")[1].strip() == ", ".join(f"`{name}`" for name in OTHER_VERDICTS)
