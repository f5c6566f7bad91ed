"""The file of labels: one SQLite file, to which events are only added.

What was recorded is on the disk when the call returns, so a process that is killed loses nothing. An answer that is
taken back stays in the file, with a mark that takes it back. Several processes may label at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal

from adjudge.dataset.contents import ContentSet, read_content_set
from adjudge.dataset.label import Label, LabelDesign
from adjudge.errors import Argument, UsageError
from adjudge.formats.sqlite import Mode
from adjudge.formats.sqlite_file import FileKind, SqliteFile
from adjudge.formats.text import clean, show

SCHEMA = "adjudge/label-store/1"

LabelMode = Literal["whole", "criteria", "adjudicate"]

Action = Literal["label", "skip", "comment", "done", "undo", "import"]

RANDOM_ORDER = "random order"
"""The beginning of the name of a design whose cases came up in a random order over all cases."""

_NO_UPDATE = (
    "CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'labels are only added'); END"
)

_TABLES = (
    """CREATE TABLE cases (
        id TEXT PRIMARY KEY, subject TEXT NOT NULL, position INTEGER, stratum TEXT, p REAL, body BLOB) STRICT""",
    "CREATE INDEX cases_position ON cases (position, id) WHERE position IS NOT NULL",
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, action TEXT NOT NULL, rater TEXT NOT NULL,
        session TEXT NOT NULL, case_id TEXT NOT NULL, criterion TEXT, mode TEXT NOT NULL, kind TEXT,
        done INTEGER NOT NULL, drawn TEXT, undoes INTEGER UNIQUE, digest TEXT UNIQUE, body TEXT) STRICT""",
    "CREATE INDEX events_case ON events (case_id, rater)",
    "CREATE INDEX events_rater ON events (rater, seq)",
    # Whoever deletes a label by hand has to say so to SQLite first: no statement of ours may do it by mistake.
    "CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'labels are only added'); END",
    _NO_UPDATE,
    """CREATE VIEW live AS SELECT * FROM events e WHERE action <> 'undo'
        AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.seq)""",
    """CREATE TABLE leases (
        case_id TEXT NOT NULL, rater TEXT NOT NULL, session TEXT NOT NULL, mode TEXT NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (case_id, session, mode)) STRICT""",
    """CREATE TABLE seen (
        case_id TEXT NOT NULL, rater TEXT NOT NULL, what TEXT NOT NULL, PRIMARY KEY (case_id, rater, what)) STRICT""",
)

CaseRow = tuple[str, str, int, bytes | None]
"""Id, digest, place in the order and, where it is not kept elsewhere, the body of a case."""

_ADD_CASE = """
    INSERT INTO cases (id, subject, position, body) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
        subject = excluded.subject, position = excluded.position, stratum = NULL, p = NULL, body = excluded.body"""

_PAGE = 1_000

_NEXT_CASE = """
    SELECT c.id FROM cases c WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode
            AND (l.done OR l.action = 'skip'))
        AND {free}
    ORDER BY c.position, c.id LIMIT 1"""

_NEXT_SKIPPED_CASE = """
    SELECT c.id FROM cases c JOIN
        (SELECT case_id, max(seq) AS last FROM live WHERE rater = :rater AND mode = :mode AND action = 'skip'
            GROUP BY case_id) s ON s.case_id = c.id
    WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode AND l.done)
        AND {free}
    ORDER BY s.last LIMIT 1"""

# The condition that a rater may get the case c: fewer than `per_case` others have answered it or have it now, the rater
# does not have it in another session, and has not seen what others said of it.
_IS_FREE = """
    NOT EXISTS (SELECT 1 FROM leases o WHERE o.case_id = c.id AND o.rater = :rater AND o.session <> :session
        AND o.mode = :mode AND o.until > :now)
    AND NOT EXISTS (SELECT 1 FROM seen n WHERE n.case_id = c.id AND n.rater = :rater AND n.what = 'labels')
    AND :per_case > (SELECT count(*) FROM (
        SELECT rater FROM live WHERE case_id = c.id AND rater <> :rater AND mode = :mode AND done
        UNION SELECT rater FROM leases WHERE case_id = c.id AND rater <> :rater AND mode = :mode AND until > :now))"""

# The cases that a rater may still be asked about. Skipped ones come again, and leases end, so both are among them.
_OPEN_CASES = """
    SELECT c.id FROM cases c WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode AND l.done)
        AND NOT EXISTS (SELECT 1 FROM seen n WHERE n.case_id = c.id AND n.rater = :rater
            AND n.what IN ('verdict', 'labels'))
        AND :per_case > (SELECT count(DISTINCT o.rater) FROM live o
            WHERE o.case_id = c.id AND o.rater <> :rater AND o.mode = :mode AND o.done)"""

_LEASED_CASE = """
    SELECT o.case_id FROM leases o WHERE o.session = :session AND o.rater = :rater AND o.mode = :mode
        AND o.until > :now AND EXISTS (SELECT 1 FROM cases c WHERE c.id = o.case_id AND c.position IS NOT NULL)
    ORDER BY o.until DESC LIMIT 1"""

_LAST_ACTION = """
    SELECT seq, action, case_id, criterion, body FROM live
    WHERE rater = :rater AND mode = :mode AND action IN ('label', 'skip')
    ORDER BY session = :session DESC, seq DESC LIMIT 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPosition:
    """The position in the random order at which a case was handed out, as the event of its label keeps it."""

    contents: ContentSet
    """The contents that the random order was over then; the file may have others by now."""
    position: int

    def write(self) -> str:
        """Write the position as a text: of the same contents, later positions sort later."""
        return f"{self.contents.digest} {self.position:017d} {self.contents.cases}"


def read_order_position(text: str | None) -> OrderPosition | None:
    """Read what ``OrderPosition.write`` wrote; ``None`` for anything else."""
    words = (text or "").split()
    if len(words) != 3:
        return None
    digest, position, cases = words
    return OrderPosition(contents=ContentSet(digest=digest, cases=int(cases)), position=int(position))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One act of a rater, to be added to the file."""

    action: Action
    rater: str
    session: str
    """The place in which the rater works."""
    case: str
    mode: LabelMode
    criterion: str | None = None
    label: Label | None = None
    done: bool = False
    """True if the rater has answered everything that is asked of the case."""
    drawn: OrderPosition | None = None
    """The position at which the random order over all contents handed the case out."""
    text: str | None = None
    """A comment."""
    undoes: int | None = None
    """The number of the event that this one takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAction:
    """The last action of a rater, which they can take back."""

    seq: int
    """The number of its event."""
    case: str
    criterion: str | None
    label: Label | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A case in the order of labelling."""

    case: str
    position: int
    """The position in the order: the index in a plan, or the one that ``find_position`` computes."""
    stratum: str | None = None
    """The stratum; only where a plan drew the case."""
    p: float | None = None
    """The probability with which a plan drew the case."""


def find_position(seed: int, case: str) -> int:
    """Compute the position of a case in the random order, from 0 to 2^56 - 1.

    It is a digest of the seed and the case's id, so that it stays the same when other cases are added.
    """
    return int.from_bytes(sha256(f"{seed}:{case}".encode(errors="surrogatepass")).digest()[:7])


def _erase_comment(action: str, body: str | None) -> tuple[str, str | None] | None:
    """Return the body and the digest of an event without the rater's comment; ``None`` where there is no comment.

    ``body`` is the text of a comment, or a label as JSON.
    """
    if not body:
        return None
    if action == "comment":
        return "", None  # the event of a comment has no digest
    try:
        label = Label.from_dict(json.loads(body))
    except (ValueError, TypeError, AttributeError, RecursionError, UsageError):
        return None
    if not label.comment:
        return None
    erased = replace(label, comment=None)
    return json.dumps(erased.to_dict(), ensure_ascii=False), digest_label(erased)


def digest_label(label: Label) -> str:
    """Compute the digest by which a label that is imported again is recognised.

    Its design and its run do not count. A label that says which content was read is another one than a label that does
    not.
    """
    members = label.to_dict()
    for name in ("design", "run", "schema"):
        members.pop(name, None)
    if isinstance(label.value, int | float) and not isinstance(label.value, bool):
        members["value"] = float(label.value)  # a table may have 1 for 1.0
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RandomDraw:
    """The draw that is made by following the random order over all cases up to some position."""

    seed: int
    last_position: int
    """The last position that was reached."""
    design: LabelDesign
    """The design of the labels of all cases up to there."""

    def add_design(self, label: Label) -> Label:
        """Return the label with this draw as its design, if the order has reached its case; else as it is.

        It does not matter who labelled the case and when. A case that somebody had picked before would have come up by
        now; without it, the others would be no random sample, since perhaps the worst cases were picked.
        """
        if label.subject is None or label.kind not in ("person", "adjudication"):
            return label
        if label.design is not None and label.design.drawn_from == self.design.drawn_from:
            return label
        is_reached = find_position(self.seed, label.case) <= self.last_position
        return replace(label, design=self.design) if is_reached else label


def read_case_labels(path: Path, case: str) -> list[Label]:
    """Read the labels of a case from a file of labels without changing it; raise ``UsageError`` for any other file."""
    store = LabelStore(path, mode="look")
    try:
        return store.labels(case)
    finally:
        store.close()


def read_labelled_cases(path: Path) -> frozenset[str]:
    """Read the ids of the cases that were ever labelled from a file of labels, also where a label was taken back.

    The file is not changed. Raises ``UsageError`` for any other file.
    """
    store = LabelStore(path, mode="look")
    try:
        return store.list_labelled()
    finally:
        store.close()


_KIND = FileKind(
    schema=SCHEMA,
    tables=_TABLES,
    unreadable="{path} cannot be used to keep labels: {why}; name another file (--store FILE)",
    unwritable="{path} cannot be written: {why}",
    other_schema="{path} cannot be used to keep labels: its schema is not {schema}; name another file (--store FILE)",
    durable=True,
)


class LabelStore:
    """One file of labels, for one thread at a time."""

    def __init__(self, path: Path, *, mode: Mode = "make") -> None:
        self.path = path
        self._file = SqliteFile(path, _KIND, mode=mode).open()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def change(self) -> AbstractContextManager[object]:
        """Return a context in which all changes are one transaction; an exception undoes them and is raised.

        Other processes wait for its end.
        """
        return self._file.change()

    # ---------------------------------------------------------------- facts and cases

    def find_fact(self, name: str) -> str | None:
        """Find a fact about the whole file by its name, such as ``seed``; ``None`` if it was never kept."""
        return self._file.find_fact(name)

    def set_fact(self, name: str, value: str) -> None:
        """Keep a fact about the whole file, in place of an earlier one of this name."""
        self._file.set_fact(name, value)

    def find_contents(self) -> ContentSet | None:
        """Find the contents that the cases have; ``None`` while their run is not finished."""
        recorded = self.find_fact("contents")
        return read_content_set(json.loads(recorded)) if recorded else None

    def count_cases(self) -> int:
        """Count the cases that are known."""
        return self._file.ask("SELECT count(*) FROM cases")[0][0]

    def count_ordered(self) -> int:
        """Count the cases in the order of labelling."""
        return self._file.ask("SELECT count(*) FROM cases WHERE position IS NOT NULL")[0][0]

    def add_cases(self, cases: Iterable[CaseRow]) -> None:
        """Add cases to the file with their positions in the order, or update those that it has.

        Raises ``UsageError`` for a case that changed after it was labelled.
        """
        rows = iter(cases)
        while page := list(islice(rows, _PAGE)):
            for name in self._find_changed(page):
                if self.has_labels(name):
                    # The labels that are there would pass for labels of what the case says now.
                    raise UsageError(
                        f"the case {show(name)} changed after it was labelled ({self.path}); restore it, give the new "
                        "text an id of its own, or label into another file with ",
                        Argument("store"),
                    )
            with self._file.change() as connection:
                try:
                    connection.executemany(_ADD_CASE, page)
                except UnicodeEncodeError:
                    raise UsageError("an id of the cases holds half of a character; give each case a text") from None

    def _find_changed(self, page: Sequence[CaseRow]) -> list[str]:
        """Find the cases of a page that the file has with another text."""
        if not self._file.ask("SELECT 1 FROM cases LIMIT 1"):
            return []
        names = json.dumps([name for name, *_ in page])
        query = "SELECT id, subject FROM cases WHERE id IN (SELECT value FROM json_each(:names))"
        subjects = dict(self._file.ask(query, names=names))
        return [name for name, subject, *_ in page if subjects.get(name, subject) != subject]

    def erase_cases(self, cases: Collection[str], erase: Callable[[bytes], bytes], *, dry_run: bool = False) -> int:
        """Delete people's comments on some cases and the cases' texts; return the number of comments.

        Who answered what, and when, stays. ``erase`` takes the stored case, and returns it without its texts. With
        ``dry_run`` comments are only counted.
        """
        count = 0
        with self._file.change() as connection:
            if not dry_run:
                connection.execute("DROP TRIGGER IF EXISTS events_keep")  # the trigger forbids all updates
            for case in cases:
                query = "SELECT seq, action, body FROM events WHERE case_id = ?"
                for seq, action, body in connection.execute(query, (case,)).fetchall():
                    erased = _erase_comment(action, body)
                    count += erased is not None
                    if erased is not None and not dry_run:
                        connection.execute("UPDATE events SET body = ?, digest = ? WHERE seq = ?", (*erased, seq))
                bodies = connection.execute("SELECT body FROM cases WHERE id = ? AND body IS NOT NULL", (case,))
                for (body,) in bodies.fetchall() if not dry_run else ():
                    connection.execute("UPDATE cases SET body = ? WHERE id = ?", (erase(body), case))
            if not dry_run:
                connection.execute(_NO_UPDATE)
        return count

    def clear_space(self) -> bool:
        """Remove deleted data from the space of the file and its log; return false while other processes read it."""
        return self._file.clear_space()

    def list_bodies(self) -> Iterator[tuple[str, bytes]]:
        """Yield the id and the body of every case that is kept here."""
        return self._file.stream("SELECT id, body FROM cases WHERE body IS NOT NULL")  # type: ignore[return-value] - the columns' types

    def list_written(self) -> Iterator[tuple[str, str]]:
        """Yield the case's id and the body of every event that has one: a comment, or a label as JSON."""
        return self._file.stream("SELECT case_id, body FROM events WHERE body IS NOT NULL AND body <> ''")  # type: ignore[return-value] - as above

    def clear_order(self) -> None:
        """Take every case out of the order of labelling; none is handed out then."""
        self._file.execute("UPDATE cases SET position = NULL, stratum = NULL, p = NULL")

    def list_ids(self) -> list[str]:
        """List the ids of all cases."""
        return [row[0] for row in self._file.ask("SELECT id FROM cases")]

    def set_order(self, drawn: Drawn) -> bool:
        """Give a case its position in the order of labelling; false where the case is not known."""
        statement = "UPDATE cases SET position = :position, stratum = :stratum, p = :p WHERE id = :id"
        changed = self._file.execute(
            statement, id=drawn.case, position=drawn.position, stratum=drawn.stratum, p=drawn.p
        )
        return changed > 0

    def find_drawn(self, case: str) -> Drawn | None:
        """Find a case in the order of labelling; ``None`` where it is not in it."""
        query = "SELECT id, position, stratum, p FROM cases WHERE id = :id AND position IS NOT NULL"
        rows = self._file.ask(query, id=case)
        return Drawn(case=rows[0][0], position=rows[0][1], stratum=rows[0][2], p=rows[0][3]) if rows else None

    def find_body(self, case: str) -> bytes | None:
        """Find the case as it was stored; ``None`` where it is not known, or a run has it."""
        rows = self._file.ask("SELECT body FROM cases WHERE id = :id", id=case)
        return rows[0][0] if rows else None

    def knows(self, case: str) -> bool:
        """Return whether there is a case of this id."""
        return bool(self._file.ask("SELECT 1 FROM cases WHERE id = :id", id=case))

    def has_labels(self, case: str) -> bool:
        """Return whether anybody labelled a case."""
        return bool(self._file.ask("SELECT 1 FROM live WHERE case_id = :id AND kind IS NOT NULL LIMIT 1", id=case))

    # ---------------------------------------------------------------- handing out

    def find_next(
        self, rater: str, session: str, mode: LabelMode, *, per_case: int, skipped: bool = False
    ) -> str | None:
        """Find the case that a rater gets next: the one they have now, else the first in the order that they may get.

        With ``skipped`` it is the first that they skipped instead. ``None`` where there is none.
        """
        now = time.time()
        leased = self._file.ask(_LEASED_CASE, rater=rater, session=session, mode=mode, now=now)
        if leased:
            return leased[0][0]
        query = (_NEXT_SKIPPED_CASE if skipped else _NEXT_CASE).format(free=_IS_FREE)
        rows = self._file.ask(query, rater=rater, session=session, mode=mode, now=now, per_case=per_case)
        return rows[0][0] if rows else None

    def take_lease(self, case: str, rater: str, session: str, mode: LabelMode, seconds: float) -> float:
        """Reserve a case for a session, and return until when, in seconds since 1970; leases that ended are removed."""
        now = time.time()
        self._file.execute("DELETE FROM leases WHERE until <= :now", now=now)
        self._file.execute(
            "INSERT OR REPLACE INTO leases VALUES (:case, :rater, :session, :mode, :until)",
            case=case, rater=rater, session=session, mode=mode, until=now + seconds,
        )  # fmt: skip
        return now + seconds

    def free_leases(self, session: str, case: str | None = None) -> None:
        """End the leases of a session, or its lease of one case."""
        self._file.execute("DELETE FROM leases WHERE session = :session AND (:case IS NULL OR case_id = :case)",
                 session=session, case=case)  # fmt: skip

    def list_leased(self, session: str, mode: LabelMode) -> set[str]:
        """List the cases that other sessions have now."""
        query = "SELECT case_id FROM leases WHERE session <> :session AND mode = :mode AND until > :now"
        return {row[0] for row in self._file.ask(query, session=session, mode=mode, now=time.time())}

    def mark_seen(self, cases: Iterable[str], rater: str, part: str) -> None:
        """Remember for good that a rater was shown something of these cases.

        ``part`` says what: ``verdict`` (the judge's), ``labels`` (of people whose difference is to be settled),
        ``others`` (labels of people otherwise), or ``drawn`` (the case itself, when its turn came).
        """
        with self._file.change() as connection:
            statement = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)"
            connection.executemany(statement, [(case, rater, part) for case in cases])

    def list_open(self, rater: str, mode: LabelMode, *, per_case: int) -> list[str]:
        """List the cases that a rater may still be asked about, and whose verdict they have not seen."""
        return [row[0] for row in self._file.ask(_OPEN_CASES, rater=rater, mode=mode, per_case=per_case)]

    def list_labelled(self) -> frozenset[str]:
        """List the cases that somebody ever labelled or settled, also where that was taken back."""
        query = "SELECT DISTINCT case_id FROM events WHERE action IN ('label', 'import')"
        return frozenset(row[0] for row in self._file.ask(query))

    def was_seen(self, case: str, rater: str, part: str) -> bool:
        """Return whether a rater was shown something of a case; ``part`` is as for ``mark_seen``."""
        query = "SELECT 1 FROM seen WHERE case_id = :case AND rater = :rater AND what = :what"
        return bool(self._file.ask(query, case=case, rater=rater, what=part))

    # ---------------------------------------------------------------- events

    def find_time(self) -> datetime:
        """Find the time of the next event: now, or just after the last one if the clock went back."""
        now = datetime.now(UTC)
        rows = self._file.ask("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        last = datetime.fromisoformat(rows[0][0]) if rows else now
        # Only for a clock that stood or went back a little: a wrong time far ahead must not set that of later labels.
        return last + timedelta(microseconds=1) if now <= last < now + timedelta(minutes=5) else now

    def add(self, event: Event, *, at: datetime) -> bool:
        """Add an event; false, and nothing is added, for a label that is in the file already. Raises ``UsageError``."""
        label = event.label
        try:
            return self._insert(event, at, None if label is None else digest_label(label))
        except UnicodeEncodeError:
            raise UsageError(f"the label of {show(event.rater)} holds half of a character; write it as text") from None

    def _insert(self, event: Event, at: datetime, digest: str | None) -> bool:
        """Write an event, and return whether it was written: a label that was imported before is not."""
        label = event.label
        if digest is not None and self._file.ask("SELECT 1 FROM events WHERE digest = :digest", digest=digest):
            return False
        self._file.execute(
            """INSERT INTO events (at, action, rater, session, case_id, criterion, mode, kind, done, drawn, undoes,
                digest, body) VALUES (:at, :action, :rater, :session, :case, :criterion, :mode, :kind, :done, :drawn,
                :undoes, :digest, :body)""",
            at=at.isoformat(), action=event.action, rater=event.rater, session=event.session, case=event.case,
            criterion=event.criterion, mode=event.mode, kind=None if label is None else label.kind,
            done=int(event.done), drawn=None if event.drawn is None else event.drawn.write(), undoes=event.undoes,
            digest=digest,
            body=event.text if label is None else json.dumps(label.to_dict(), ensure_ascii=False),
        )  # fmt: skip
        return True

    def find_last(self, rater: str, session: str, mode: LabelMode) -> LastAction | None:
        """Find the last answer or skip of a rater, in this session if there is one."""
        rows = self._file.ask(_LAST_ACTION, rater=rater, session=session, mode=mode)
        if not rows:
            return None
        seq, action, case, criterion, body = rows[0]
        label = self._read_label(seq, body) if action == "label" else None
        return LastAction(seq=seq, case=case, criterion=criterion, label=label)

    def list_marks(self, case: str, rater: str, mode: LabelMode, *, after: int = 0) -> list[int]:
        """List the numbers of the events that mark a case as answered in full by a rater, after an event."""
        query = """SELECT seq FROM live WHERE case_id = :case AND rater = :rater AND mode = :mode AND action = 'done'
            AND seq > :after"""
        return [row[0] for row in self._file.ask(query, case=case, rater=rater, mode=mode, after=after)]

    def has_skipped(self, case: str, rater: str, session: str, mode: LabelMode) -> bool:
        """Return whether a rater put a case off in a session."""
        query = """SELECT 1 FROM live WHERE case_id = :case AND rater = :rater AND session = :session AND mode = :mode
            AND action = 'skip' LIMIT 1"""
        return bool(self._file.ask(query, case=case, rater=rater, session=session, mode=mode))

    def list_answers(self, case: str, rater: str) -> list[tuple[int, Label]]:
        """List the labels of a case that a rater gave and did not take back, each with the number of its event."""
        query = """SELECT seq, body FROM live WHERE case_id = :case AND rater = :rater AND kind IS NOT NULL
            ORDER BY seq"""
        return [(seq, self._read_label(seq, body)) for seq, body in self._file.ask(query, case=case, rater=rater)]

    def find_comment(self, case: str, rater: str, criterion: str | None) -> str | None:
        """Find the comment that a rater last wrote about a case before they answered."""
        query = """SELECT body FROM live WHERE case_id = :case AND rater = :rater AND criterion IS :criterion
            AND action = 'comment' ORDER BY seq DESC LIMIT 1"""
        rows = self._file.ask(query, case=case, rater=rater, criterion=criterion)
        return (rows[0][0] or None) if rows else None

    def labels(self, case: str | None = None) -> list[Label]:
        """Every label that was not taken back, in the order in which they came; of one case, if it is named."""
        return [label for _, label in self.list_labels(case)]

    def list_labels(self, case: str | None = None) -> list[tuple[int, Label]]:
        """Return the labels that count, of one case or of all, each with the number of its event."""
        query = """SELECT seq, body, drawn FROM live WHERE kind IS NOT NULL AND (:case IS NULL OR case_id = :case)
            ORDER BY seq"""
        draw, numbered_labels = self._find_random_draw(), []
        for seq, body, drawn in self._file.ask(query, case=case):
            label = self._read_label(seq, body)
            label = label if draw is None else draw.add_design(label)
            if label.design is None:
                label = self._add_design_of_earlier_contents(label, read_order_position(drawn))
            numbered_labels.append((seq, label))
        return numbered_labels

    def _add_design_of_earlier_contents(self, label: Label, position: OrderPosition | None) -> Label:
        """Return the label with a draw from the contents that there were when it was given, as its design.

        ``position`` is where the random order over those contents was; without it, the label is returned as it is. How
        many of those contents came up is not known any more: ``p`` is the chance of the first one, which is the same
        for all of them.
        """
        if label.subject is None or position is None:
            return label
        plan, earlier = f"{RANDOM_ORDER}, seed {self.find_fact('seed')}", position.contents
        design = LabelDesign(
            plan=plan,
            stratum="all",
            p=1 / earlier.cases,
            size=earlier.cases,
            contents=earlier.digest,
            cases=earlier.cases,
        )
        return replace(label, design=design)

    def list_reached_positions(self) -> list[tuple[int, int]]:
        """List the positions in the random order over the present contents whose cases were handed out and labelled.

        Each has the number of the label's event beside it.
        """
        contents = self.find_contents()
        if contents is None:
            return []
        query = "SELECT drawn, seq FROM live WHERE drawn >= :first AND drawn < :last"
        # Every text that begins with the digest and a blank: "!" is the character after the blank.
        rows = self._file.ask(query, first=f"{contents.digest} ", last=f"{contents.digest}!")
        reached = [(read_order_position(drawn), seq) for drawn, seq in rows]
        return [(order_position.position, seq) for order_position, seq in reached if order_position is not None]

    def _find_random_draw(self) -> _RandomDraw | None:
        """Find the draw by the random order over the present contents; ``None`` before its first label."""
        last_position = max([position for position, _ in self.list_reached_positions()], default=None)
        contents, seed = self.find_contents(), self.find_fact("seed")
        if last_position is None or contents is None or seed is None:
            return None
        cases = [row[0] for row in self._file.ask("SELECT DISTINCT case_id FROM live WHERE kind IS NOT NULL")]
        drawn_count = sum(find_position(int(seed), case) <= last_position for case in cases)
        design = LabelDesign(
            plan=f"{RANDOM_ORDER}, seed {seed}",
            stratum="all",
            p=min(1.0, max(drawn_count, 1) / contents.cases),
            size=contents.cases,
            contents=contents.digest,
            cases=contents.cases,
        )
        return _RandomDraw(seed=int(seed), last_position=last_position, design=design)

    def _read_label(self, seq: int, body: str) -> Label:
        """Read the label in the body of an event; raise ``UsageError`` for a damaged one."""
        try:
            return Label.from_dict(json.loads(body))
        except (ValueError, TypeError, AttributeError, RecursionError, UsageError) as error:
            reason = clean(str(error)[:200], keep_lines=False)
            raise UsageError(f"{self.path}: event {seq} holds no label ({reason}); restore the file") from None

    def knows_label(self, label: Label) -> bool:
        """Return whether the file has the same label, taken back or not, for whichever content."""
        query = "SELECT seq, body FROM events WHERE case_id = :case AND rater = :rater AND kind IS NOT NULL"
        label_digest = digest_label(replace(label, subject=None))
        rows = self._file.ask(query, case=label.case, rater=label.rater)
        return any(digest_label(replace(self._read_label(*row), subject=None)) == label_digest for row in rows)

    # ---------------------------------------------------------------- counting

    def count_done(self, mode: LabelMode, *, rater: str | None = None, least: int = 1) -> int:
        """Count the cases in the order that a rater, or at least ``least`` raters, have answered in full."""
        query = """SELECT count(*) FROM (SELECT l.case_id FROM live l JOIN cases c ON c.id = l.case_id
            WHERE c.position IS NOT NULL AND l.mode = :mode AND l.done AND (:rater IS NULL OR l.rater = :rater)
            GROUP BY l.case_id HAVING count(DISTINCT l.rater) >= :least)"""
        return self._file.ask(query, mode=mode, rater=rater, least=least)[0][0]

    def count_left(self, mode: LabelMode, rater: str, *, per_case: int) -> int:
        """Count the cases in the order that a rater has not answered, and that fewer than ``per_case`` raters have."""
        query = """SELECT count(*) FROM (SELECT l.case_id FROM live l JOIN cases c ON c.id = l.case_id
            WHERE c.position IS NOT NULL AND l.mode = :mode AND l.done GROUP BY l.case_id
            HAVING count(DISTINCT l.rater) >= :per_case OR max(l.rater = :rater))"""
        return self.count_ordered() - self._file.ask(query, mode=mode, rater=rater, per_case=per_case)[0][0]

    def count_skipped(self, mode: LabelMode, rater: str) -> int:
        """Count the cases that a rater skipped and has not answered since."""
        query = """SELECT count(DISTINCT case_id) FROM live s WHERE mode = :mode AND rater = :rater AND action = 'skip'
            AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = s.case_id AND l.rater = :rater AND l.mode = :mode
                AND l.done)"""
        return self._file.ask(query, mode=mode, rater=rater)[0][0]

    def list_times(self, rater: str, most: int) -> Sequence[datetime]:
        """List the times of a rater's last answers, latest first."""
        query = "SELECT at FROM live WHERE rater = :rater AND action = 'label' ORDER BY seq DESC LIMIT :most"
        return [datetime.fromisoformat(row[0]) for row in self._file.ask(query, rater=rater, most=most)]
