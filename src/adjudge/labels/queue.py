"""The queue of labelling: it hands cases to raters and keeps their answers. A terminal and a web page both use it.

The case that comes next is found in ``store.py`` (``find_next``), and a lease there (``take_lease``) keeps two raters
from the same case. The order of all cases is set in ``intake.py``, and the settled label of a case is decided in
``truth.py``.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Self

from adjudge.dataset.case import LabelValue, check_text
from adjudge.dataset.contents import ContentSet, ErasedContent, digest_content
from adjudge.dataset.dataset import Dataset
from adjudge.dataset.label import Label, LabelDesign, LabelOrder
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_flag, check_seconds, check_whole_number
from adjudge.formats.text import show
from adjudge.guards.approval.approval import read_name
from adjudge.labels.agreement import LabelAgreement, compute_label_agreement
from adjudge.labels.intake import read_sizes, update_cases
from adjudge.labels.planned_order import PlannedOrder, load_order, order_complete
from adjudge.labels.source import LabelSource, SourceCase, open_source
from adjudge.labels.store import RANDOM_ORDER, Event, LabelMode, LabelStore, OrderPosition, find_position
from adjudge.labels.task import LabelDraws, LabelImport, LabelProgress, LabelTask, UndoneAnswer
from adjudge.labels.truth import Truth, find_truths
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Criterion, Rubric
from adjudge.runs.folder import Run

LONGEST_COMMENT = 10_000

LEASE_SECONDS = 900.0
"""The seconds for which a case is kept for whoever got it."""

LONGEST_LEASE = 30 * 86_400.0

MOST_RATERS = 1_000

_PACED = 21
"""The number of last answers from which a rater's pace is computed."""

_PAUSE = timedelta(minutes=10)
"""Between two answers further apart, the rater did something else."""


class LabelQueue:
    """Hands the cases of a run or a data set to raters, and keeps what they say. ``open_label_queue`` opens one.

    Every call is on the disk when it returns. Any number of processes and raters may use one file at once. A case that
    is handed out is kept for its rater for 15 minutes: others get it in their place only afterwards, or when the queue
    is closed. An answer that comes later counts all the same, because no work of a person is thrown away.

    ``session`` tells apart two places in which one rater works; by default it is this queue. A web page passes the
    rater's name or a sign-in, so that a page that is loaded again shows the same case.

    Args:
        source: What is labelled: a run, a data set, or the path of one.
        store: The file of labels; needed for a ``Dataset``.
        per_case: How many raters each case is to have.
        by_criterion: Ask for each criterion of the rubric, and not for the case as a whole; rules are not asked for.
        rubric: By what the cases are good; by default that of the run, or the case's own.
        pairs: Whether the contents of a data set are pairs; a run says so itself.
        seed: Which random order; only for a new file.
        lease_seconds: How long a case is kept for whoever got it.
    """

    def __init__(
        self,
        source: Run | Dataset | str | os.PathLike[str],
        *,
        store: str | os.PathLike[str] | None = None,
        per_case: int = 1,
        by_criterion: bool = False,
        rubric: Rubric | str | os.PathLike[str] | None = None,
        pairs: bool = False,
        seed: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._per_case = check_whole_number("per_case", per_case, least=1, most=MOST_RATERS)
        self._mode: LabelMode = "criteria" if check_flag("by_criterion", by_criterion) else "whole"
        check_seconds("lease_seconds", lease_seconds, most=LONGEST_LEASE)
        self._lease_seconds = float(lease_seconds)
        self._session = secrets.token_hex(8)
        if seed is not None:
            check_whole_number("seed", seed, least=0)
        loaded_rubric = load_rubric(rubric) if rubric is not None else None
        self._source, default_path = open_source(source, rubric=loaded_rubric, pairs=check_flag("pairs", pairs))
        self._store = _open_store(self._source, _choose_path(store, default_path), seed)

    @property
    def path(self) -> Path:
        """The file in which the labels are."""
        return self._store.path

    @property
    def plan(self) -> str | None:
        """The id of the plan that gives the order; ``None`` where the order is a random one over all cases."""
        return self._store.find_fact("plan_id") or None

    @property
    def draw_problem(self) -> str | None:
        """The reason why labels given now are no random sample of the run, or why its plan is not followed."""
        if self._store.find_contents() is None:
            return (
                "the run is not finished, so labels that are given now are not drawn from all of its cases; they count "
                "as drawn at random when the order comes to their cases again"
            )
        return self._store.find_fact("plan_problem") or None

    # ---------------------------------------------------------------- a rater's work

    def next(
        self, rater: str, *, blind: bool = True, skipped: bool = False, session: str | None = None
    ) -> LabelTask | None:
        """The next question to a rater, or ``None`` where nothing is left for them now.

        The same question comes again until it is answered or skipped. Raises ``UsageError`` for a rater without a
        printable name.

        Args:
            rater: The name of the person who labels.
            blind: Leave out what the judge made of the case. False shows it; that is remembered, and the rater's labels
                of the case are never blind from then on.
            skipped: Hand out what the rater skipped.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        rater = read_name(rater, "rater")
        session = session or self._session
        with self._store.change():
            while True:
                name = self._store.find_next(rater, session, self._mode, per_case=self._per_case, skipped=skipped)
                if name is None:
                    return None
                source_case = self._source.read(name, self._store)
                criterion = self._find_criterion(source_case, rater)
                if criterion is None and self._mode == "criteria":
                    # Its criteria are all decided by rules, or were answered in a file that was imported.
                    self._mark_done(name, rater, session)
                    continue
                self._store.mark_seen([name], rater, "drawn")
                contents = self._store.find_contents()
                if contents is not None:
                    self._store.mark_seen([name], rater, _name_draw(contents))
                until = self._store.take_lease(name, rater, session, self._mode, self._lease_seconds)
                was_skipped = skipped or self._store.has_skipped(name, rater, session, self._mode)
                return self._make_task(source_case, rater, criterion, until, blind=blind, skipped=was_skipped)

    def _make_task(
        self,
        source_case: SourceCase,
        rater: str,
        criterion: Criterion | None,
        until: float,
        *,
        blind: bool,
        skipped: bool = False,
        others: tuple[Label, ...] = (),
    ) -> LabelTask:
        """Make the task of labelling a case, which its rater has until a time in seconds since 1970.

        If it shows the judge's results, the file remembers that the rater has seen them. ``others`` are the labels to
        show, where a difference is to be settled.
        """
        case = source_case.case
        if not check_flag("blind", blind) and source_case.results:
            self._store.mark_seen([case.id], rater, "verdict")
        return LabelTask(
            case=case.id,
            content=case.content,
            subject=digest_content(case.content),
            task=case.task,
            reference=case.reference,
            context=case.context,
            rubric=source_case.rubric,
            criterion=criterion,
            order=self._choose_order(source_case, rater),
            comment=self._store.find_comment(case.id, rater, None if criterion is None else criterion.name),
            until=datetime.fromtimestamp(until, UTC),
            skipped=skipped,
            results=() if blind else source_case.results,
            others=others,
        )

    def record(
        self,
        rater: str,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        session: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """Keep a rater's answer, and return it as a label; it replaces what they answered before.

        Raises ``UsageError`` for a case or a criterion that is not asked for, a value that is no answer, or the
        ``subject`` of another content.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
            value: The answer: true, false, a number or ``cannot_tell``; of a pair ``first``, ``second``, ``tie`` or
                ``cannot_tell``, naming the case's own sides: ``LabelTask.name_shown`` has the side that was shown in a
                place.
            criterion: The criterion that it is about; ``None`` is the case as a whole.
            comment: What was written with it; without one, what ``comment`` kept before.
            session: The place in which the rater works, where one has several; by default this queue.
            subject: The ``subject`` of the task that the rater was shown; ``None`` compares nothing.
        """
        rater = read_name(rater, "rater")
        session = session or self._session
        with self._store.change():
            source_case = self._read_source_case(case)
            _check_subject(source_case, subject)
            self._check_criterion(source_case, criterion)
            label = self._make_label(source_case, rater, value, criterion, comment)
            for seq, before in self._store.list_answers(case, rater):
                if before.criterion == criterion and before.kind == "person":
                    self._take_back(seq, rater, session, case, self._mode)
            # The answer to the last criterion that was unanswered, or to the case as a whole.
            is_done = len(self._list_unanswered(source_case, rater)) <= 1
            self._add_label(label, session, self._mode, done=is_done, drawn=self._find_order_position(case, rater))
            if is_done:
                self._store.free_leases(session, case)
            return label

    def skip(self, rater: str, case: str, *, session: str | None = None) -> None:
        """Put a case off: it comes again when ``next`` is asked for what was skipped.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        rater = read_name(rater, "rater")
        self._skip_case(rater, case, session or self._session, self._mode)

    def undo(self, rater: str, *, session: str | None = None) -> UndoneAnswer | None:
        """Take back the rater's last answer or skip, and hand the case to them again; ``None`` if there is none.

        What was done in this session goes first. The answer stays in the file with a mark that takes it back.

        Args:
            rater: The name of the person who labels.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        return self._undo_last(read_name(rater, "rater"), session or self._session, self._mode)

    def _undo_last(self, rater: str, session: str, mode: LabelMode) -> UndoneAnswer | None:
        """Take back the last answer or skip, and hand its case to the rater again; ``None`` if there is none.

        If the case was marked as answered in full since then, that mark is taken back too.
        """
        with self._store.change():
            last = self._store.find_last(rater, session, mode)
            if last is None:
                return None
            self._take_back(last.seq, rater, session, last.case, mode)
            for seq in self._store.list_marks(last.case, rater, mode, after=last.seq):
                self._take_back(seq, rater, session, last.case, mode)
            self._store.free_leases(session)
            self._store.take_lease(last.case, rater, session, mode, self._lease_seconds)
            return UndoneAnswer(case=last.case, criterion=last.criterion, label=last.label)

    def find_undoable(self, rater: str, *, session: str | None = None) -> UndoneAnswer | None:
        """Find what ``undo`` would take back, without taking it back; ``None`` if there is nothing.

        Args:
            rater: The name of the person who labels.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        last = self._store.find_last(read_name(rater, "rater"), session or self._session, self._mode)
        return None if last is None else UndoneAnswer(case=last.case, criterion=last.criterion, label=last.label)

    def show_others(self, rater: str, case: str) -> tuple[Label, ...]:
        """Show people's labels of a case that this rater has answered, their own included.

        That is remembered: if they label the case again, that label is not blind. Raises ``UsageError`` for a case that
        they have not answered in full, because what others said would sway them.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
        """
        rater = read_name(rater, "rater")
        with self._store.change():
            source_case = self._read_source_case(case)
            answered = any(label.kind == "person" for _, label in self._store.list_answers(case, rater))
            if not answered or self._list_unanswered(source_case, rater):
                raise UsageError(f"{show(rater)} has not labelled the case {show(case)}; label it first")
            self._store.mark_seen([case], rater, "others")
            return tuple(label for label in self._store.labels(case) if label.kind in ("person", "adjudication"))

    def show_agreement(self, rater: str) -> LabelAgreement:
        """Show how far people agree, to a rater who has nothing left to label or settles what people differ about.

        That is remembered, as ``note_shown`` has it.

        Args:
            rater: The name of the person who labels.
        """
        self.note_shown(rater)
        return compute_label_agreement(self._store.labels())

    def note_shown(self, rater: str, *, labels: bool = False) -> None:
        """Remember that a rater is shown a figure made of everybody's labels, or the labels themselves.

        A figure tells what others said of a case that this rater labelled too: they answer again and look how it moves.
        So a label that they give such a case afterwards is not blind. Labels tell it of every case.

        Args:
            rater: The name of the person who labels.
            labels: Whether they are shown the labels themselves.
        """
        rater = read_name(rater, "rater")
        labels_of_people = [label for label in self._store.labels() if label.kind in ("person", "adjudication")]
        others = dict.fromkeys(
            label.case for label in labels_of_people if label.rater != rater or label.kind == "adjudication"
        )
        mine = {label.case for label in labels_of_people if label.rater == rater}
        shown_cases = [case for case in others if labels or case in mine]
        if shown_cases:
            with self._store.change():
                self._store.mark_seen(shown_cases, rater, "others")

    def list_open(self, rater: str) -> frozenset[str]:
        """List the cases that a rater is still to label, and whose verdict they have not seen.

        None where neither a plan drew cases nor the rater has begun: then nobody knows that they will label here.

        Args:
            rater: The name of the person who labels.
        """
        rater = read_name(rater, "rater")
        if self.plan is None and not self._store.count_done(self._mode, rater=rater):
            return frozenset()
        return frozenset(self._store.list_open(rater, self._mode, per_case=self._per_case))

    def note_read(self, rater: str, cases: Iterable[str], *, labels: bool = False) -> None:
        """Remember that a rater has read what the judge said of some cases.

        Labels that they give them afterwards are not blind.

        Args:
            rater: The name of the person who labels.
            cases: The ids of the cases.
            labels: Whether they read what people said as well.
        """
        rater, read_cases = read_name(rater, "rater"), list(cases)
        with self._store.change():
            self._store.mark_seen(read_cases, rater, "verdict")
            if labels:
                self._store.mark_seen(read_cases, rater, "others")

    def read_parts(self, rater: str, case: str) -> tuple[tuple[str, str], ...]:
        """The texts of a case as this rater is shown them, as ``LabelTask.parts`` has them.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
        """
        source_case = self._read_source_case(case)
        until = datetime.now(UTC).timestamp()
        return self._make_task(source_case, read_name(rater, "rater"), None, until, blind=True).parts

    def list_answered(self, rater: str) -> tuple[str, ...]:
        """The ids of the cases that a rater has labelled, in the order in which they did.

        Args:
            rater: The name of the person who labels.
        """
        rater = read_name(rater, "rater")
        mine = [label.case for label in self._store.labels() if label.rater == rater and label.kind == "person"]
        return tuple(dict.fromkeys(mine))

    def comment(
        self, rater: str, case: str, text: str, *, criterion: str | None = None, session: str | None = None
    ) -> None:
        """Keep what a rater writes about a case; it goes with their answer, given before or afterwards.

        An empty text takes the comment away. Raises ``UsageError`` for one of more than 10,000 characters.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
            text: What the rater writes.
            criterion: The criterion that it is about; ``None`` is the case as a whole.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        rater = read_name(rater, "rater")
        _check_comment(text)
        session = session or self._session
        with self._store.change():
            self._check_criterion(self._read_source_case(case), criterion)
            mode, time = self._mode, self._store.find_time()
            self._store.add(
                Event(action="comment", rater=rater, session=session, case=case, mode=mode, criterion=criterion,
                      text=text), at=time,
            )  # fmt: skip
            answers = [label for _, label in self._store.list_answers(case, rater) if label.kind == "person"]
            for answer in answers:
                if answer.criterion == criterion:
                    # A label has its comment in it, so the same answer is recorded again.
                    self.record(rater, case, answer.value, criterion=criterion, comment=text, session=session)
                    return

    def progress(self, rater: str) -> LabelProgress:
        """Return the progress of labelling, for everybody and for one rater.

        Args:
            rater: The name of the person who labels.
        """
        rater = read_name(rater, "rater")
        return LabelProgress(
            total=self._store.count_ordered(),
            per_case=self._per_case,
            complete=self._store.count_done(self._mode, least=self._per_case),
            mine=self._store.count_done(self._mode, rater=rater),
            skipped=self._store.count_skipped(self._mode, rater),
            seconds_per_answer=_find_pace(self._store.list_times(rater, _PACED)),
        )

    def count_left(self, rater: str) -> int:
        """Count the cases that are left for a rater: what they have not answered, and that needs another answer.

        Cases that somebody else has just now are counted, because they may come back.

        Args:
            rater: The name of the person who labels.
        """
        return self._store.count_left(self._mode, read_name(rater, "rater"), per_case=self._per_case)

    # ---------------------------------------------------------------- what people differ about

    def truths(self, *, criterion: str | None = None) -> dict[str, Truth]:
        """The truth of every labelled case by its id, as ``find_truths`` has it.

        Args:
            criterion: The criterion whose labels count; ``None`` is the case as a whole.
        """
        return find_truths(self._store.labels(), criterion=criterion)

    def list_differences(self) -> tuple[Truth, ...]:
        """List what people differ about and nobody has settled: the cases, then the criteria; the unresolved first."""
        labels = self._store.labels()
        names = sorted({label.criterion for label in labels if label.criterion is not None})
        differences = [
            truth
            for name in (None, *names)
            for truth in find_truths(labels, criterion=name).values()
            if truth.differs and truth.adjudication is None
        ]
        return tuple(sorted(differences, key=lambda truth: truth.value is not None))

    def next_difference(
        self,
        rater: str,
        *,
        blind: bool = True,
        session: str | None = None,
        case: str | None = None,
        criterion: str | None = None,
    ) -> LabelTask | None:
        """The next difference to settle, with what everybody said; ``None`` where nothing is left now.

        What was skipped in this session, and what another session has, is left out. Whoever is shown what others said
        of a case is not asked to label it any more.

        Args:
            rater: The name of the person who labels.
            blind: Leave out what the judge made of the case.
            session: The place in which the rater works, where one has several; by default this queue.
            case: The case whose difference comes first, also if it was skipped; another one comes where somebody else
                has it. ``None`` is the next one.
            criterion: The criterion that the difference of ``case`` is about; ``None`` is the case as a whole.
        """
        rater = read_name(rater, "rater")
        session = session or self._session
        with self._store.change():
            leased = self._store.list_leased(session, "adjudicate")

            def is_chosen(truth: Truth) -> bool:
                return case is not None and (truth.case, truth.criterion) == (case, criterion)

            for truth in sorted(self.list_differences(), key=lambda truth: not is_chosen(truth)):
                was_skipped = self._store.has_skipped(truth.case, rater, session, "adjudicate")
                if truth.case in leased or (was_skipped and not is_chosen(truth)):
                    continue
                source_case = self._read_source_case(truth.case)
                self._store.mark_seen([truth.case], rater, "labels")
                asked_criterion = _find_named_criterion(source_case, truth.criterion)
                until = self._store.take_lease(truth.case, rater, session, "adjudicate", self._lease_seconds)
                return self._make_task(source_case, rater, asked_criterion, until, blind=blind, others=truth.labels)
            return None

    def adjudicate(
        self,
        rater: str,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        session: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """Keep how a difference was settled, as a label of the kind ``adjudication``: it decides over all others.

        Raises ``UsageError`` where nobody labelled the case, for a value that is no answer, or the ``subject`` of
        another content.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
            value: The answer that decides.
            criterion: The criterion that it is about; ``None`` is the case as a whole.
            comment: What the rater writes about it.
            session: The place in which the rater works, where one has several; by default this queue.
            subject: The ``subject`` of the task that the rater was shown, as for ``record``; ``None`` compares nothing.
        """
        rater = read_name(rater, "rater")
        session = session or self._session
        with self._store.change():
            source_case = self._read_source_case(case)
            _check_subject(source_case, subject)
            if not self._has_person_label(case, criterion):
                clause = "" if criterion is None else f" for {show(criterion)}"
                raise UsageError(
                    f"nobody labelled the case {show(case)}{clause}, so there is nothing to settle; label it"
                )
            self._store.mark_seen([case], rater, "labels")
            # Who settles knows what people said: here, blind is about the judge alone.
            blind = not self._store.was_seen(case, rater, "verdict")
            label = self._make_label(source_case, rater, value, criterion, comment)
            label = replace(label, kind="adjudication", design=None, blind=blind)
            self._add_label(label, session, "adjudicate", done=True)
            self._store.free_leases(session, case)
            return label

    def undo_difference(self, rater: str, *, session: str | None = None) -> UndoneAnswer | None:
        """Take back how the rater last settled a difference, or that they left it open; ``None`` if there is none.

        Args:
            rater: The name of the person who labels.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        return self._undo_last(read_name(rater, "rater"), session or self._session, "adjudicate")

    def skip_difference(self, rater: str, case: str, *, session: str | None = None) -> None:
        """Leave a difference open; ``next_difference`` does not hand it out again in this session.

        Args:
            rater: The name of the person who labels.
            case: The id of the case.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        rater = read_name(rater, "rater")
        self._skip_case(rater, case, session or self._session, "adjudicate")

    # ---------------------------------------------------------------- in and out

    def labels(self) -> Iterator[Label]:
        """Every label that was not taken back, in the order in which they came; ``write_labels`` writes a file.

        Each says which content was read. The design of labels in random order says from which contents they were drawn,
        and how many came up so far; labels that were given before a run was finished have none.
        """
        yield from self._store.labels()

    def import_labels(self, labels: Iterable[Label], *, session: str | None = None) -> LabelImport:
        """Take in labels from elsewhere, in one step; importing them again changes nothing.

        They keep their raters, kinds, times and designs. What was taken back here stays taken back. Labels of cases
        that are not here, and labels of another content than the case has, are counted and left out. A label that does
        not say which content was read is taken in, and its case comes up all the same: nobody knows what it is about.
        Raises ``UsageError``, and takes in none, for what is no label.

        Args:
            labels: The labels, such as those of ``read_labels``.
            session: The place in which the rater works, where one has several; by default this queue.
        """
        added = known = 0
        elsewhere: dict[str, None] = {}  # as sets that keep their order
        other_contents: dict[str, None] = {}
        answered: dict[tuple[str, str], None] = {}
        session = session or self._session
        with self._store.change():
            time = self._store.find_time()
            for label in labels:
                _check_import(label)
                if not self._store.knows(label.case):
                    elsewhere[label.case] = None
                elif label.subject not in (None, self._source.find_subject(label.case, self._store)):
                    other_contents[label.case] = None
                elif not self._add_imported(label, session, time):
                    known += 1
                else:
                    added += 1
                    if label.criterion is not None and label.kind == "person":
                        answered[label.case, label.rater] = None
            for case, rater in answered:
                self._mark_done_if_answered(case, rater, session)
        return LabelImport(added=added, known=known, elsewhere=tuple(elsewhere), other_contents=tuple(other_contents))

    def _mark_done_if_answered(self, case: str, rater: str, session: str) -> None:
        """Mark a case as done by a rater if they have answered for each of its criteria."""
        if not self._list_unanswered(self._source.read(case, self._store), rater, "criteria"):
            self._mark_done(case, rater, session)

    def list_draws(self) -> LabelDraws | None:
        """List the labels so far as draws for a rate: each labelled case in its order, with the stratum it is from.

        A case counts, once, when ``per_case`` raters labelled it or somebody settled it: before, another label might
        still change what was counted. The strata are those of the plan, else the verdicts of the judge, else all cases
        are one. ``None`` where the answers are not good or bad: criteria and pairs.
        """
        planned = load_order(self._source.folder) if self.plan is not None else None
        verdicts = self._source.count_verdicts()
        if self._mode != "whole" or (self._source.run is not None and not verdicts):
            return None
        sizes = planned.sizes if planned is not None else verdicts or {"all": self._store.count_cases()}
        labels = [(seq, label) for seq, label in self._store.list_labels() if label.subject is not None]
        truths = find_truths(label for _, label in labels)
        draws = []
        for case, stratum in self._list_complete(labels, planned):
            if stratum in sizes:
                value = truths[case].value
                draws.append((stratum, value if isinstance(value, bool) else None))
        return LabelDraws(
            sizes=dict(sizes),
            draws=tuple(draws),
            phases=() if planned is None else planned.phases,
            within=None if planned is None else planned.within,
            ignored_groups=int(self._store.find_fact("groups") or 0),
        )

    def _list_complete(
        self, labels: Sequence[tuple[int, Label]], planned: PlannedOrder | None
    ) -> list[tuple[str, str]]:
        """List the id and the stratum of each complete case that was drawn, in the order in which these cases count.

        ``labels`` have the number of their event, and ``planned`` is the order of the plan that is followed. Without
        one the stratum is the judge's verdict.
        """
        complete, contents = self._find_complete(labels), self._store.find_contents()
        drawn = {label.case for _, label in labels if self._is_drawn(label, contents)}
        if planned is None:
            ordered = self._sort_randomly_drawn({case: seq for case, seq in complete.items() if case in drawn})
            return [(case, self._find_verdict(case)) for case in ordered]
        strata = {planned_case.case: planned_case.stratum or "" for planned_case in planned.drawn}
        times = {case: seq for case, seq in complete.items() if case in strata}
        return [(case, strata[case]) for case in order_complete(strata.items(), times, times.keys() - drawn)]

    def _sort_randomly_drawn(self, complete: Mapping[str, int]) -> list[str]:
        """Sort cases of the random order by when they count: once they are complete and the order has reached them.

        ``complete`` has the number of the event with which each case was complete. A case that somebody picked before
        its turn is reached when a case at a later position is handed out; cases that were not reached are left out.
        """
        seed = int(self._store.find_fact("seed") or 0)
        positions = {case: find_position(seed, case) for case in complete}
        reached = sorted(self._store.list_reached_positions(), reverse=True)
        ordered: list[tuple[int, int, str]] = []
        # From the last position to the first: the earliest event so far that reached the position or a later one.
        earliest_seq, next_index = None, 0
        for case in sorted(complete, key=lambda name: -positions[name]):
            while next_index < len(reached) and reached[next_index][0] >= positions[case]:
                seq = reached[next_index][1]
                earliest_seq = seq if earliest_seq is None else min(earliest_seq, seq)
                next_index += 1
            if earliest_seq is not None:
                ordered.append((max(earliest_seq, complete[case]), positions[case], case))
        return [case for _, _, case in sorted(ordered)]

    def _find_complete(self, labels: Iterable[tuple[int, Label]]) -> dict[str, int]:
        """Find the number of the event with which each case had enough labels as a whole, or was settled."""
        raters: dict[str, set[str]] = {}
        complete: dict[str, int] = {}
        for seq, label in labels:
            if label.criterion is not None or label.kind not in ("person", "adjudication"):
                continue
            raters_of_case = raters.setdefault(label.case, set())
            if label.kind == "person":
                raters_of_case.add(label.rater)
            if label.kind == "adjudication" or len(raters_of_case) >= self._per_case:
                complete.setdefault(label.case, seq)
        return complete

    def _is_drawn(self, label: Label, contents: ContentSet | None) -> bool:
        """Return whether a label's case was drawn by the present order: by its plan, or by the random order.

        ``contents`` are those that the cases have now. Another plan drew cases with other probabilities.
        """
        design = label.design
        if design is None:
            return False
        if self.plan is not None:
            return design.plan == self.plan
        return design.plan.startswith(RANDOM_ORDER) and design.drawn_from == contents

    def _find_verdict(self, case: str) -> str:
        """Find the judge's verdict on a case as the name of its stratum; ``all`` where there is no run."""
        return "all" if self._source.run is None else self._source.find_verdict(case) or ""

    def close(self) -> None:
        """Give back the cases that this queue handed out, and close the file."""
        self._store.free_leases(self._session)
        self._store.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---------------------------------------------------------------- within

    def _read_source_case(self, case: str) -> SourceCase:
        """Read a case with its rubric and results; raise ``UsageError`` for an id that no case has."""
        if not isinstance(case, str) or not self._store.knows(case):
            raise UsageError(f"{self.path} has no case {show(case)}; label a case that `next` hands out")
        return self._source.read(case, self._store)

    def _find_criterion(self, source_case: SourceCase, rater: str) -> Criterion | None:
        """Find the first criterion that a rater has not answered.

        ``None`` where all are answered, or the case is asked for as a whole. Raises ``UsageError`` for a case without
        a rubric.
        """
        if self._mode != "criteria":
            return None
        if source_case.rubric is None:
            raise UsageError(
                f"the case {show(source_case.case.id)} has no criteria to ask for; name one with ",
                Argument("rubric"),
                argument="rubric",
            )
        names = self._list_unanswered(source_case, rater)
        for criterion in _list_asked_criteria(source_case.rubric):
            if criterion.name in names:
                return criterion
        return None

    def _list_unanswered(self, source_case: SourceCase, rater: str, mode: LabelMode | None = None) -> list[str]:
        """List the names of the criteria that a rater has not answered; none where a case is asked for as a whole."""
        if (mode or self._mode) != "criteria":
            return []
        answers = self._store.list_answers(source_case.case.id, rater)
        # A label that does not say which content was read is no answer: the case may have had another one then.
        answered = {label.criterion for _, label in answers if label.kind == "person" and label.subject is not None}
        criteria = _list_asked_criteria(source_case.rubric)
        return [criterion.name for criterion in criteria if criterion.name not in answered]

    def _check_criterion(self, source_case: SourceCase, criterion: str | None) -> None:
        """Raise ``UsageError`` unless this is a criterion that is asked for, or ``None`` where whole cases are."""
        if self._mode != "criteria":
            if criterion is not None:
                raise UsageError(
                    f"the case is asked for as a whole, got the criterion {show(criterion)}; leave it out",
                    argument="criterion",
                )
            return
        names = [asked_criterion.name for asked_criterion in _list_asked_criteria(source_case.rubric)]
        if criterion not in names:
            raise UsageError(
                f"criterion must be one of {', '.join(map(show, names))}; got {show(criterion)}", argument="criterion"
            )

    def _make_label(
        self, source_case: SourceCase, rater: str, value: LabelValue, criterion: str | None, comment: str | None
    ) -> Label:
        """Make a label: blind unless its rater has seen the verdict, or what others said."""
        name = source_case.case.id
        checked_value = _check_value(source_case, value)
        if comment is None:
            comment = self._store.find_comment(name, rater, criterion)
        _check_comment(comment or "")
        knows_verdict = self._store.was_seen(name, rater, "verdict")
        knows_others = self._store.was_seen(name, rater, "others") or self._store.was_seen(name, rater, "labels")
        blind = not knows_verdict and not knows_others
        return Label(
            case=name, rater=rater, value=checked_value, criterion=criterion, run=self._source.run if knows_verdict else
            None, order=self._choose_order(source_case, rater), at=self._store.find_time(), blind=blind,
            subject=digest_content(source_case.case.content), design=self._find_design(name, rater), comment=comment or
            None )  # fmt: skip

    def _find_design(self, case: str, rater: str) -> LabelDesign | None:
        """Find the design of a label of a case that the plan drew, and that was handed to this rater; else ``None``."""
        drawn = self._store.find_drawn(case)
        if drawn is None or drawn.stratum is None or drawn.p is None or not self._store.was_seen(case, rater, "drawn"):
            return None
        contents, size = self._store.find_contents(), read_sizes(self._store).get(drawn.stratum)
        design = LabelDesign(plan=self.plan or "plan", stratum=drawn.stratum, p=drawn.p)
        if contents is None or size is None:
            return design
        return replace(design, size=size, contents=contents.digest, cases=contents.cases)

    def _find_order_position(self, case: str, rater: str) -> OrderPosition | None:
        """Find the position of a case in the random order over all contents, if the order handed it to this rater.

        ``None`` for a case of a plan, and for one that somebody picked: that is no draw.
        """
        drawn, contents = self._store.find_drawn(case), self._store.find_contents()
        if drawn is None or drawn.stratum is not None or contents is None:
            return None
        was_handed_out = self._store.was_seen(case, rater, _name_draw(contents))
        return OrderPosition(contents=contents, position=drawn.position) if was_handed_out else None

    def _choose_order(self, source_case: SourceCase, rater: str) -> LabelOrder | None:
        """Choose the order in which a rater sees a pair: by chance, and the same whenever they see it again."""
        if not source_case.pair:
            return None
        text = f"{self._store.find_fact('seed')}:{rater}:{source_case.case.id}"
        return "ba" if sha256(text.encode(errors="surrogatepass")).digest()[0] & 1 else "ab"

    def _add_label(
        self, label: Label, session: str, mode: LabelMode, *, done: bool, drawn: OrderPosition | None = None
    ) -> None:
        """Keep a label, at its own time if it has one; ``done`` and ``drawn`` are as in ``Event``."""
        event = Event(
            action="label", rater=label.rater, session=session, case=label.case, mode=mode, criterion=label.criterion,
            label=label, done=done, drawn=drawn,
        )  # fmt: skip
        time = label.at or self._store.find_time()
        self._store.add(event, at=time)

    def _add_imported(self, label: Label, session: str, time: datetime) -> bool:
        """Keep a label from elsewhere, as imported at ``time``; return whether it is a new one."""
        is_whole = label.criterion is None
        mode: LabelMode = "adjudicate" if label.kind == "adjudication" else "whole" if is_whole else "criteria"
        done = is_whole and label.kind == "person" and label.subject is not None
        if label.subject is None and self._store.knows_label(label):
            return False
        event = Event(
            action="import", rater=label.rater, session=session, case=label.case, mode=mode, criterion=label.criterion,
            label=label, done=done,
        )  # fmt: skip
        return self._store.add(event, at=time)

    def _take_back(self, seq: int, rater: str, session: str, case: str, mode: LabelMode) -> None:
        """Add an event that takes back the event with the number ``seq``."""
        event = Event(action="undo", rater=rater, session=session, case=case, mode=mode, undoes=seq)
        self._store.add(event, at=self._store.find_time())

    def _mark_done(self, case: str, rater: str, session: str) -> None:
        """Add an event that marks all criteria of a case as answered by a rater, and end its lease."""
        event = Event(action="done", rater=rater, session=session, case=case, mode="criteria", done=True)
        self._store.add(event, at=self._store.find_time())
        self._store.free_leases(session, case)

    def _skip_case(self, rater: str, case: str, session: str, mode: LabelMode) -> None:
        """Add an event that the rater put a case off, and end its lease."""
        with self._store.change():
            self._read_source_case(case)
            event = Event(action="skip", rater=rater, session=session, case=case, mode=mode)
            self._store.add(event, at=self._store.find_time())
            self._store.free_leases(session, case)

    def _has_person_label(self, case: str, criterion: str | None) -> bool:
        """Return whether a person labelled a case, for one criterion or (``None``) as a whole."""
        return any(label.kind == "person" and label.criterion == criterion for label in self._store.labels(case))


def _name_draw(contents: ContentSet) -> str:
    """Make the name under which ``mark_seen`` keeps that a case came up while the cases had these contents."""
    return f"drawn {contents.digest}"


def _check_subject(source_case: SourceCase, subject: str | None) -> None:
    """Raise ``UsageError`` where the texts were deleted, or differ from those that the rater read.

    ``subject`` is the digest of the content that the rater read; ``None`` compares nothing.
    """
    if isinstance(source_case.case.content, ErasedContent):
        raise UsageError(
            f"the texts of the case {show(source_case.case.id)} were deleted by `adjudge forget`, so nobody can label "
            "it; skip it"
        )
    if subject not in (None, digest_content(source_case.case.content)):
        raise UsageError(
            f"the case {show(source_case.case.id)} has another content than the one that was labelled, so nothing was "
            "recorded; read the case again"
        )


def _list_asked_criteria(rubric: Rubric | None) -> tuple[Criterion, ...]:
    """List the criteria that people are asked about: those that no rule decides."""
    return () if rubric is None else tuple(criterion for criterion in rubric.criteria if criterion.rule is None)


def _check_value(source_case: SourceCase, value: LabelValue) -> bool | float | str:
    """Return the value; raise ``UsageError`` if it is no possible answer for a pair, or for a single content."""
    words = ("first", "second", "tie", CANNOT_TELL) if source_case.pair else (CANNOT_TELL,)
    is_answer = value in words if isinstance(value, str) else not source_case.pair and value is not None
    if value is None or not is_answer:
        answers = "true, false, a number" if not source_case.pair else "first, second, tie"
        raise UsageError(
            f"the answer to the case {show(source_case.case.id)} is {answers} or {CANNOT_TELL}; got {show(value)}"
        )
    return value


def _find_named_criterion(source_case: SourceCase, name: str | None) -> Criterion | None:
    """Find the criterion of this name in the case's rubric, or make one of the name alone; ``None`` for no name."""
    if name is None:
        return None
    criteria = () if source_case.rubric is None else source_case.rubric.criteria
    for criterion in criteria:
        if criterion.name == name:
            return criterion
    return Criterion(name=name, description=name)


def _find_pace(times: Iterable[datetime]) -> float | None:
    """Compute the median time between two answers in seconds, without pauses; ``None`` for fewer than two such times.

    ``times`` are those of the answers, latest first.
    """
    listed = list(times)
    gaps = [later - earlier for later, earlier in pairwise(listed)]
    steady = [gap.total_seconds() for gap in gaps if timedelta(0) < gap <= _PAUSE]
    return median(steady) if len(steady) >= 2 else None


def _check_comment(text: object) -> None:
    """Raise ``UsageError`` for a comment that is no text, too long, or cannot be encoded."""
    if not isinstance(text, str):
        raise UsageError(f"a comment must be a text, got {show(text)}")
    if len(text) > LONGEST_COMMENT:
        raise UsageError(f"a comment has at most {LONGEST_COMMENT:,} characters, got {len(text):,}; shorten it")
    check_text(text)


def _check_import(label: Any) -> None:
    """Raise ``UsageError`` for what is no label, or has a text that cannot be kept."""
    if not isinstance(label, Label):
        raise UsageError(
            f"labels must be Label, got {show(label)}; load_labels reads a file of them", argument="labels"
        )
    try:
        check_text(label.to_dict())
    except UsageError as error:
        raise UsageError(f"the label of {show(label.rater)} for {show(label.case)} cannot be kept: {error}") from None


def open_label_queue(
    source: Run | Dataset | str | os.PathLike[str],
    *,
    store: str | os.PathLike[str] | None = None,
    per_case: int = 1,
    by_criterion: bool = False,
    rubric: Rubric | str | os.PathLike[str] | None = None,
    pairs: bool = False,
    seed: int | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> LabelQueue:
    """Open the queue of labels of a run, given as a ``Run`` or its folder, or of a data set, given as it is or by path.

    Labels are kept in ``store``: by default ``labels.sqlite`` in the run's folder, or beside the file of a data set
    with ``.labels.sqlite`` after its name; readable by its owner alone. The order is that of the run's plan, else a
    random one over all cases by ``seed``, which is drawn when the file is begun.

    Args:
        source: What is labelled.
        store: The file of labels; needed for a ``Dataset``.
        per_case: How many raters each case is to have.
        by_criterion: Ask for each criterion of the rubric, and not for the case as a whole; rules are not asked for.
        rubric: By what the cases are good; by default that of the run, or the case's own.
        pairs: Whether the contents of a data set are pairs; a run says so itself.
        seed: Which random order; only for a new file.
        lease_seconds: How long a case is kept for whoever got it.

    Raises:
        UsageError: Nothing can be read there, it changed since it was labelled, or the file holds something else.
    """
    return LabelQueue(
        source,
        store=store,
        per_case=per_case,
        by_criterion=by_criterion,
        rubric=rubric,
        pairs=pairs,
        seed=seed,
        lease_seconds=lease_seconds,
    )


def _choose_path(store: str | os.PathLike[str] | None, default: Path | None) -> Path:
    """Return the path of the file of labels: ``store``, else ``default``; raise ``UsageError`` without either."""
    if store is None and default is None:
        raise UsageError("store is missing: name the file in which the labels of a Dataset are kept", argument="store")
    return Path(store) if store is not None else Path(default or "")


def _open_store(source: LabelSource, path: Path, seed: int | None) -> LabelStore:
    """Open the file of labels, and bring its cases up to date; after an error, file and source are closed."""
    store = None
    try:
        store = LabelStore(path)
        update_cases(store, source, seed=seed)
    except BaseException:
        if store is not None:
            store.close()
        source.close()
        raise
    return store
