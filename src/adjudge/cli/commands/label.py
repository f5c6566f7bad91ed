"""``adjudge label``: people label the cases of a run or a data set with single keystrokes."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.ledger import find_user
from adjudge.cli.exit_status import DONE, UNDECIDED
from adjudge.cli.keyboard import drop_typed_keys, read_key, watching_terminal
from adjudge.cli.label_session import KEYS, Labelling, LabellingOptions
from adjudge.cli.output import can_draw_boxes, complain, is_terminal, note, print_line, write_lines, write_screen
from adjudge.cli.text_columns import Pages, Passage, ScreenLine, fit
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show

if TYPE_CHECKING:
    from adjudge.labels.queue import LabelQueue
    from adjudge.labels.task import LabelImport

_PAGE_KEYS = {"space": 1.0, "page down": 1.0, "b": -1.0, "page up": -1.0}
"""Keys that scroll by pages: how many, and up if the number is negative."""

_LINE_KEYS = {"j": 1, "down": 1, "enter": 1, "k": -1, "up": -1}
"""Keys that scroll by lines."""

_END_KEYS = {"g": -(10**9), "home": -(10**9), "G": 10**9, "end": 10**9}
"""Keys that scroll to the beginning or the end: by more lines than any text has."""

_FOOT = 4
"""Lines of the screen below the text."""

_LEAST_COLUMNS, _LEAST_LINES = 20, 10
"""Columns and lines that are drawn at least."""


def label(
    source: Annotated[str, typer.Argument(metavar="RUN|DATA", hidden=True)],
    rater: Annotated[
        str | None, typer.Option("--rater", metavar="NAME", help="Who labels.  [default: this system's user]")
    ] = None,
    criteria: Annotated[
        bool, typer.Option("--criteria", help="Ask for each criterion, and not for the case as a whole.")
    ] = False,
    show_verdict: Annotated[
        bool, typer.Option("--show-verdict", help="Show what the judge made of it; the labels say so.")
    ] = False,
    per_case: Annotated[int, typer.Option("--per-case", metavar="N", help="How many raters each case is to have.")] = 1,
    adjudicate: Annotated[
        bool, typer.Option("--adjudicate", help="Settle the cases on which people differ, seeing what they said.")
    ] = False,
    export: Annotated[
        str | None, typer.Option("--export", metavar="FILE|-", help="Write the labels to a new file, and stop.")
    ] = None,
    import_file: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Take in labels of a file, and stop.")
    ] = None,
    label_map: option.LabelMapText = None,
    for_spreadsheet: Annotated[
        bool, typer.Option("--for-spreadsheet", help="With --export: write cells so that a spreadsheet runs none.")
    ] = False,
    rubric: Annotated[
        str | None, typer.Option("--rubric", "-r", metavar="R", help="What is good.  [default: that of the run]")
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="The contents of a data set are pairs, {a, b}.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Which random order.  [default: drawn by chance]")
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", help="Where labels are kept.  [default: beside RUN|DATA]")
    ] = None,
) -> int:
    """Label the cases of a run or a data set with single keystrokes.

    $ adjudge label runs/monday

    RUN is a folder of `adjudge run`; DATA is a file as in `adjudge dataset check`. Cases come in the order of the
    run's plan, else in a random one, without the judge's verdict and other people's labels. Each answer is on the disk
    before the next question. Where standard input is no terminal, it is read by lines: 1, 2, 0, s, u, q, or c and a
    comment.

    Exit status: 0 done or left with q, 2 wrong usage or unreadable input, 3 a pipe ended before the cases did and
    without q, 130 interrupted; what was answered is kept.
    """
    if for_spreadsheet and export in (None, "-"):
        raise UsageError("--for-spreadsheet is for --export FILE; leave it out")
    if label_map is not None and import_file is None:
        raise UsageError("--label-map is for the words of --import; leave it out")
    from adjudge.labels.queue import open_label_queue

    if export is not None and import_file is None:
        _check_has_labels(source, store)
    choice = {"per_case": per_case, "by_criterion": criteria, "rubric": rubric, "pairs": pairs, "seed": seed}
    with open_label_queue(source, store=store, **choice) as queue:
        if import_file is not None:
            _import(queue, import_file, label_map, rater)
        if export is not None:
            _export(queue, export, for_spreadsheet=for_spreadsheet)
        if import_file is None and export is None:
            rater_name = rater if rater is not None else find_user()
            options = LabellingOptions(rater=rater_name, blind=not show_verdict, adjudicate=adjudicate, source=source)
            return DONE if _label_cases(queue, options) else UNDECIDED
    return DONE


def _check_has_labels(source: str, store: Path | None) -> None:
    """Raise ``UsageError`` if there is no file of labels yet; opening the queue for an export would make one."""
    from adjudge.labels.source import find_store

    label_file = store or find_store(source)
    if not label_file.exists():
        raise UsageError(
            f"{source} has no labels: there is no {label_file}; label its cases first (adjudge label {quote(source)})"
        )


def _import(queue: LabelQueue, path: Path, label_map: str | None, rater: str | None) -> None:
    """Import a file of labels into the queue, and print what was left out of it and why.

    Raises ``UsageError`` if none of them is imported.
    """
    from adjudge.dataset.label_file import load_labels
    from adjudge.dataset.label_map import parse_label_map

    meanings = parse_label_map(label_map) if label_map is not None else None
    labels = load_labels(path, label_map=meanings, rater=rater if rater is not None else find_user())
    imported = queue.import_labels(labels)
    if labels and not imported.added and not imported.known:
        raise UsageError(_explain_nothing(len(labels), path, imported))
    if imported.other_contents:
        first_cases = ", ".join(show(case_id) for case_id in imported.other_contents[:3])
        print_line(
            f"labels of {len(imported.other_contents):,} cases were left out: they are of another content than the "
            f"cases have here ({first_cases})"
        )
    print_line(f"{imported.added:,} label{'s' * (imported.added != 1)} taken in, {imported.known:,} known already")
    if imported.elsewhere:
        first_cases = ", ".join(show(case_id) for case_id in imported.elsewhere[:3])
        note(f"labels of {len(imported.elsewhere):,} cases that are not here were left out ({first_cases})")


def _explain_nothing(number: int, path: Path, imported: LabelImport) -> str:
    """Explain why none of the ``number`` labels in a file was imported."""
    if imported.other_contents:
        return (
            f"none of the {number:,} labels in {path} is of the contents that are here: those of "
            f"{len(imported.other_contents):,} cases are of another content under the same id; name their run"
        )
    return f"none of the {number:,} labels in {path} is for a case that is here; name their run"


def _export(queue: LabelQueue, path: str, *, for_spreadsheet: bool) -> None:
    """Write the labels to a file, or for ``-`` to standard output, one JSON object per line."""
    import json

    from adjudge.dataset.label_file import write_labels

    if path == "-":
        write_lines(json.dumps(label.to_dict()) for label in queue.labels())
        return
    count = write_labels(path, queue.labels(), for_spreadsheet=for_spreadsheet)
    print_line(f"{count:,} label{'s' * (count != 1)} written to {path}")


def _label_cases(queue: LabelQueue, options: LabellingOptions) -> bool:
    """Let a person label cases, on a whole screen or line by line; return false where a pipe ended too early."""
    from adjudge.labels.live_estimate import estimate_live, prepare_live

    prepare_live()
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and not can_draw_boxes():
        note("this terminal shows lines only: type 1, 2, 0, s, u, q, or c and a comment, and Enter")
    problem = queue.draw_problem
    if problem is not None and not options.adjudicate:
        note(problem)
    session = Labelling(queue=queue, options=options, estimate=estimate_live)
    try:
        if is_terminal(sys.stdin) and can_draw_boxes():
            LabelScreen(session).run()
            return True
        finished = answer_lines(session)
        if not finished:
            complain("standard input ended before the cases did, and without q; the answers until there are kept")
        return finished
    finally:
        # Also after Ctrl-C and after an error, because the user wants to know then how many answers are kept.
        with suppress(AdjudgeError):
            for text in session.describe_end():
                note(text)


# ---------------------------------------------------------------- questions and answers in lines


def answer_lines(session: Labelling) -> bool:
    """Ask each question on standard output, and read its answer from a line of standard input.

    Returns false if a pipe ended before the cases did and without ``q``, because the program that writes into it may
    have died. Raises ``UsageError`` for a line that is no answer: if it were skipped, the answers after it would go to
    other cases than were meant.
    """
    line_number = 0
    while session.fetch() is not None:
        if is_terminal(sys.stdin):
            drop_typed_keys()
        _print_question(session)
        while True:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            line_number += 1
            key = line.strip()
            if not line or key == "q":
                return key == "q" or is_terminal(sys.stdin)
            if key == "?":
                print_line("\n".join(f"{name:<9} {text}" for name, text in KEYS))
            elif key == "c" or key.startswith("c "):
                session.comment(key[1:])
                print_line(session.message)
            elif key:
                _press_key(session, key, line_number)
                break
    print_line(session.describe_nothing())
    return True


def _press_key(session: Labelling, key: str, line_number: int) -> None:
    """Do what the key in a line asks for, and print the outcome; raises ``UsageError`` for a line that is no key."""
    if not session.press(key):
        is_pair = session.task is not None and session.task.is_pair
        answers = "1, 2, 3, 0" if is_pair else "1, 2, 0"
        raise UsageError(f"line {line_number} is no answer: {show(key)}; write {answers}, s, u, q, or c and a comment")
    print_line(session.message)


def _print_question(session: Labelling) -> None:
    """Print the case and the question, with the keys, and the progress to standard error."""
    for passage in (*session.list_text(), *session.list_notes()):
        print_line(passage.heading)
        if passage.text:
            print_line("\n".join(f"  {line}" for line in passage.text.split("\n")))
    print_line(f"{session.describe_question()}  {session.describe_keys()}")
    note("; ".join(filter(None, (session.describe_progress(), session.describe_rate()))))


# ---------------------------------------------------------------- a screen


class LabelScreen:
    """Shows the cases on a whole terminal, and takes the answers as single keys."""

    def __init__(self, session: Labelling) -> None:
        self._session = session
        self._pages: Pages | None = None
        self._shows_help = self._has_quit = False
        self._ignores_keys = False
        """True after a text was typed or pasted in place of a key: its letters must not answer, until Esc."""
        self._is_typing_comment = False
        """True while a comment is typed: drawing the screen again would draw over it."""
        self._size = (0, 0)
        """Columns and rows of the terminal for which ``_pages`` was made."""
        self._height = 1
        """Lines of the text that are shown."""

    def run(self) -> None:
        """Ask until no question is left or the person quits, and then restore the terminal."""
        if self._session.fetch() is None:
            note(self._session.describe_nothing())
            return
        # Control characters: use the alternate screen, hide the cursor, and have the terminal mark pasted text.
        write_screen("\x1b[?1049h\x1b[?25l\x1b[?2004h")
        try:
            with watching_terminal(self._redraw):
                self._ask_questions()
        finally:
            write_screen("\x1b[?2004l\x1b[?25h\x1b[?1049l")
        if self._session.task is None:
            note(self._session.describe_nothing())

    def _ask_questions(self) -> None:
        """Show one question after the other, and handle keys until it is answered, or the person quits.

        Keys that were typed before a question is drawn are dropped, so that they do not answer it.
        """
        while self._session.task is not None:
            self._pages = None
            drop_typed_keys()
            self._draw()
            while not self._handle_key(read_key()):
                self._draw()
            if self._has_quit:
                return
            self._session.fetch()

    def _handle_key(self, key: str) -> bool:
        """Do what a key asks for; return true if the question is answered, skipped or undone, or the person quits."""
        if self._ignores_keys or key == "text":
            self._ignore_key(key)
            self._has_quit = key in ("q", "eof")  # q still quits, because every answer is kept already
            return self._has_quit
        if self._shows_help or key == "?":
            self._shows_help = not self._shows_help
            self._pages = None
            return False
        if key in ("q", "eof"):
            self._has_quit = True
            return True
        if key == "c":
            self._ask_for_comment()
            return False
        if self._session.press(key):
            return True
        if key in _PAGE_KEYS or key in _LINE_KEYS or key in _END_KEYS:
            self._scroll(key)
        elif len(key) == 1 and key.isprintable():
            self._ignore_key(key)
        return False

    def _ignore_key(self, key: str) -> None:
        """Ignore this key and all further ones until Esc, and say so: a text was typed where keys are expected."""
        self._ignores_keys = key != "escape"
        explanation = "a text answers nothing; c writes a comment; Esc gives the keys back"
        self._session.message = explanation if self._ignores_keys else ""

    def _ask_for_comment(self) -> None:
        """Ask for a comment in the last line of the screen, and keep it."""
        columns, rows = self._measure_terminal()
        # Control characters: go to the last line, clear it, show the cursor, and do not mark pasted text.
        write_screen(f"\x1b[{rows};1H\x1b[2K\x1b[?25h\x1b[?2004l")
        self._is_typing_comment = True
        try:
            with suppress(ImportError):
                import readline  # noqa: F401 - gives the line its editing, where there is one
            text: str | None = input(fit("comment (empty: none): ", columns))
        except EOFError:
            text = None
        finally:
            self._is_typing_comment = False
        write_screen("\x1b[?25l\x1b[?2004h")
        if text is not None:
            self._session.comment(text)
            self._pages = None

    def _scroll(self, key: str) -> None:
        """Scroll the text by a page or a line, or to an end, as a key says."""
        if self._pages is None:
            return
        if key in _PAGE_KEYS:
            self._pages.scroll(round(_PAGE_KEYS[key] * max(1, self._height - 1)), self._height)
        elif key in _LINE_KEYS or key in _END_KEYS:
            self._pages.scroll(_LINE_KEYS.get(key) or _END_KEYS[key], self._height)

    def _measure_terminal(self) -> tuple[int, int]:
        """Return the columns and the lines of the terminal, or the least that are drawn."""
        size = shutil.get_terminal_size((80, 24))
        return max(size.columns, _LEAST_COLUMNS), max(size.lines, _LEAST_LINES)

    def _redraw(self) -> None:
        """Draw the screen again, after the terminal was resized; not while a comment is typed."""
        if not self._is_typing_comment:
            self._draw()

    def _draw(self) -> None:
        """Draw the screen: the progress at its head, the text of the case, and the question with its keys below."""
        columns, rows = self._measure_terminal()
        if self._pages is None or self._size != (columns, rows):
            self._pages = self._make_pages(columns)
            self._size = (columns, rows)
        session, rule = self._session, "─" * columns
        rate = session.describe_rate()
        head = [
            ScreenLine(fit(session.describe_head(), columns), "bold").render(),
            fit(session.describe_progress(), columns),
            *([fit(rate, columns)] if rate is not None else []),
            rule,
        ]
        self._height = rows - len(head) - _FOOT
        foot = [
            rule,
            ScreenLine(fit(self._pages.describe(self._height) or "", columns), "dim").render(),
            fit(f"{session.describe_question()}  {f'({session.message})' if session.message else ''}", columns),
            ScreenLine(fit(session.describe_keys(columns), columns), "bold").render(),
        ]
        lines = [*head, *self._pages.read(self._height), *foot]
        # From the upper left corner; the rest of each line, and of the screen, is cleared.
        write_screen("\x1b[H" + "\r\n".join(f"{text}\x1b[K" for text in lines) + "\x1b[J")

    def _make_pages(self, columns: int) -> Pages:
        """Make the text to scroll: the list of keys while help is shown, else the case with its notes."""
        if self._shows_help:
            return Pages([Passage("keys", "\n".join(f"{name:<9} {text}" for name, text in KEYS))], [], columns)
        return Pages(self._session.list_text(), self._session.list_notes(), columns)
