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
from adjudge.cli.keyboard import forget_typed, read_key, watching_terminal
from adjudge.cli.label_session import KEYS, Labelling, LabellingOptions
from adjudge.cli.output import complain, draws, is_terminal, note, print_line, write_lines, write_screen
from adjudge.cli.text_columns import Pages, Passage, ScreenLine, fit
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show

if TYPE_CHECKING:
    from adjudge.labels.queue import LabelQueue
    from adjudge.labels.task import LabelImport

_MOVES = {"space": 1.0, "page down": 1.0, "b": -1.0, "page up": -1.0}

_LINES = {"j": 1, "down": 1, "enter": 1, "k": -1, "up": -1}

_ENDS = {"g": -(10**9), "home": -(10**9), "G": 10**9, "end": 10**9}

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
        _check_begun(source, store)
    choice = {"per_case": per_case, "by_criterion": criteria, "rubric": rubric, "pairs": pairs, "seed": seed}
    with open_label_queue(source, store=store, **choice) as queue:
        if import_file is not None:
            _import(queue, import_file, label_map, rater)
        if export is not None:
            _export(queue, export, for_spreadsheet=for_spreadsheet)
        if import_file is None and export is None:
            who = rater if rater is not None else find_user()
            chosen = LabellingOptions(rater=who, blind=not show_verdict, adjudicate=adjudicate, source=source)
            return DONE if _label(queue, chosen) else UNDECIDED
    return DONE


def _check_begun(source: str, store: Path | None) -> None:
    """Raise ``UsageError`` where nobody has labelled anything: to export must not begin a file."""
    from adjudge.labels.source import find_store

    place = store or find_store(source)
    if not place.exists():
        raise UsageError(
            f"{source} has no labels: there is no {place}; label its cases first (adjudge label {quote(source)})"
        )


def _import(queue: LabelQueue, path: Path, label_map: str | None, rater: str | None) -> None:
    """Import a file of labels into the queue, and print what was left out of it and why.

    Raises ``UsageError`` if none of them is imported.
    """
    from adjudge.dataset.label_file import load_labels
    from adjudge.dataset.label_map import parse_label_map

    words = parse_label_map(label_map) if label_map is not None else None
    labels = load_labels(path, label_map=words, rater=rater if rater is not None else find_user())
    imported = queue.import_labels(labels)
    if labels and not imported.added and not imported.known:
        raise UsageError(_explain_nothing(len(labels), path, imported))
    if imported.other_contents:
        some = ", ".join(show(name) for name in imported.other_contents[:3])
        print_line(
            f"labels of {len(imported.other_contents):,} cases were left out: they are of another content than the "
            f"cases have here ({some})"
        )
    print_line(f"{imported.added:,} label{'s' * (imported.added != 1)} taken in, {imported.known:,} known already")
    if imported.elsewhere:
        some = ", ".join(show(name) for name in imported.elsewhere[:3])
        note(f"labels of {len(imported.elsewhere):,} cases that are not here were left out ({some})")


def _explain_nothing(number: int, path: Path, imported: LabelImport) -> str:
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


def _label(queue: LabelQueue, chosen: LabellingOptions) -> bool:
    """Let somebody label; false where their input was cut off."""
    from adjudge.labels.live_estimate import estimate_live, prepare_live

    prepare_live()
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and not draws():
        note("this terminal shows lines only: type 1, 2, 0, s, u, q, or c and a comment, and Enter")
    if (problem := queue.draw_problem) is not None and not chosen.adjudicate:
        note(problem)
    work = Labelling(queue=queue, options=chosen, estimate=estimate_live)
    try:
        if is_terminal(sys.stdin) and draws():
            LabelScreen(work).run()
            return True
        finished = answer_lines(work)
        if not finished:
            complain("standard input ended before the cases did, and without q; the answers until there are kept")
        return finished
    finally:
        # Also after Ctrl-C: what is kept is what somebody wants to know then. What went wrong is said before this.
        with suppress(AdjudgeError):
            for text in work.describe_end():
                note(text)


# ---------------------------------------------------------------- lines


def answer_lines(work: Labelling) -> bool:
    """Ask on standard output, and read an answer from each line; a line that is none ends it with ``UsageError``.

    Nothing is guessed and no line is passed over: the answers behind it would go to other cases than were meant. False
    where a pipe ended before the cases did and without ``q``: the program that writes into it may have died.
    """
    number = 0
    while work.fetch() is not None:
        if is_terminal(sys.stdin):
            forget_typed()
        _print_question(work)
        while True:
            line = sys.stdin.readline() if sys.stdin is not None else ""
            number += 1
            key = line.strip()
            if not line or key == "q":
                return key == "q" or is_terminal(sys.stdin)
            if key == "?":
                print_line("\n".join(f"{name:<9} {text}" for name, text in KEYS))
            elif key == "c" or key.startswith("c "):
                work.comment(key[1:])
                print_line(work.message)
            elif key:
                _press(work, key, number)
                break
    print_line(work.describe_nothing())
    return True


def _press(work: Labelling, key: str, number: int) -> None:
    if not work.press(key):
        pair = work.task is not None and work.task.is_pair
        answers = "1, 2, 3, 0" if pair else "1, 2, 0"
        raise UsageError(f"line {number} is no answer: {show(key)}; write {answers}, s, u, q, or c and a comment")
    print_line(work.message)


def _print_question(work: Labelling) -> None:
    for passage in (*work.list_text(), *work.list_notes()):
        print_line(passage.heading)
        if passage.text:
            print_line("\n".join(f"  {line}" for line in passage.text.split("\n")))
    print_line(f"{work.describe_question()}  {work.describe_keys()}")
    note("; ".join(filter(None, (work.describe_progress(), work.describe_rate()))))


# ---------------------------------------------------------------- a screen


class LabelScreen:
    """Labelling on a whole terminal, by single keys."""

    def __init__(self, work: Labelling) -> None:
        self._work = work
        self._pages: Pages | None = None
        self._helps = self._quits = False
        self._ignores = False
        """True while a text is typed that is no key and no comment: nothing of it answers, until Esc."""
        self._types = False
        """True while a comment is typed: the line would be drawn over."""
        self._size = (0, 0)
        self._height = 1
        """Lines of the text that are seen."""

    def run(self) -> None:
        """Ask until nothing is left or somebody quits; the terminal is as it was afterwards."""
        if self._work.fetch() is None:
            note(self._work.describe_nothing())
            return
        # A screen of its own, without a cursor; pasted text is marked as such.
        write_screen("\x1b[?1049h\x1b[?25l\x1b[?2004h")
        try:
            with watching_terminal(self._redraw):
                self._ask()
        finally:
            write_screen("\x1b[?2004l\x1b[?25h\x1b[?1049l")
        if self._work.task is None:
            note(self._work.describe_nothing())

    def _ask(self) -> None:
        """Ask until nothing is left or the person quits.

        Keys that were typed before a question is drawn are dropped, so that they do not answer it.
        """
        while self._work.task is not None:
            self._pages = None
            forget_typed()
            self._draw()
            while not self._handle(read_key()):
                self._draw()
            if self._quits:
                return
            self._work.fetch()

    def _handle(self, key: str) -> bool:
        """Do what a key asks for; true where the question is over."""
        if self._ignores or key == "text":
            self._ignore(key)
            self._quits = key in ("q", "eof")  # which loses nothing
            return self._quits
        if self._helps or key == "?":
            self._helps = not self._helps
            self._pages = None
            return False
        if key in ("q", "eof"):
            self._quits = True
            return True
        if key == "c":
            self._comment()
            return False
        if self._work.press(key):
            return True
        if key in _MOVES or key in _LINES or key in _ENDS:
            self._turn(key)
        elif len(key) == 1 and key.isprintable():
            self._ignore(key)
        return False

    def _ignore(self, key: str) -> None:
        """Answer nothing by a text, of which a letter or a figure would be a key, and say so."""
        self._ignores = key != "escape"
        self._work.message = "a text answers nothing; c writes a comment; Esc gives the keys back" * self._ignores

    def _comment(self) -> None:
        """Ask for a comment in the last line of the screen."""
        columns, rows = self._measure()
        write_screen(f"\x1b[{rows};1H\x1b[2K\x1b[?25h\x1b[?2004l")
        self._types = True
        try:
            with suppress(ImportError):
                import readline  # noqa: F401 - gives the line its editing, where there is one
            text: str | None = input(fit("comment (empty: none): ", columns))
        except EOFError:
            text = None
        finally:
            self._types = False
        write_screen("\x1b[?25l\x1b[?2004h")
        if text is not None:
            self._work.comment(text)
            self._pages = None

    def _turn(self, key: str) -> None:
        if self._pages is None:
            return
        if key in _MOVES:
            self._pages.turn(round(_MOVES[key] * max(1, self._height - 1)), self._height)
        elif key in _LINES or key in _ENDS:
            self._pages.turn(_LINES.get(key) or _ENDS[key], self._height)

    def _measure(self) -> tuple[int, int]:
        size = shutil.get_terminal_size((80, 24))
        return max(size.columns, _LEAST_COLUMNS), max(size.lines, _LEAST_LINES)

    def _redraw(self) -> None:
        if not self._types:
            self._draw()

    def _draw(self) -> None:
        """Draw the screen: progress, the page of the case, and the keys."""
        columns, rows = self._measure()
        if self._pages is None or self._size != (columns, rows):
            self._pages = self._make_pages(columns)
            self._size = (columns, rows)
        work, line = self._work, "─" * columns
        rate = work.describe_rate()
        head = [
            ScreenLine(fit(work.describe_head(), columns), "bold").render(),
            fit(work.describe_progress(), columns),
            *([fit(rate, columns)] if rate is not None else []),
            line,
        ]
        self._height = rows - len(head) - _FOOT
        foot = [
            line,
            ScreenLine(fit(self._pages.describe(self._height) or "", columns), "dim").render(),
            fit(f"{work.describe_question()}  {f'({work.message})' if work.message else ''}", columns),
            ScreenLine(fit(work.describe_keys(columns), columns), "bold").render(),
        ]
        shown = [*head, *self._pages.read(self._height), *foot]
        write_screen("\x1b[H" + "\r\n".join(f"{text}\x1b[K" for text in shown) + "\x1b[J")

    def _make_pages(self, columns: int) -> Pages:
        if self._helps:
            return Pages([Passage("keys", "\n".join(f"{name:<9} {text}" for name, text in KEYS))], [], columns)
        return Pages(self._work.list_text(), self._work.list_notes(), columns)
