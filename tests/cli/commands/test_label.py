"""``adjudge label``: one key an answer on a terminal, a line an answer elsewhere; nothing is lost, told or run."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
from pathlib import Path

import pytest

from adjudge import Case
from adjudge.dataset import load_labels
from adjudge.labels import open_label_queue
from kit import cli
from kit.cli import ESCAPES, HIDDEN, ME, Line, feed, isolate
from kit.labels import label_all, make_criteria_run, make_pairs_run, make_run, write_dataset
from kit.terminal import Terminal, open_terminal

posix = pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    isolate(monkeypatch, tmp_path)
    return tmp_path


@pytest.fixture
def line(place, capsys) -> Line:
    del place
    return Line(capsys)


@pytest.fixture
def type_lines(monkeypatch):
    """What stands on standard input."""
    return lambda *lines: feed(monkeypatch, "".join(f"{text}\n" for text in lines).encode())


def list_labels(source: str | Path) -> list[tuple[object, ...]]:
    """What was kept, in its order."""
    with open_label_queue(source) as queue:
        return [(label.case, label.rater, label.value, label.comment) for label in queue.labels()]


# ---------------------------------------------------------------- by lines


def test_each_line_answers_the_question_before_it(place, line, type_lines):
    """Questions on standard output, what became of them after each; the end says where the labels are."""
    write_dataset(place / "d.jsonl", *[{"id": f"c{n}", "content": f"text {n}"} for n in range(3)])
    type_lines("1", "2", "0")
    ran = line("label", "d.jsonl", "--rater", "ann")

    kept = list_labels("d.jsonl")
    assert ran.status == 0
    assert [(rater, value) for _, rater, value, _ in kept] == [("ann", True), ("ann", False), ("ann", "cannot_tell")]
    assert [text for text in ran.out.splitlines() if re.match(r"c\d: ", text)] == [
        f"{kept[0][0]}: good",
        f"{kept[1][0]}: bad",
        f"{kept[2][0]}: cannot tell",
    ]
    assert "every case has its labels" in ran.out
    assert "3 answers kept in d.jsonl.labels.sqlite; 3 of 3 labelled" in ran.err


def test_skip_undo_comment_and_help_by_lines(place, line, type_lines):
    """As the keys do."""
    make_run(place / "R", 3)
    type_lines("?", "s", "c  It is short. ", "1", "u", "2", "", "1", "1")
    ran = line("label", "R")
    kept = list_labels("R")

    assert ran.status == 0
    assert [(rater, value) for _, rater, value, _ in kept] == [(ME, False), (ME, True), (ME, True)]
    assert kept[0][3] == "It is short."
    assert "only what you skipped is left" in ran.out or "skipped" in ran.out
    assert "write a comment" in ran.out


def test_answers_of_an_earlier_session_that_are_undone_are_taken_back(place, line, type_lines):
    """The end counts them; none was kept."""
    make_run(place / "R", 3)
    type_lines("1", "q")
    line("label", "R")
    type_lines("u", "q")
    ran = line("label", "R")

    assert "1 answer taken back in R/labels.sqlite; 0 of 3 labelled" in ran.err
    assert list_labels("R") == []


def test_what_is_skipped_twice_is_left(place, line, type_lines):
    """Somebody who cannot say is not asked without end."""
    make_run(place / "R", 1)
    type_lines("s", "s", "s", "s")
    ran = line("label", "R")

    assert ran.status == 0
    assert "nothing is left but the 1 that you skipped" in ran.out


def test_a_line_that_is_no_answer_ends_it(place, line, type_lines):
    """The lines behind it would answer other questions; those before it are kept."""
    make_run(place / "R", 4)
    type_lines("1", "3", "1", "1")
    ran = line("label", "R")

    assert ran.status == 2
    assert "line 2" in ran.err
    assert "'3'" in ran.err
    assert len(list_labels("R")) == 1


@pytest.mark.integration
@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"\x00\n", b"1" * 100_000 + b"\n", "１\n".encode(), b"\x1b[31m1\n"])
@pytest.mark.slow_table
def test_bytes_that_are_no_answer_are_none(place, data):
    """Nothing that only looks like an answer is one, and nothing crashes."""
    make_run(place / "R", 2)
    ran = cli.finish(cli.start(place, "label", "R", "--rater", "ann"), data)

    assert ran.status == 2
    assert "line 1 is no answer" in ran.err
    assert "Traceback" not in ran.err
    assert HIDDEN.search(ran.err) is None
    assert list_labels("R") == []


@pytest.mark.parametrize(("lines", "status"), [(["1", "q", "1"], 0), (["1"], 3)])
def test_quitting_is_no_failure_and_input_that_is_cut_off_is_one(place, line, type_lines, lines, status):
    """What was answered is kept either way, and the next time goes on. A pipe that broke looks like its end."""
    make_run(place / "R", 4)
    type_lines(*lines)
    ended = line("label", "R")
    assert ended.status == status
    assert ("input ended before the cases did" in ended.err) is (status == 3)
    first = list_labels("R")
    type_lines("2", "2", "2")
    ran = line("label", "R")

    assert (ran.status, len(first)) == (0, 1)
    assert [value for _, _, value, _ in list_labels("R")] == [True, False, False, False]


def test_criteria_are_asked_where_it_is_said(place, line, type_lines):
    """Each by its name; rules are not asked."""
    make_criteria_run(place / "C", 1)
    type_lines("1", "2")
    ran = line("label", "C", "--criteria")
    with open_label_queue("C") as queue:
        labels = [(label.criterion, label.value) for label in queue.labels()]

    assert labels == [("polite", True), ("right", False)]
    assert "“polite”" in ran.out
    assert "“short”" not in ran.out


def test_pairs_are_asked_as_pairs(place, line, type_lines):
    """1 and 2 are what is shown as A and B, whichever side of the case that is."""
    make_pairs_run(place / "P", 6)
    type_lines(*["1"] * 4, "3", "0")
    ran = line("label", "P")
    with open_label_queue("P") as queue:
        labels = list(queue.labels())

    assert ran.status == 0
    assert "Which is better?" in ran.out
    for label in labels[:4]:
        shown = re.search(rf"^case {label.case}\nA\n  (left|right)", ran.out, re.MULTILINE)
        assert shown is not None
        assert label.value == {"left": "first", "right": "second"}[shown[1]]
    assert [label.value for label in labels[4:]] == ["tie", "cannot_tell"]


def test_the_verdict_is_shown_only_where_it_is_asked_for(place, line, type_lines):
    """And the labels say that their rater was not blind."""
    make_criteria_run(place / "C", 1)
    type_lines("q")
    blind = line("label", "C")
    type_lines("1")
    shown = line("label", "C", "--show-verdict")
    with open_label_queue("C") as queue:
        (label,) = queue.labels()

    assert "SECRET" not in blind.out + blind.err
    assert "passed" not in blind.out
    assert "what the judge made of it" in shown.out
    assert "SECRET" in shown.out
    assert (label.blind, label.run is None) == (False, False)


def test_differences_are_settled(place, line, type_lines):
    """Shows who said what, and keeps a label that decides."""
    make_run(place / "R", 4)
    with open_label_queue("R", per_case=2) as queue:
        label_all(queue, "ann")
        label_all(queue, "bob", lambda task: task.case != "case-2")
        queue.comment("bob", "case-2", "Not polite.")
    type_lines("2")
    ran = line("label", "R", "--adjudicate", "--rater", "zoe")
    with open_label_queue("R") as queue:
        truth = queue.truths()["case-2"]

    assert ran.status == 0
    assert "ann: good" in ran.out
    assert "bob: bad — Not polite." in ran.out
    assert (truth.value, truth.settled_by) == (False, "adjudication")
    assert "no difference is left" in ran.out


def test_the_end_says_that_people_differ(place, line, type_lines):
    """With the command that settles it, which can be typed as it stands."""
    make_run(place / "R R", 2)
    for rater, key in (("ann", "1"), ("bob", "2")):
        type_lines(key, key)
        ran = line("label", "R R", "--per-case", "2", "--rater", rater)

    assert "2 differences are open" in ran.err
    assert "adjudge label 'R R' --adjudicate" in ran.err


# ---------------------------------------------------------------- files


def test_labels_go_out_and_come_in(place, line, type_lines):
    """In the pinned form; coming in again changes nothing."""
    make_run(place / "R", 3)
    type_lines("1", "c =1+1", "2", "0")
    line("label", "R", "--rater", "ann")
    assert "3 labels written to l.csv" in line("label", "R", "--export", "l.csv").out
    assert [label.value for label in load_labels("l.csv")] == [True, False, "cannot_tell"]

    make_run(place / "S", 3)
    assert "3 labels taken in, 0 known" in line("label", "S", "--import", "l.csv").out
    assert "0 labels taken in, 3 known" in line("label", "S", "--import", "l.csv").out
    assert list_labels("S") == list_labels("R")


def test_labels_go_to_standard_output(place, line, type_lines):
    """A line of JSON each."""
    make_run(place / "R", 2)
    type_lines("1", "2")
    line("label", "R")
    ran = line("label", "R", "--export", "-")

    assert [json.loads(text)["value"] for text in ran.out.splitlines()] == [True, False]


def test_a_spreadsheet_runs_nothing_of_an_export(place, line, type_lines):
    """Neither a name nor a comment."""
    make_run(place / "R", 1)
    type_lines("c =HYPERLINK(0)", "1")
    line("label", "R", "--rater", "=cmd|x")
    line("label", "R", "--export", "l.csv", "--for-spreadsheet")
    with Path("l.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]

    assert {"'=cmd|x", "'=HYPERLINK(0)"} <= set(cells)
    assert not [cell for cell in cells if cell.startswith("=")]


def test_words_of_another_tool_are_taken_in_by_a_map(place, line):
    """And a word that is not in it is refused, with nothing taken in."""
    make_run(place / "R", 2)
    Path("l.csv").write_text("case,rater,value\ncase-0,ann,yes\ncase-1,ann,no\n", "utf-8")
    wrong = line("label", "R", "--import", "l.csv")
    assert (wrong.status, "'yes'" in wrong.err) == (2, True)
    assert list_labels("R") == []

    assert line("label", "R", "--import", "l.csv", "--label-map", "yes=true,no=false").status == 0
    assert [value for _, _, value, _ in list_labels("R")] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "no folder of a run"),
        (["nope.jsonl"], "nope.jsonl"),
        (["R/run.json"], "R/run.json"),
        (["-"], "standard input"),
        (["R", "--export", "R/run.json"], "exists"),
        (["R", "--import", "nope.csv"], "nope.csv"),
        (["R", "--import", "other.csv"], "none of the 1 labels"),
        (["R", "--per-case", "0"], "--per-case"),
        (["R", "--rater", "a\x1b[31m"], "--rater"),
        (["R", "--rater", " "], "--rater"),
        (["R", "--seed", "-1"], "--seed"),
        (["R", "--rubric", "nope"], "nope"),
        (["R", "--label-map", "a=true"], "--import"),
        (["R", "--for-spreadsheet"], "--export"),
        (["E", "--export", "l.csv"], "no labels"),
    ],
)
def test_wrong_usage_is_one_sentence(place, line, type_lines, arguments, message):
    """It names the thing, the value and the remedy; the status is 2."""
    make_run(place / "R", 2)
    make_run(place / "E", 1)
    Path("other.csv").write_text("case,rater,value\nelsewhere,ann,true\n", "utf-8")
    type_lines("1", "1")
    if arguments[0] == "R":
        line("label", "R", "--rater", "first")
    ran = line("label", *arguments)

    assert ran.status == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert not (place / "E" / "labels.sqlite").exists()


# ---------------------------------------------------------------- hostile


def test_nothing_that_is_shown_reaches_the_terminal_as_it_is(place, line, type_lines):
    """Neither content, id, rubric, comments nor names, shown or exported."""
    case = {"id": f"a{ESCAPES}".replace("\x00", ""), "content": ESCAPES.replace("\x00", ""), "criteria": "Good \x1b[2J"}
    write_dataset(place / "d.jsonl", case)
    type_lines("c \x1b[31mred \u202e", "1")
    ran = line("label", "d.jsonl")

    assert ran.status == 0
    assert HIDDEN.search(ran.out + ran.err) is None
    assert "·[31mred" in ran.out


@pytest.mark.parametrize("content", ["", " ", [], {}, 0, False, [{"role": "user", "content": "hi"}], "\u200f\u202e"])
def test_content_of_every_kind_is_shown(place, line, type_lines, content):
    """Also content that is empty, and JSON."""
    write_dataset(place / "d.jsonl", {"id": "a", "content": content})
    type_lines("1")

    assert line("label", "d.jsonl").status == 0
    assert len(list_labels("d.jsonl")) == 1


# ---------------------------------------------------------------- on a terminal


def start(place: Path, *arguments: str | Path, **size: int):
    return open_terminal(place, "label", *arguments, "--rater", "ann", **size)


def wait(terminal: Terminal) -> Terminal:
    """Until a screen is there."""
    return terminal.wait_for_screen()


@pytest.mark.integration
@posix
def test_a_key_answers_and_the_next_case_comes(place):
    """At once, without Enter; the screen says what became of the one before."""
    make_run(place / "R", 3)
    with start(place, "R", "--seed", "1") as terminal:
        first = wait(terminal).screen
        second = terminal.press("1", "good)").screen
        status = terminal.leave()

    case = re.search(r"case (case-\d)", first)
    assert case is not None
    assert "0 of 3 labelled" in first
    assert "1 of 3 labelled" in second
    assert f"({case[1]}: good)" in second
    assert status == 0
    assert [(name, value) for name, _, value, _ in list_labels("R")] == [(case[1], True)]
    assert "1 answer kept in R/labels.sqlite" in terminal.seen


@pytest.mark.integration
@posix
def test_the_terminal_is_as_it_was_afterwards(place):
    """Its modes, its own screen and its cursor, however it ends."""
    make_run(place / "R", 3)
    for key, status in (("q", 0), ("\x03", 130), ("\x04", 0)):
        with start(place, "R") as terminal:
            before = terminal.find_modes()
            wait(terminal).wait_for_keys()
            assert terminal.find_modes()[3] != before[3]
            assert terminal.leave(key) == status
            assert terminal.find_modes() == before
            assert terminal.seen.rindex("\x1b[?1049l") > terminal.seen.rindex("\x1b[?1049h")
            assert terminal.seen.rindex("\x1b[?25h") > terminal.seen.rindex("\x1b[?25l")
            assert "Traceback" not in terminal.seen


@pytest.mark.integration
@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_who_is_stopped_loses_nothing(place, number):
    """Every answer was kept when the next question came."""
    make_run(place / "R", 3)
    with start(place, "R") as terminal:
        wait(terminal)
        terminal.press("1", "1 of 3")
        terminal.press("2", "2 of 3")
        terminal.process.send_signal(number)
        status = terminal.finish()

    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert [value for _, _, value, _ in list_labels("R")] == [True, False]


@pytest.mark.integration
@posix
def test_keys_that_come_before_their_question_answer_nothing(place):
    """A key that is held down would otherwise label cases that nobody saw."""
    make_run(place / "R", 60)
    with start(place, "R") as terminal:
        wait(terminal)
        terminal.press("1" * 40, "1 of 60")
        terminal.leave("q")

    assert len(list_labels("R")) < 40


@pytest.mark.slow_table
@pytest.mark.integration
@posix
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("\x1b[200~Good, 1 of 2: skip or undo? q\x1b[201~", id="pasted"),
        pytest.param("\x1b[200~1\n2\n0\n\x1b[201~", id="lines pasted"),
        pytest.param("Good, 1 of 2: skip or undo? q", id="pasted into a terminal that does not say so"),
        pytest.param("120", id="answers at once"),
    ],
)
def test_pasted_text_answers_nothing(place, keys):
    """Or a figure in it would label the case, and those behind it the next ones."""
    make_run(place / "R", 3)
    with start(place, "R") as terminal:
        wait(terminal)
        terminal.press(keys, "answers nothing")
        terminal.press("\x1b", "Is it good?")
        terminal.press("2", "1 of 3")
        terminal.leave()

    assert [value for _, _, value, _ in list_labels("R")] == [False]


@pytest.mark.slow_table
@pytest.mark.integration
@posix
@pytest.mark.parametrize("first", ["o", "d", "3", "ü", "#"])
def test_a_text_that_is_typed_as_no_comment_answers_nothing(place, first):
    """From its first letter on that is no key, until Esc."""
    make_run(place / "R", 3)
    with start(place, "R") as terminal:
        wait(terminal)
        for letter in f"{first}12 0su?c":
            terminal.press(letter, "Esc gives the keys back")
        terminal.press("\x1b", "Is it good?")
        terminal.press("2", "1 of 3")
        terminal.leave()

    assert [value for _, _, value, _ in list_labels("R")] == [False]


@pytest.mark.integration
@posix
def test_lines_that_come_before_their_question_answer_nothing(place):
    """Lines that were pasted into a terminal without a screen; those of a pipe are all read."""
    make_run(place / "R", 4)
    with open_terminal(place, "label", "R", term="dumb") as terminal:
        terminal.wait_for("q quit")
        terminal.type("1\n2\n0\n", "1 of 4 labelled")
        assert terminal.leave("q\n") == 0

    assert [value for _, _, value, _ in list_labels("R")] == [True]


@pytest.mark.integration
@posix
def test_a_comment_is_typed_and_kept(place):
    """With Enter at its end; the answer has it."""
    make_run(place / "R", 1)
    with start(place, "R") as terminal:
        wait(terminal)
        terminal.type("c", "none): ")
        terminal.press("Zu kurz für 1 q\r", "comment kept")
        assert "Zu kurz" in terminal.screen
        assert terminal.leave("2") == 0

    assert [(value, comment) for _, _, value, comment in list_labels("R")] == [(False, "Zu kurz für 1 q")]
    assert "every case has its labels" in terminal.seen


@pytest.mark.integration
@posix
def test_undo_on_a_terminal_shows_the_case_again(place):
    """As it was before the answer."""
    make_run(place / "R", 3)
    with start(place, "R", "--seed", "1") as terminal:
        first = re.search(r"case (case-\d)", wait(terminal).screen)
        terminal.press("1", "good)")
        again = re.search(r"case (case-\d)", terminal.press("u", "undone)").screen)
        terminal.leave()

    assert first is not None
    assert again is not None
    assert first[1] == again[1]
    assert list_labels("R") == []


@pytest.mark.integration
@posix
@pytest.mark.parametrize(("columns", "beside"), [(110, True), (80, False), (30, False)])
@pytest.mark.slow_table
def test_the_rubric_is_beside_the_content_where_there_is_room(place, columns, beside):
    """Else below it; no line is wider than the terminal."""
    make_criteria_run(place / "C", 1)
    with start(place, "C", columns=columns, rows=40) as terminal:
        terminal.wait_for_screen()
        lines = terminal.screen.split("\n")
        terminal.leave()

    content = next(number for number, text in enumerate(lines) if text.startswith("content"))
    rubric = next(number for number, text in enumerate(lines) if "rubric: Reply" in text)
    assert (rubric < content) == beside
    assert (rubric > content) == (not beside)
    assert max(map(len, lines)) <= columns
    assert len(lines) <= 40


@pytest.mark.integration
@posix
def test_long_content_is_turned_in_pages(place):
    """Forward, back, to the end; the answer is possible everywhere."""
    text = "\n".join(f"line number {number}" for number in range(500))
    make_run(place / "R", [Case(id="a", content=f"good {text}")])
    with start(place, "R", columns=80, rows=30) as terminal:
        first = wait(terminal).screen
        second = terminal.press(" ").screen
        back = terminal.press("b").screen
        end = terminal.press("G").screen
        up = terminal.press("\x1b[A").screen
        status = terminal.leave("1")

    assert "line number 3" in first
    assert "space shows more" in first
    assert "line number 30" in second
    assert "line number 30" not in first
    assert back == first
    assert "line number 499" in end
    assert "space shows more" not in end
    assert up != end
    assert status == 0


@pytest.mark.integration
@posix
@pytest.mark.parametrize("text", ["x" * 10_000_000, "word and word\n" * 700_000, "e\u0301" * 2_000_000])
@pytest.mark.slow_table
def test_huge_content_is_there_at_once(place, text):
    """Ten megabytes in one line, in many, and of letters with marks."""
    write_dataset(place / "d.jsonl", {"id": "a", "content": text})
    with start(place, "d.jsonl", rows=30) as terminal:
        wait(terminal)
        terminal.press(" ")
        assert max(len(line) for line in terminal.screen.split("\n")) <= 4 * 110
        assert terminal.leave("1") == 0

    assert len(list_labels("d.jsonl")) == 1


@pytest.mark.integration
@posix
def test_escapes_in_content_draw_nothing(place):
    """Only the screen's own control characters are written."""
    make_run(place / "R", [Case(id=ESCAPES.replace("\x00", ""), content="good " + ESCAPES.replace("\x00", ""))])
    with start(place, "R") as terminal:
        wait(terminal)
        terminal.type("c", "none): ")
        terminal.press("x\r", "comment kept")
        terminal.leave("1")

    own = re.compile(r"\x1b\[(?:\?1049[hl]|\?25[hl]|\?2004[hl]|[HKJ]|[012]m|2K|\d+;1H)|[\r\x08\x07]")
    assert HIDDEN.search(own.sub("", terminal.seen)) is None
    assert "·[31mred" in terminal.seen


@pytest.mark.integration
@posix
def test_text_from_right_to_left_has_nothing_beside_it(place):
    """A terminal may turn the whole line around, and the rubric would be in the middle of it."""
    write_dataset(place / "d.jsonl", {"id": "a", "content": "שלום עולם", "criteria": "Greets."})
    with start(place, "d.jsonl", columns=120) as terminal:
        screen = wait(terminal).screen
        terminal.leave()

    assert "שלום עולם" in screen
    assert "│" not in screen


@pytest.mark.integration
@posix
def test_another_size_of_the_window_is_drawn_anew(place):
    """And so is the screen after the program was stopped and goes on."""
    make_criteria_run(place / "C", 1)
    with start(place, "C", columns=80) as terminal:
        wait(terminal)
        terminal.resize(120, 30)
        assert "│" in wait(terminal).screen
        terminal.process.send_signal(signal.SIGCONT)
        assert "│" in wait(terminal).screen
        assert terminal.leave() == 0


@pytest.mark.integration
@posix
@pytest.mark.parametrize(("columns", "rows"), [(20, 10), (12, 5), (400, 100)])
@pytest.mark.slow_table
def test_a_window_of_any_size_can_be_used(place, columns, rows):
    """Of one that is too small the end is not seen; nothing breaks."""
    make_criteria_run(place / "C", 2)
    with start(place, "C", columns=columns, rows=rows) as terminal:
        wait(terminal)
        terminal.press("1")
        for key in (" ", "G", "g", "\x1b[6~", "\x1b", "x", "ü", "\x1b[99~"):
            terminal.press(key)
        assert terminal.leave() == 0

    assert len(list_labels("C")) == 1


@pytest.mark.integration
@posix
def test_a_dumb_terminal_is_asked_by_lines(place):
    """Without a control character, and without drawing over anything."""
    make_run(place / "R", 2)
    with open_terminal(place, "label", "R", term="dumb") as terminal:
        terminal.wait_for("quit")
        terminal.type("1\n", ": good")
        terminal.wait_for("quit")
        assert terminal.leave("q\n") == 0

    assert "\x1b" not in terminal.seen
    assert "and Enter" in terminal.seen
    assert len(list_labels("R")) == 1


@pytest.mark.integration
@posix
def test_the_keys_are_explained(place):
    """Until any key is pressed, which answers nothing."""
    make_run(place / "R", 2)
    with start(place, "R") as terminal:
        wait(terminal)
        assert "undo your last answer" in terminal.press("?").screen
        assert "undo your last answer" not in terminal.press("1").screen
        terminal.leave()

    assert list_labels("R") == []


@pytest.mark.integration
@posix
def test_two_people_at_two_terminals_share_the_work(place):
    """Nobody gets what the other has."""
    make_run(place / "R", 4)
    with start(place, "R") as one, open_terminal(place, "label", "R", "--rater", "bob") as two:
        cases = [re.search(r"case (case-\d)", wait(terminal).screen) for terminal in (one, two)]
        for terminal in (one, two):
            terminal.press("1", "good)")
        assert (one.leave("1"), two.leave("1")) == (0, 0)

    kept = list_labels("R")
    assert cases[0] is not None
    assert cases[1] is not None
    assert cases[0][1] != cases[1][1]
    assert len({name for name, *_ in kept}) == len(kept) == 4


@pytest.mark.integration
def test_ctrl_c_between_lines_loses_nothing(place):
    """Status 130, and what was answered is kept."""
    make_run(place / "R", 3)
    process = cli.start(place, "label", "R")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"1\n")
    process.stdin.flush()
    while b": good" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    ran = cli.finish(process)

    assert ran.status == 130
    assert "Traceback" not in ran.err
    assert "1 answer kept" in ran.err
    assert len(list_labels("R")) == 1
