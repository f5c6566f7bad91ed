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

_ADD = """
    INSERT INTO cases (id, subject, position, body) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
        subject = excluded.subject, position = excluded.position, stratum = NULL, p = NULL, body = excluded.body"""

_PAGE = 1_000

_NEXT = """
    SELECT c.id FROM cases c WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode
            AND (l.done OR l.action = 'skip'))
        AND {free}
    ORDER BY c.position, c.id LIMIT 1"""

_SKIPPED = """
    SELECT c.id FROM cases c JOIN
        (SELECT case_id, max(seq) AS last FROM live WHERE rater = :rater AND mode = :mode AND action = 'skip'
            GROUP BY case_id) s ON s.case_id = c.id
    WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode AND l.done)
        AND {free}
    ORDER BY s.last LIMIT 1"""

# Nobody else is at it now beyond `per_case`, the rater is not at it elsewhere, and has not seen what others said of it.
_FREE = """
    NOT EXISTS (SELECT 1 FROM leases o WHERE o.case_id = c.id AND o.rater = :rater AND o.session <> :session
        AND o.mode = :mode AND o.until > :now)
    AND NOT EXISTS (SELECT 1 FROM seen n WHERE n.case_id = c.id AND n.rater = :rater AND n.what = 'labels')
    AND :per_case > (SELECT count(*) FROM (
        SELECT rater FROM live WHERE case_id = c.id AND rater <> :rater AND mode = :mode AND done
        UNION SELECT rater FROM leases WHERE case_id = c.id AND rater <> :rater AND mode = :mode AND until > :now))"""

# Skipped ones come again, and leases end, so neither makes a case a closed one.
_OPEN = """
    SELECT c.id FROM cases c WHERE c.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = c.id AND l.rater = :rater AND l.mode = :mode AND l.done)
        AND NOT EXISTS (SELECT 1 FROM seen n WHERE n.case_id = c.id AND n.rater = :rater
            AND n.what IN ('verdict', 'labels'))
        AND :per_case > (SELECT count(DISTINCT o.rater) FROM live o
            WHERE o.case_id = c.id AND o.rater <> :rater AND o.mode = :mode AND o.done)"""

_MINE = """
    SELECT o.case_id FROM leases o WHERE o.session = :session AND o.rater = :rater AND o.mode = :mode
        AND o.until > :now AND EXISTS (SELECT 1 FROM cases c WHERE c.id = o.case_id AND c.position IS NOT NULL)
    ORDER BY o.until DESC LIMIT 1"""

_LAST = """
    SELECT seq, action, case_id, criterion, body FROM live
    WHERE rater = :rater AND mode = :mode AND action IN ('label', 'skip')
    ORDER BY session = :session DESC, seq DESC LIMIT 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlace:
    """A place to which the random order over some contents came, as an event keeps it."""

    contents: ContentSet
    """The contents that were there then; the file may have others by now."""
    place: int

    def write(self) -> str:
        """Write the place for an event: of the same contents, later places sort later."""
        return f"{self.contents.digest} {self.place:017d} {self.contents.cases}"


def read_order_place(text: str | None) -> OrderPlace | None:
    """Read what ``OrderPlace.write`` wrote; ``None`` for anything else."""
    words = (text or "").split()
    if len(words) != 3:
        return None
    digest, place, cases = words
    return OrderPlace(contents=ContentSet(digest=digest, cases=int(cases)), place=int(place))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, to be added to the file."""

    action: Action
    rater: str
    session: str
    case: str
    mode: LabelMode
    criterion: str | None = None
    label: Label | None = None
    done: bool = False
    """True if the rater has answered everything that is asked of the case."""
    drawn: OrderPlace | None = None
    """The place at which the random order over all contents handed the case out."""
    text: str | None = None
    """A comment."""
    undoes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAction:
    """The last action of a rater, which they can take back."""

    seq: int
    case: str
    criterion: str | None
    label: Label | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A case and how the order of labelling has it; ``stratum`` and ``p`` only where a plan drew it."""

    case: str
    position: int
    stratum: str | None = None
    p: float | None = None


def find_position(seed: int, case: str) -> int:
    """The place of a case in the random order: by a digest, so that it is the same wherever else cases are added."""
    return int.from_bytes(sha256(f"{seed}:{case}".encode(errors="surrogatepass")).digest()[:7])


def _erase_comment(action: str, body: str | None) -> tuple[str, str | None] | None:
    """Return body and digest of an event without what its rater wrote; ``None`` where they wrote nothing."""
    if not body:
        return None
    if action == "comment":
        return "", None
    try:
        label = Label.from_dict(json.loads(body))
    except (ValueError, TypeError, AttributeError, RecursionError, UsageError):
        return None
    if not label.comment:
        return None
    bare = replace(label, comment=None)
    return json.dumps(bare.to_dict(), ensure_ascii=False), digest_label(bare)


def digest_label(label: Label) -> str:
    """Compute the digest by which a label is known again from a file, whatever that file says of its design.

    A label that says which content was read is another one than a label that does not.
    """
    members = label.to_dict()
    for name in ("design", "run", "schema"):
        members.pop(name, None)
    if isinstance(label.value, int | float) and not isinstance(label.value, bool):
        members["value"] = float(label.value)  # a table may have 1 for 1.0
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RandomDraw:
    """The random order over all cases, as far as it was followed."""

    seed: int
    passed: int
    """The last place it came to."""
    design: LabelDesign

    def add_design(self, label: Label) -> Label:
        """The label with this draw as its design, if the order came to its case, whoever labelled it and when.

        A case that somebody had picked before would have come up by now. Without it, the rest would be no random
        sample: perhaps the worst cases were picked.
        """
        if label.subject is None or label.kind not in ("person", "adjudication"):
            return label
        if label.design is not None and label.design.drawn_from == self.design.drawn_from:
            return label
        return replace(label, design=self.design) if find_position(self.seed, label.case) <= self.passed else label


def read_case_labels(path: Path, case: str) -> list[Label]:
    """Read the labels of a case in a file of labels, and leave no trace; raises ``UsageError`` for another file."""
    store = LabelStore(path, mode="look")
    try:
        return store.labels(case)
    finally:
        store.close()


def read_labelled_cases(path: Path) -> frozenset[str]:
    """Read which cases were ever labelled, also where that was taken back; as ``read_case_labels`` reads."""
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
        """Do several things in one step, after those of every other process; raises what went wrong, and undoes all."""
        return self._file.change()

    # ---------------------------------------------------------------- facts and cases

    def find_fact(self, name: str) -> str | None:
        """A fact about the whole file."""
        return self._file.find_fact(name)

    def keep_fact(self, name: str, value: str) -> None:
        """Keep a fact about the whole file."""
        self._file.keep_fact(name, value)

    def find_contents(self) -> ContentSet | None:
        """The contents that the cases have; ``None`` while their run is not finished."""
        recorded = self.find_fact("contents")
        return read_content_set(json.loads(recorded)) if recorded else None

    def count_cases(self) -> int:
        """Count the cases that are known."""
        return self._file.ask("SELECT count(*) FROM cases")[0][0]

    def count_ordered(self) -> int:
        """Count the cases in the order of labelling."""
        return self._file.ask("SELECT count(*) FROM cases WHERE position IS NOT NULL")[0][0]

    def add_cases(self, cases: Iterable[CaseRow]) -> None:
        """Take cases in at their places of the order, or back in; ``UsageError`` for one that changed after a label."""
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
                    connection.executemany(_ADD, page)
                except UnicodeEncodeError:
                    raise UsageError("an id of the cases holds half of a character; give each case a text") from None

    def _find_changed(self, page: Sequence[CaseRow]) -> list[str]:
        """The cases of a page that are known with another text."""
        if not self._file.ask("SELECT 1 FROM cases LIMIT 1"):
            return []
        names = json.dumps([name for name, *_ in page])
        query = "SELECT id, subject FROM cases WHERE id IN (SELECT value FROM json_each(:names))"
        subjects = dict(self._file.ask(query, names=names))
        return [name for name, subject, *_ in page if subjects.get(name, subject) != subject]

    def erase_cases(self, cases: Collection[str], erase: Callable[[bytes], bytes], *, dry_run: bool = False) -> int:
        """Delete what people wrote about some cases, and the cases' texts; return how many comments that were.

        Who answered what, and when, stays. ``erase`` makes what is left of a case as it was taken in.
        """
        count = 0
        with self._file.change() as connection:
            if not dry_run:
                connection.execute("DROP TRIGGER IF EXISTS events_keep")  # this is not a mistake
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
        """Have what was deleted leave the file and its log; false where others read it still."""
        return self._file.clear_space()

    def list_bodies(self) -> Iterator[tuple[str, bytes]]:
        """Id and body of every case that is kept here."""
        return self._file.stream("SELECT id, body FROM cases WHERE body IS NOT NULL")  # type: ignore[return-value] - the columns' types

    def list_written(self) -> Iterator[tuple[str, str]]:
        """Case and text of everything that people wrote."""
        return self._file.stream("SELECT case_id, body FROM events WHERE body IS NOT NULL AND body <> ''")  # type: ignore[return-value] - as above

    def clear_order(self) -> None:
        """Take every case out of the order of labelling; none is handed out then."""
        self._file.execute("UPDATE cases SET position = NULL, stratum = NULL, p = NULL")

    def list_ids(self) -> list[str]:
        """The ids of all cases."""
        return [row[0] for row in self._file.ask("SELECT id FROM cases")]

    def set_order(self, drawn: Drawn) -> bool:
        """Give a case its place in the order of labelling; false where the case is not known."""
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
        """The case as it was taken in; ``None`` where it is not known or kept elsewhere."""
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
        """The case that a rater gets next: the one they have, else the first that is free for them."""
        now = time.time()
        leased = self._file.ask(_MINE, rater=rater, session=session, mode=mode, now=now)
        if leased:
            return leased[0][0]
        query = (_SKIPPED if skipped else _NEXT).format(free=_FREE)
        rows = self._file.ask(query, rater=rater, session=session, mode=mode, now=now, per_case=per_case)
        return rows[0][0] if rows else None

    def take_lease(self, case: str, rater: str, session: str, mode: LabelMode, seconds: float) -> float:
        """Keep a case for a session, and return until when, in seconds since 1970; leases that ended are removed."""
        now = time.time()
        self._file.execute("DELETE FROM leases WHERE until <= :now", now=now)
        self._file.execute(
            "INSERT OR REPLACE INTO leases VALUES (:case, :rater, :session, :mode, :until)",
            case=case, rater=rater, session=session, mode=mode, until=now + seconds,
        )  # fmt: skip
        return now + seconds

    def free_leases(self, session: str, case: str | None = None) -> None:
        """Give the cases of a session back, or one of them."""
        self._file.execute("DELETE FROM leases WHERE session = :session AND (:case IS NULL OR case_id = :case)",
                 session=session, case=case)  # fmt: skip

    def list_leased(self, session: str, mode: LabelMode) -> set[str]:
        """The cases that other sessions have now."""
        query = "SELECT case_id FROM leases WHERE session <> :session AND mode = :mode AND until > :now"
        return {row[0] for row in self._file.ask(query, session=session, mode=mode, now=time.time())}

    def mark_seen(self, cases: Iterable[str], rater: str, part: str) -> None:
        """Remember for good that a rater was shown something of these cases."""
        with self._file.change() as connection:
            statement = "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)"
            connection.executemany(statement, [(case, rater, part) for case in cases])

    def list_open(self, rater: str, mode: LabelMode, *, per_case: int) -> list[str]:
        """List the cases that a rater may still be asked about, and whose verdict they have not seen."""
        return [row[0] for row in self._file.ask(_OPEN, rater=rater, mode=mode, per_case=per_case)]

    def list_labelled(self) -> frozenset[str]:
        """List the cases that somebody ever labelled or settled, also where that was taken back."""
        query = "SELECT DISTINCT case_id FROM events WHERE action IN ('label', 'import')"
        return frozenset(row[0] for row in self._file.ask(query))

    def was_seen(self, case: str, rater: str, part: str) -> bool:
        """Return whether a rater was shown something of a case."""
        query = "SELECT 1 FROM seen WHERE case_id = :case AND rater = :rater AND what = :what"
        return bool(self._file.ask(query, case=case, rater=rater, what=part))

    # ---------------------------------------------------------------- events

    def find_time(self) -> datetime:
        """Find the time of the next event: now, or just after the last one if the clock went back."""
        now = datetime.now(UTC)
        rows = self._file.ask("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        last = datetime.fromisoformat(rows[0][0]) if rows else now
        # Only for a clock that stood or went back a little: one that was in another year must not set the next labels.
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
        """The last answer or skip of a rater, in this session if there is one."""
        rows = self._file.ask(_LAST, rater=rater, session=session, mode=mode)
        if not rows:
            return None
        seq, action, case, criterion, body = rows[0]
        label = self._read_label(seq, body) if action == "label" else None
        return LastAction(seq=seq, case=case, criterion=criterion, label=label)

    def list_marks(self, case: str, rater: str, mode: LabelMode, *, after: int = 0) -> list[int]:
        """The marks that a rater has answered everything asked of a case, as numbers of events."""
        query = """SELECT seq FROM live WHERE case_id = :case AND rater = :rater AND mode = :mode AND action = 'done'
            AND seq > :after"""
        return [row[0] for row in self._file.ask(query, case=case, rater=rater, mode=mode, after=after)]

    def has_skipped(self, case: str, rater: str, session: str, mode: LabelMode) -> bool:
        """Return whether a rater put a case off in a session."""
        query = """SELECT 1 FROM live WHERE case_id = :case AND rater = :rater AND session = :session AND mode = :mode
            AND action = 'skip' LIMIT 1"""
        return bool(self._file.ask(query, case=case, rater=rater, session=session, mode=mode))

    def list_answers(self, case: str, rater: str) -> list[tuple[int, Label]]:
        """The labels of a case that a rater gave and did not take back, each with the number of its event."""
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
        draw, numbered = self._find_random_draw(), []
        for seq, body, drawn in self._file.ask(query, case=case):
            label = self._read_label(seq, body)
            label = label if draw is None else draw.add_design(label)
            if label.design is None:
                label = self._add_design_of_earlier_contents(label, read_order_place(drawn))
            numbered.append((seq, label))
        return numbered

    def _add_design_of_earlier_contents(self, label: Label, place: OrderPlace | None) -> Label:
        """The label with the draw from the contents that were there when it was given, and are others now.

        How many of those contents came up is not known any more: ``p`` is the chance of the first one, which is the
        same for all of them.
        """
        if label.subject is None or place is None:
            return label
        plan, earlier = f"{RANDOM_ORDER}, seed {self.find_fact('seed')}", place.contents
        design = LabelDesign(
            plan=plan,
            stratum="all",
            p=1 / earlier.cases,
            size=earlier.cases,
            contents=earlier.digest,
            cases=earlier.cases,
        )
        return replace(label, design=design)

    def list_passes(self) -> list[tuple[int, int]]:
        """List the places to which the random order over the present contents came, and their labels' numbers."""
        contents = self.find_contents()
        if contents is None:
            return []
        query = "SELECT drawn, seq FROM live WHERE drawn >= :first AND drawn < :last"
        rows = self._file.ask(query, first=f"{contents.digest} ", last=f"{contents.digest}!")
        passes = [(read_order_place(drawn), seq) for drawn, seq in rows]
        return [(passed.place, seq) for passed, seq in passes if passed is not None]

    def _find_random_draw(self) -> _RandomDraw | None:
        """The random order over the present contents, as far as it was followed."""
        passed = max([place for place, _ in self.list_passes()], default=None)
        contents, seed = self.find_contents(), self.find_fact("seed")
        if passed is None or contents is None or seed is None:
            return None
        cases = [row[0] for row in self._file.ask("SELECT DISTINCT case_id FROM live WHERE kind IS NOT NULL")]
        number = sum(find_position(int(seed), case) <= passed for case in cases)
        design = LabelDesign(
            plan=f"{RANDOM_ORDER}, seed {seed}",
            stratum="all",
            p=min(1.0, max(number, 1) / contents.cases),
            size=contents.cases,
            contents=contents.digest,
            cases=contents.cases,
        )
        return _RandomDraw(seed=int(seed), passed=passed, design=design)

    def _read_label(self, seq: int, body: str) -> Label:
        try:
            return Label.from_dict(json.loads(body))
        except (ValueError, TypeError, AttributeError, RecursionError, UsageError) as error:
            reason = clean(str(error)[:200], keep_lines=False)
            raise UsageError(f"{self.path}: event {seq} holds no label ({reason}); restore the file") from None

    def knows_label(self, label: Label) -> bool:
        """Return whether the same label is there, taken back or not, whatever is said of the content that was read."""
        query = "SELECT seq, body FROM events WHERE case_id = :case AND rater = :rater AND kind IS NOT NULL"
        label_digest = digest_label(replace(label, subject=None))
        rows = self._file.ask(query, case=label.case, rater=label.rater)
        return any(digest_label(replace(self._read_label(*row), subject=None)) == label_digest for row in rows)

    # ---------------------------------------------------------------- counting

    def count_done(self, mode: LabelMode, *, rater: str | None = None, least: int = 1) -> int:
        """Cases in the order that a rater, or at least so many raters, have answered."""
        query = """SELECT count(*) FROM (SELECT l.case_id FROM live l JOIN cases c ON c.id = l.case_id
            WHERE c.position IS NOT NULL AND l.mode = :mode AND l.done AND (:rater IS NULL OR l.rater = :rater)
            GROUP BY l.case_id HAVING count(DISTINCT l.rater) >= :least)"""
        return self._file.ask(query, mode=mode, rater=rater, least=least)[0][0]

    def count_left(self, mode: LabelMode, rater: str, *, per_case: int) -> int:
        """Cases in the order that a rater has not answered, and that have fewer than so many raters."""
        query = """SELECT count(*) FROM (SELECT l.case_id FROM live l JOIN cases c ON c.id = l.case_id
            WHERE c.position IS NOT NULL AND l.mode = :mode AND l.done GROUP BY l.case_id
            HAVING count(DISTINCT l.rater) >= :per_case OR max(l.rater = :rater))"""
        return self.count_ordered() - self._file.ask(query, mode=mode, rater=rater, per_case=per_case)[0][0]

    def count_skipped(self, mode: LabelMode, rater: str) -> int:
        """Cases that a rater skipped and has not answered since."""
        query = """SELECT count(DISTINCT case_id) FROM live s WHERE mode = :mode AND rater = :rater AND action = 'skip'
            AND NOT EXISTS (SELECT 1 FROM live l WHERE l.case_id = s.case_id AND l.rater = :rater AND l.mode = :mode
                AND l.done)"""
        return self._file.ask(query, mode=mode, rater=rater)[0][0]

    def list_times(self, rater: str, most: int) -> Sequence[datetime]:
        """List the times of a rater's last answers, latest first."""
        query = "SELECT at FROM live WHERE rater = :rater AND action = 'label' ORDER BY seq DESC LIMIT :most"
        return [datetime.fromisoformat(row[0]) for row in self._file.ask(query, rater=rater, most=most)]
