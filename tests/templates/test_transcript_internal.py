"""A transcript as what is shown of it: what is folded or cut is counted, and nothing is left out silently."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adjudge import Gate
from adjudge.agents import AgentCall, AgentRun, FileChange, Step
from adjudge.agents.conversation import Conversation, read_conversation
from adjudge.report.html import make_report_environment
from adjudge.report.judgement import list_findings
from adjudge.result import JudgeChainResult, JudgeResult, PartResult
from adjudge.templates.call_values import Finding, PlacedFinding
from adjudge.templates.judged_text import LONGEST_PLAIN, make_judged_text
from adjudge.templates.opened_parts import MOST_DRAWN, Opened, read_opened
from adjudge.templates.transcript_values import FoldRow, JudgedText, StepRow, TranscriptView
from adjudge.templates.transcript_view import LONGEST_SHOWN, make_transcript_view
from kit.growth import measure_growth
from kit.markup import Reader

KEY = "AKIA" + "IOSFODNN7EXAMPLX"

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>\u202egnp\u200b{{ 7 * 7 }}"


def make_run(calls: int, *, failed: tuple[int, ...] = (), result: str = "ok", **more: Any) -> AgentRun:
    """A run of so many calls after one message, with an answer at its end."""
    steps = [Step(role="user", text="Make the test pass.")]
    steps += [
        Step(
            role="assistant",
            turn=number,
            call=AgentCall(
                tool="Bash",
                arguments={"command": f"ls {number}"},
                call_id=f"c{number}",
                result=None if number in failed else result,
                error="exit 1" if number in failed else None,
            ),
        )
        for number in range(1, calls + 1)
    ]
    return AgentRun(steps=(*steps, Step(role="assistant", turn=calls + 1, text="Done.")), answer="Done.", **more)


def view_run(run: AgentRun, **options: Any) -> TranscriptView:
    return make_transcript_view(Conversation(run=run, kind="run"), **options)


def write(run: AgentRun) -> str:
    return json.dumps(run.to_dict(), ensure_ascii=False, indent=2)


def draw(value: TranscriptView | JudgedText, **options: Any) -> str:
    """A value as HTML, in the way of all pages and reports."""
    kind = "judged_text" if isinstance(value, JudgedText) else "transcript"
    source = f"{{% import 'transcript.html' as parts %}}{{{{ parts.{kind}(value, **options) }}}}"
    return make_report_environment().from_string(source).render(value=value, options=options)


def check_rules(content: Any) -> JudgeResult:
    """The result of a gate that has two rules and no judge."""
    gate = Gate("rules", rules=["secrets", {"commands": {"never": ["rm -rf *"]}}])
    result = gate.check_sync(content).result
    assert result is not None
    return result


def list_numbers(view: TranscriptView) -> list[int]:
    """The steps that are shown."""
    return [row.number for row in view.rows if isinstance(row, StepRow)]


def list_folds(view: TranscriptView) -> list[tuple[int, int]]:
    return [(row.first, row.last) for row in view.rows if isinstance(row, FoldRow)]


# ---------------------------------------------------------------- what is folded


def test_a_short_transcript_is_shown_whole():
    """Nobody opens what can be read at once."""
    view = view_run(make_run(20))

    assert (list_numbers(view), view.unshown_parts) == (list(range(1, 23)), ())


def test_of_a_long_one_both_ends_errors_and_findings_are_shown():
    """The rest is folded, counted, and named as not shown."""
    finding = Finding(state="failed", word="rule commands", text="rm -rf is under never")
    found = [PlacedFinding(place="calls[68]", finding=finding), PlacedFinding(place="arguments.x", finding=finding)]
    view = view_run(make_run(100, failed=(37,)), findings=found, opened=Opened(path="/x"))

    assert list_numbers(view) == [1, 2, 38, 70, 100, 101, 102]
    assert list_folds(view) == [(3, 37), (39, 69), (71, 99)]
    assert view.unshown_parts == ("95 folded steps",)
    assert (view.errors, view.found) == ((38,), (70,))
    assert "rm -rf is under never" in Reader(draw(view)).text


def judge_parts(*scores: float | None) -> JudgeResult:
    """The result of a judge that was asked about each call, and about the second turn."""
    parts = [
        PartResult(
            part=f"call {number}", criterion="on task", score=score, passed=(score or 0) >= 0.5, reasoning="Why."
        )
        for number, score in enumerate(scores, 1)
    ]
    turn = PartResult(part="turn 2", criterion="honest", score=0.25, passed=False, reasoning="It says otherwise.")
    odd = [replace(turn, part=name) for name in ("call 0", "call 9999", "turn x", "steps[0]", "call 1\n")]
    return JudgeResult(outcome="failed", judge="careful", parts=(*parts, turn, *odd))


def test_the_score_of_each_call_and_turn_stands_at_its_step():
    """With the reason; one that is too low is not folded, and one that is good does not keep its step open."""
    scores = [0.9] * 99
    scores[68] = 0.1
    view = view_run(make_run(99), findings=list_findings(judge_parts(*scores)), opened=Opened(path="/x"))
    rows = {row.number: row for row in view.rows if isinstance(row, StepRow)}

    assert view.found == (3, 70)
    assert sorted(rows) == [1, 2, 3, 70, 99, 100, 101]
    assert [(one.state, one.word, one.text) for one in rows[70].findings] == [("failed", "0.10 on task", "Why.")]
    assert [(one.state, one.word) for one in rows[2].findings] == [("passed", "0.90 on task")]
    assert [one.word for one in rows[3].findings] == ["0.90 on task", "0.25 honest"]
    assert (rows[2].is_marked, rows[3].is_marked) == (False, True)
    assert "0.10 on task" in Reader(draw(view)).text


def test_of_a_chain_the_scores_of_each_seat_stand_at_the_step():
    """With the name of the judge; a part without a score is undecided."""
    seat = judge_parts(None)
    result = JudgeChainResult(outcome="failed", judge="chain", strategy="consensus", results=(seat,))
    view = view_run(make_run(1), findings=list_findings(result))
    rows = [row for row in view.rows if isinstance(row, StepRow)]

    assert [(one.state, one.word) for one in rows[1].findings] == [("undecided", "careful: on task")]


LONG_RUNS = {
    "many steps": make_run(4_000),
    "one step with many arguments": AgentRun(
        steps=(Step(role="assistant", call=AgentCall(tool="f", arguments={f"a{n}": "v" * 30 for n in range(9_000)})),)
    ),
    "long names": AgentRun(
        steps=(
            Step(role="assistant", call=AgentCall(tool="t" * 90_000, arguments={"n" * 90_000: 1}, agent="a" * 9_000)),
        )
    ),
    "one long text": AgentRun(steps=(Step(role="user", text="word " * 50_000),)),
}


@pytest.mark.parametrize("name", LONG_RUNS)
def test_of_a_long_run_only_so_much_is_drawn_and_the_rest_is_counted(name: str):
    """Whatever its address opens; nothing is left out silently."""
    for opened in (Opened(path="/x"), read_opened("/x", "1.1-9999999")):
        view = make_judged_text(write(LONG_RUNS[name]), "context", opened=opened)
        page = draw(view)

        assert len(page) < 6 * MOST_DRAWN
        assert view.unshown_parts


def test_a_long_text_is_shown_in_windows_that_are_its_address():
    """The first with everything opened; each has the addresses beside it, which keep what is opened."""
    text = "".join(f"{number}\n" for number in range(60_000))
    assert make_judged_text(text, "task", opened=Opened(path="/x")).window is None
    first = make_judged_text(text, "task", opened=Opened(path="/x", whole=True)).window
    assert first is not None
    assert (first.number, first.count, first.before) == (1, 4, "")
    assert first.after == "/x?whole=true&part=task.2#part-task"

    opened = [
        read_opened("/x", "2.3-4", query=(("json", "true"),), part=f"task.{number}") for number in (1, 2, 3, 4, 99)
    ]
    views = [make_judged_text(text, "task", opened=each) for each in opened]
    shown = [view.parts[0].view.text.passages[0].text for view in views]  # type: ignore[union-attr] - a plain text
    assert "".join(shown[:4]) == text
    assert shown[4] == shown[3], "behind the end is the last one"
    assert views[1].window is not None
    assert views[1].window.before == "/x?json=true&open=2.3-4&part=task.1#part-task"
    assert views[1].unshown_parts == (f"{len(text) - MOST_DRAWN:,} characters of the task",)


def test_a_fold_says_what_is_in_it_and_where_it_is_opened():
    """With the calls by tool, and an address that keeps what is open already."""
    view = view_run(make_run(100), opened=read_opened("/x", "1.3-5", query=(("json", "true"),)))
    fold = next(row for row in view.rows if isinstance(row, FoldRow))

    assert (fold.first, fold.last, fold.calls) == (6, 99, (("Bash", 94),))
    assert fold.path == "/x?json=true&open=1.3-5,1.6-99#t1-6"


def test_what_is_opened_is_shown_and_with_all_of_it_open_nothing_is_missing():
    """One fold after the other, or everything at once."""
    run = make_run(100)
    opened = read_opened("/x", "1.3-50,2.51-99")
    assert list_folds(view_run(run, opened=opened)) == [(51, 99)]
    assert list_folds(view_run(run, opened=opened, key=2)) == [(3, 50)]

    for every in (read_opened("/x", "1.3-50,1.51-99"), Opened(path="/x", whole=True)):
        view = view_run(run, opened=every)
        assert (list_numbers(view), view.unshown_parts) == (list(range(1, 103)), ())


@pytest.mark.parametrize(
    "text", ["", ",", "1", "1.", "1.a-b", "1.-", "1.5-3", "1.999999999-1", "9.1-2", "1.-5-7", "...", "1.3-99999999"]
)
def test_an_address_that_says_nothing_opens_nothing(text: str):
    """Whoever writes the address cannot make the page fail, or take long."""
    assert list_folds(view_run(make_run(100), opened=read_opened("/x", text))) == [(3, 99)]


def test_a_page_never_makes_an_address_too_long_for_itself():
    """Then its links open everything."""
    opened = read_opened("/x", ",".join(f"1.{number}-{number}" for number in range(1, 301)))
    assert opened.make_link(1, 400, 500) == "/x?whole=true"


def test_in_a_file_folded_steps_are_there_and_closed():
    """A report has no server that could open them."""
    view = view_run(make_run(100))
    page = draw(view)

    assert view.unshown_parts == ()
    assert "ls 50" in Reader(page).text
    assert ("details", ()) in Reader(page).elements


def test_of_very_long_runs_a_file_says_what_it_does_not_hold():
    """Two thousand cases with thousands of steps each would be no file."""
    view = view_run(make_run(600))

    assert view.unshown_parts == ("folded steps 3 to 599",)
    assert "597 steps are not shown here" in Reader(draw(view)).text


# ---------------------------------------------------------------- what is cut


def test_long_texts_are_cut_and_counted_until_they_are_opened():
    """A message, a result, and what comes after much."""
    run = make_run(2, result="r" * 5_000)
    view = view_run(run, opened=Opened(path="/x"))

    assert view.unshown_parts == ("8,800 characters of 2 steps",)
    assert Reader(draw(view)).text.count("not shown here: 4,400 characters") == 2
    assert view_run(run, opened=read_opened("/x", "1.2-3")).unshown_parts == ()
    assert view_run(make_run(30, result="r" * 500)).unshown_parts == ()
    assert view_run(make_run(39, result="r" * 590)).unshown_parts != (), "more than all of it may have at first"


def test_two_megabytes_are_cut_to_what_can_be_read():
    """In a message, in an argument, and in a plain text."""
    text = "a b\n" * 500_000
    messages = json.dumps([{"role": "user", "content": text[:1_900_000]}, {"role": "assistant", "content": "No."}])
    for shown in (messages, text, json.dumps([text[:1_000_000]]), json.dumps({"a": [{"b": text[:1_000_000]}]})):
        view = make_judged_text(shown, "context", opened=Opened(path="/x"))
        assert view.unshown_parts
        assert len(draw(view)) < 10 * max(LONGEST_PLAIN, LONGEST_SHOWN)


# ---------------------------------------------------------------- what the judge quoted, and what it saw


def test_quotations_are_marked_in_the_step_that_holds_them():
    """As they stand there, or as JSON writes them; a step that is quoted is not folded."""
    run = make_run(100, result="line one\nline two")
    view = view_run(run, quotations=["ls 50", "one\\nline", "not there", "Done."], opened=Opened(path="/x"))

    assert dict(view.numbers) == {"ls 50": 1, "one\\nline": 2, "Done.": 4}
    assert (view.missing, view.unshown) == (("not there",), ())
    assert 51 in list_numbers(view)
    assert draw(view).count("<mark") == 3


def test_what_rules_found_stands_at_the_step_that_it_is_about():
    """A secret in the result of a call, a command that is under ``never``, and the third of some messages."""
    steps = [*make_run(60).steps]
    steps[30] = Step(
        role="assistant", turn=30, call=AgentCall(tool="Bash", arguments={"command": "rm -rf /"}, result=KEY)
    )
    run = AgentRun(steps=tuple(steps))
    view = view_run(run, findings=list_findings(check_rules(run)), opened=Opened(path="/x"))
    assert (view.found, 31 in list_numbers(view)) == ((31,), True)
    assert "rule commands" in Reader(draw(view)).text

    messages = [{"role": "user", "content": "Hi"}] * 2 + [{"role": "user", "content": f"Key: {KEY}"}]
    talk = read_conversation(messages)
    assert talk is not None
    assert make_transcript_view(talk, findings=list_findings(check_rules(messages))).found == (3,)


def test_what_was_left_out_for_the_judge_is_said_at_the_step():
    """A run has a budget, and a score says nothing of what it left out."""
    view = view_run(make_run(300, result="r" * 900), opened=Opened(path="/x"))

    assert view.left_out.startswith("Left out for the judge")
    assert "left out for the judge" in Reader(draw(view)).text
    assert view_run(make_run(3)).left_out == ""
    assert view_run(make_run(300, result="r" * 900), names_unseen=False).left_out == ""


def test_the_rest_of_a_run_is_shown_above_its_steps():
    """How it ended, what it changed, and why it is not complete."""
    files = (FileChange(path="app.py", kind="modified", diff="-a\n+b"), FileChange(path=".env", kind="deleted"))
    run = make_run(3, files=files, complete=False, problems=("line 7 cannot be read",), outcome="failed", exit_code=3)
    text = Reader(draw(view_run(run))).text

    for words in ("failed, exit 3, not complete", "line 7 cannot be read", "2 files changed", "app.py", "+b", ".env"):
        assert words in text


def test_a_run_that_is_not_complete_says_so_without_a_reason_too():
    """It would otherwise look like one that did nothing else."""
    assert "finished, not complete" in Reader(draw(view_run(make_run(3, complete=False)))).text


# ---------------------------------------------------------------- task and context


def test_a_context_of_several_parts_shows_each_as_what_it_is():
    """A conversation as a transcript, passages below each other, and the rest in rows."""
    talk = [{"role": "user", "content": "Hello"}]
    text = json.dumps({"conversation": talk, "passages": ["First.", "Second."], "limit": 1.50})
    view = make_judged_text(text, "context")

    assert [(part.name, part.view.kind) for part in view.parts] == [
        ("conversation", "transcript"),
        ("other members", "rows"),
    ]
    shown = Reader(draw(view)).text
    assert all(words in shown for words in ("Hello", "First.", "Second.", "1.5"))


@pytest.mark.parametrize(
    "text", ["plain", "{broken", '{"a": 1, "a": 2}', "[]", "{}", "null", "[" * 300 + "]" * 300, '"quoted"']
)
def test_every_other_text_is_shown_letter_for_letter(text: str):
    """What cannot be read as one value is a text."""
    view = make_judged_text(text, "task")

    assert "".join(Reader(draw(view)).text.split()).endswith("".join(text.split())) or view.parts[0].view.kind == "rows"
    assert view.unshown_parts == ()


def test_a_name_that_stands_twice_is_no_transcript():
    """Which of two contents a program takes is not known, so both are shown."""
    text = '[{"role": "user", "content": "pay nothing", "content": "pay all"}]'
    shown = Reader(draw(make_judged_text(text, "context"))).text

    assert "pay nothing" in shown
    assert "pay all" in shown


# ---------------------------------------------------------------- attacks


def make_hostile() -> list[str]:
    """Texts with an attack in every place that somebody else can write."""
    call = {
        "id": HOSTILE,
        "type": "function",
        "function": {"name": HOSTILE, "arguments": json.dumps({HOSTILE: HOSTILE})},
    }
    messages = [
        {"role": HOSTILE, "content": HOSTILE, HOSTILE: HOSTILE},
        {"role": "assistant", "content": [{"type": HOSTILE, "text": HOSTILE}], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE},
    ]
    run = AgentRun(
        steps=(
            Step(role="user", text=HOSTILE),
            Step(
                role="assistant",
                call=AgentCall(tool=HOSTILE, arguments={HOSTILE: [HOSTILE]}, error=HOSTILE, agent=HOSTILE),
            ),
            Step(role="assistant", call=AgentCall(tool="x", arguments=HOSTILE, result=HOSTILE)),
        ),
        answer=HOSTILE + "!",
        files=(FileChange(path=HOSTILE, kind="added", diff=HOSTILE),),
        complete=False,
        problems=(HOSTILE,),
        metadata={HOSTILE: HOSTILE},
    )
    return [
        json.dumps(messages),
        write(run),
        HOSTILE,
        json.dumps([HOSTILE]),
        json.dumps({HOSTILE: messages, "b": {HOSTILE: 1}}),
    ]


@pytest.mark.parametrize("place", range(5))
def test_nothing_in_a_transcript_is_html_or_turns_the_text(place: int):
    """Neither tags nor templates nor characters that nobody sees get through, whatever holds them."""
    page = draw(make_judged_text(make_hostile()[place], "context", opened=Opened(path="/x", whole=True)), open=True)
    read = Reader(page)

    assert not {"script", "img"} & {tag for tag, _ in read.elements}
    assert all(not name.startswith("on") for _, names in read.elements for name in names)
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "{{ 7 * 7 }}" in read.text
    assert "U+202E" in page or "·" in page


def test_everything_that_is_nested_deeply_is_shown_and_takes_no_recursion():
    """Two hundred levels, of which a page shows a few as rows and the rest as JSON."""
    deep: Any = "bottom"
    for _ in range(190):
        deep = {"a": deep}
    view = make_judged_text(json.dumps({"talk": [{"role": "user", "content": deep}], "more": deep}), "context")

    assert "bottom" in Reader(draw(view)).text


@pytest.mark.parametrize("whole", [False, True], ids=["folded", "with every step"])
def test_what_a_page_of_steps_takes_grows_with_their_number_alone(whole: bool):
    """Four times the steps take four times as long, and not sixteen times."""
    texts = {n: write(make_run(n, failed=tuple(range(1, n, 50)), result="x\n" * 100)) for n in (250, 1_000)}
    opened = Opened(path="/x", whole=whole)

    growth = measure_growth(lambda n: draw(make_judged_text(texts[n], "context", opened=opened), open=True), 250)

    assert growth < 8


def test_members_beside_the_steps_that_are_not_drawn_are_counted():
    """Of a long list, of one text that stands for many parts, and where there is no room for any of them."""
    many = [{"role": "user", "content": "Hi", **{f"m{number}": "x" for number in range(60)}}]
    listed = json.dumps([{"role": "user", "content": "Hi", "K" * 5_000: list(range(1_000, 2_000))}])
    drawn = json.dumps([{"role": "user", "content": "Hi" * MOST_DRAWN, **many[0], "more": "say yes"} for _ in range(3)])

    for text, unshown in (
        (json.dumps(many), "10 members beside the steps of the context"),
        (listed, "5,400 characters of the context"),
    ):
        assert make_judged_text(text, "context", opened=Opened(path="/x")).unshown_parts == (unshown,)
        assert make_judged_text(text, "context", opened=Opened(path="/x", whole=True)).unshown_parts == ()
    conversation = read_conversation(json.loads(drawn))
    assert conversation is not None
    view = make_transcript_view(conversation, opened=Opened(path="/x", whole=True), most_drawn=100)
    assert (view.beside, view.beside_total) == ((), len(conversation.beside))
    assert f"{view.beside_total:,} members beside the steps" in view.unshown_parts
    assert f"{view.beside_total:,} members" in draw(view)


def test_a_long_name_beside_the_steps_takes_no_more_room_than_is_drawn():
    """Its rest is counted, as that of every name is."""
    conversation = read_conversation([{"role": "user", "content": "Hi", "K" * 5_000: "say yes"}])
    assert conversation is not None

    view = make_transcript_view(conversation, most_drawn=MOST_DRAWN)

    assert [(len(place), text.rest) for place, text in view.beside] == [(500, 0)]
    assert view.unshown_parts == ("4,511 characters",)


def test_what_a_source_added_to_a_run_is_counted_where_it_is_not_shown():
    """As members of messages are."""
    run = make_run(1, metadata={f"m{number}": "x" for number in range(60)})

    assert "10 members" in draw(view_run(run))
