"""Forgetting in files: caches of replies, recordings, files of labels, and folders of runs.

Which contents are meant is decided in ``choice.py`` (``Choice``), and in which order places are gone through in
``forget.py`` (``forget``).
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.content import digest_text
from adjudge.dataset.contents import digest_content
from adjudge.dataset.formats import find_format
from adjudge.dataset.label_file import CASE_COLUMNS
from adjudge.erasure.choice import Choice
from adjudge.erasure.report import Findings, NamedText, OutOfReach
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.files import open_regular, open_unfollowed
from adjudge.labels.source import STORE_FILE
from adjudge.labels.store import LabelStore
from adjudge.models.replies.cache_file import ReplyCache
from adjudge.models.replies.key import make_case_prefix
from adjudge.models.replies.recording import LARGEST, read_lines
from adjudge.models.replies.row import RECORDING
from adjudge.runs.batch.store import FILE as BATCHES_FILE
from adjudge.runs.batch.store import BatchStore
from adjudge.runs.folder import LOCK_FILE, MANIFEST_FILE, RunLock, read_manifest
from adjudge.runs.item import erase_case, find_erased
from adjudge.runs.store import FILE as RESULTS_FILE
from adjudge.runs.store import RunStore

_SQLITE = b"SQLite format 3\x00"

_CONTENT = re.compile(r"<<content \{\{token\}\}>>\n(.*)\n<<end content \{\{token\}\}>>\n", re.DOTALL)
"""The content in a recorded prompt, between its fences."""

_REPORTS = frozenset((".html", ".md", ".json", ".xml", ".csv", ".jsonl", ".txt"))

_OURS = frozenset((MANIFEST_FILE, "plan.json", "estimate.json", "looks.jsonl"))


# ---------------------------------------------------------------- caches


def forget_in_cache(path: Path, findings: Findings, *, dry_run: bool) -> None:
    """Delete the replies about the subjects that were found from a cache."""
    with ReplyCache(path) as cache:
        count, unknown = cache.check().drop_subjects(findings.subjects, dry_run=dry_run)
        findings.count("kept replies", count)
        if unknown:
            says = "reply does not say what it is" if unknown == 1 else "replies do not say what they are"
            what = f"{unknown:,} {says} about; `adjudge cache clear` empties it"
            findings.for_a_person.append(NamedText(place="kept replies", where=str(path), what=what))
        if not dry_run and not cache.clear_space():
            findings.unfinished.append(_STILL_READ.format(path))


# ---------------------------------------------------------------- files of lines


def forget_in_recording(path: Path, choice: Choice, findings: Findings, *, dry_run: bool) -> None:
    """Delete the rows of a recording that are about the subjects that were found, and leave a row that says so."""
    lines = _read_file(path, "recordings", findings)
    gone = [_is_about(line.row, findings.subjects) for line in lines]
    for line, drops in zip(lines, gone, strict=True):
        if not drops:
            _note_named(path, line, "recordings", choice, findings)
    count = sum(gone)
    findings.count("recordings", count, f"in {path.name}")
    if count and not dry_run:
        kept = [line.text for line, drops in zip(lines, gone, strict=True) if not drops and "erased" not in line.row]
        before = sum(line.row["erased"] for line in lines if isinstance(line.row.get("erased"), int))
        # The key is no digest, so that no request has it; versions that do not know the row read it all the same.
        mark = {"schema": RECORDING, "key": "erased", "model": "", "erased": before + count, "reply": {"text": ""}}
        replace_lines(path, [*kept, json.dumps(mark).encode()])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of a file of rows, with its number from 1; a line that is no JSON object has an empty row."""

    number: int
    text: bytes
    row: dict[str, Any]


def _read_file(path: Path, place: str, findings: Findings) -> list[_Line]:
    """Read the lines of a file of rows, and note in ``findings`` those that are none: nobody knows what is in them."""
    rows = [(number, text, _read_row(text)) for number, text in read_lines(path)]
    unread = [number for number, _, row in rows if row is None]
    if unread:
        what = f"no JSON objects, so not looked through: {_list_numbers(unread, 'line')}"
        findings.for_a_person.append(NamedText(place=place, where=str(path), what=what))
    return [_Line(number=number, text=text, row=row or {}) for number, text, row in rows]


def _note_named(path: Path, line: _Line, place: str, choice: Choice, findings: Findings) -> None:
    """Note a line that names the choice, for a person to look at."""
    member = choice.find_name(line.row)
    if member is not None:
        where = f"{path}, line {line.number}"
        findings.for_a_person.append(NamedText(place=place, where=where, what=f"names it in {member}"))


def _list_numbers(numbers: list[int], noun: str) -> str:
    """List the first of some numbers, like ``2 rows: 1, 3``."""
    listed = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return f"{len(numbers):,} {noun if len(numbers) == 1 else f'{noun}s'}: {listed}"


def _is_about(row: Mapping[str, Any], subjects: Collection[str]) -> bool:
    """Return whether a row of a recording is about one of the subjects, which are digests of contents."""
    if "subject" in row:
        return _is_among(row["subject"], subjects)
    # The row of a call that no judge made says nothing of its subject, and its prompt may have the content.
    request = row.get("request")
    user = request.get("user") if isinstance(request, Mapping) else None
    match = _CONTENT.search(user) if isinstance(user, str) else None
    return match is not None and digest_text(match[1].encode("utf-8", "replace").decode()) in subjects


def _is_among(value: object, texts: Collection[str]) -> bool:
    """Return whether a value of a file, which may be anything, also a list, is one of some texts."""
    return isinstance(value, str) and value in texts


def check_label_file(path: Path) -> None:
    """Raise ``UsageError`` for labels of another format than JSON lines: nothing would be looked for in its lines."""
    try:
        form, gz = find_format(path.name, None)
    except UsageError:  # a name that tells nothing; lines that are no JSON are noted one by one
        return
    if form != "jsonl" or gz:
        raise UsageError(
            f"{path} is {'compressed' if gz else form}, and labels are looked through as JSON lines or as a file of "
            "`adjudge label`; write it as .jsonl, or delete it yourself and do not name it here"
        )


def forget_in_label_file(path: Path, choice: Choice, findings: Findings, *, dry_run: bool) -> None:
    """Delete comments, and cases of a list to label, about what was found, from a file with a row of JSON for each."""
    count, words, written = 0, dict[str, None](), list[bytes]()
    for line in _read_file(path, "labels", findings):
        texts = [name for name in _LABEL_TEXTS if line.row.get(name) not in (None, "")]
        if not _is_label_about(line.row, findings):
            _note_named(path, line, "labels", choice, findings)
        elif texts:
            count += 1
            words |= dict.fromkeys("comments" if name == "comment" else "cases" for name in texts)
            # A column that was taken out would make a row that nobody filled in one that is refused.
            bare = line.row | dict.fromkeys(texts)
            written.append(json.dumps(bare, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            continue
        written.append(line.text)
    findings.count("labels", count, f"{' and '.join(words)} in {path.name}")
    if count and not dry_run:
        replace_lines(path, written)


_LABEL_TEXTS = (*CASE_COLUMNS, "comment")


def _is_label_about(row: Mapping[str, Any], findings: Findings) -> bool:
    """Return whether a label is about a content, a request or a case of a run that was found."""
    run, case = row.get("run"), row.get("case")
    if _is_among(row.get("subject"), findings.subjects) or _is_among(case, findings.approvals):
        return True
    return isinstance(run, str) and isinstance(case, str) and (run, case) in findings.run_cases


def replace_lines(path: Path, lines: list[bytes]) -> None:
    """Replace a file's lines in one step, with the mode that it had; raises ``AdjudgeError`` where others write it."""
    place = path.resolve()
    fresh = place.with_name(f"{place.name}.{secrets.token_hex(4)}.new")
    try:
        before = place.stat()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(stat.S_IMODE(before.st_mode))
        now = place.stat()
        if (now.st_size, now.st_mtime_ns, now.st_ino) != (before.st_size, before.st_mtime_ns, before.st_ino):
            raise AdjudgeError(f"{path} is being written; stop what writes it, and run this again")
        fresh.replace(place)
    except OSError as error:
        raise AdjudgeError(
            f"{path} cannot be written: {error.strerror}; make it writable, and run this again"
        ) from None
    finally:
        fresh.unlink(missing_ok=True)


def _read_object(line: bytes | str) -> dict[str, Any]:
    return _read_row(line) or {}


def _read_row(line: bytes | str) -> dict[str, Any] | None:
    """Read a JSON object; ``None`` for anything else."""
    try:
        row = json.loads(line)
    except (RecursionError, ValueError):
        return None
    return row if isinstance(row, dict) else None


# ---------------------------------------------------------------- files of labels


def is_store(path: Path) -> bool:
    """Return whether a file is a database, and no file of lines."""
    with open_regular(path) as file:
        return file.read(len(_SQLITE)) == _SQLITE


def note_label_contents(path: Path, choice: Choice, findings: Findings) -> None:
    """Note in ``findings`` the contents of the cases that a file of labels took in, of those that are the choice."""
    store = LabelStore(path)
    try:
        for _, body in store.list_bodies():
            members = _read_object(body)
            if find_erased(members) is None and _is_case(members, choice):
                findings.subjects.add(digest_content(members.get("content")))
    finally:
        store.close()


def find_in_label_store(path: Path, choice: Choice, findings: Findings) -> set[str]:
    """Find the cases of a file of labels that are about what was found; returns their ids.

    A file of a run has no texts of the cases, which are then known by the run, or by what a label says was read. Cases
    that only name the choice are noted in ``findings``.
    """
    store = LabelStore(path)
    try:
        run = store.find_fact("run")
        cases = {case for ident, case in findings.run_cases if ident == run}
        for case, written in store.list_written():
            if _is_among(_read_object(written).get("subject"), findings.subjects):
                cases.add(case)
        for name, body in store.list_bodies():
            members = _read_object(body)
            if name in cases or find_erased(members) is not None:
                continue
            if _is_case(members, choice) or digest_content(members.get("content")) in findings.subjects:
                cases.add(name)
            elif choice.find_name(members) is not None:
                findings.for_a_person.append(NamedText(place="labels", where=f"{path}, case {name}", what="names it"))
        return cases
    finally:
        store.close()


def forget_in_label_store(
    path: Path,
    cases: Collection[str],
    choice: Choice,
    findings: Findings,
    *,
    hide: Callable[[str], str | None],
    dry_run: bool,
) -> None:
    """Delete what people wrote about some cases, and the cases' texts, from a file of labels."""
    store = LabelStore(path)
    try:
        count = store.erase_cases(cases, lambda body: erase_case(body, hide=hide), dry_run=dry_run) if cases else 0
        findings.count("labels", count, "comments")
        if not dry_run and not store.clear_space():
            findings.unfinished.append(_STILL_READ.format(path))
        for case, text in store.list_written():
            if case not in cases and choice.find_name(text) is not None:
                what = "somebody's comment names it"
                findings.for_a_person.append(NamedText(place="labels", where=f"{path}, case {case}", what=what))
    finally:
        store.close()


def _is_case(members: Mapping[str, Any], choice: Choice) -> bool:
    if choice.subject is None:
        return choice.matches(members.get("metadata"))
    return choice.is_subject(digest_content(members.get("content")))


# ---------------------------------------------------------------- runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCases:
    """The cases of a run that are about the choice."""

    folder: Path
    ident: str
    cases: Mapping[int, str]
    """Place and id."""
    erased: int
    """Cases that were erased before, perhaps by a call that was interrupted."""
    data: str | None
    """The data set's file, as the run names it."""


def find_in_run(folder: Path, choice: Choice, findings: Findings) -> RunCases:
    """Find the cases of a run that are about the choice, and note in ``findings`` what else names it.

    Raises ``UsageError`` for a folder that cannot be read as a run, or in which a file is a link.
    """
    _check_own_files(folder)
    manifest = read_manifest(folder)
    store = RunStore(folder).open()
    try:
        cases, others = _divide_cases(store, choice, findings)
        chosen = set(cases.values())
        named = [name for name, is_named in others.items() if is_named]
        for name, body in store.list_texts():
            if name not in chosen and choice.may_name(body) and choice.find_name(_read_object(body)) is not None:
                named.append(name)
        erased = store.count_erased()
    finally:
        store.close()
    named = list(dict.fromkeys(named))
    _note_batches(folder, choice, findings, judged=others.keys() - chosen, chosen=chosen)
    findings.for_a_person += [
        NamedText(place="runs", where=f"{folder}, case {name}", what="names it") for name in named
    ]
    ident = str(manifest["id"])
    findings.run_cases |= {(ident, name) for name in cases.values()}
    for name in cases.values():
        if choice.find_name(name) is not None:
            findings.for_a_person.append(
                NamedText(place="runs", where=f"{folder}, case {name}", what="its id, which stays")
            )
    _note_reports(folder, choice, findings)
    data = manifest["dataset"].get("path")
    return RunCases(
        folder=folder, ident=ident, cases=cases, erased=erased, data=data if isinstance(data, str) else None
    )


def _check_own_files(folder: Path) -> None:
    # The files are rewritten: through a link, whoever made the folder could have a file elsewhere changed.
    names = (MANIFEST_FILE, RESULTS_FILE, BATCHES_FILE, STORE_FILE, LOCK_FILE)
    linked = [name for name in names if (folder / name).is_symlink()]
    if linked:
        raise UsageError(f"{folder / linked[0]} is a link, which is not followed; put the file itself there")


def _divide_cases(store: RunStore, choice: Choice, findings: Findings) -> tuple[dict[int, str], dict[str, bool]]:
    """Divide the cases of a run into those to be forgotten, whose contents ``findings`` notes, and the others.

    Returns the names of the former by their places, and for the name of each other one whether it mentions the choice,
    so that a person has to look at it.
    """
    cases: dict[int, str] = {}
    others: dict[str, bool] = {}
    for place, name, body in store.list_bodies():
        members = _read_object(body)
        if find_erased(members) is not None:
            others[name] = False
        elif _is_case(members, choice):
            cases[place] = name
            findings.subjects.add(digest_content(members.get("content")))
        else:
            others[name] = choice.find_name(members) is not None
    return cases, others


def _note_batches(
    folder: Path, choice: Choice, findings: Findings, *, judged: Collection[str], chosen: Collection[str]
) -> None:
    """Note of what came back by batch what names the choice, and what is about cases that are not judged yet.

    Of the latter nobody knows whom they are about: a batch has the ids of cases, and not their metadata.
    """
    batches, waiting, named = BatchStore(folder), 0, dict[str, None]()
    if not batches.exists:
        return
    batches.open(write=False)
    try:
        for place, body, message in batches.list_outcomes():
            case = json.loads(place)[0]
            if case not in judged:
                waiting += case not in chosen
            elif not (choice.may_name(message) or choice.may_name(body or b"")):
                continue
            elif choice.find_name({"message": message, "reply": _read_object(body or b"")}) is not None:
                named[case] = None
    finally:
        batches.close()
    findings.for_a_person += [
        NamedText(place="runs", where=f"{folder}, case {case}", what="a reply by batch names it") for case in named
    ]
    if waiting:
        replies = "reply" if waiting == 1 else "replies"
        what = f"{folder} has {waiting:,} {replies} to cases that it has not judged; resume it, and run this again"
        findings.out_of_reach.append(OutOfReach(place="batches of runs", what=what))


def forget_in_run(
    run: RunCases, choice: Choice, findings: Findings, *, hide: Callable[[str], str | None], dry_run: bool
) -> None:
    """Delete the texts of a run's cases: comments about them first, then what came back, then results and cases."""
    names = set(run.cases.values())
    labels = run.folder / STORE_FILE
    if labels.is_file():
        forget_in_label_store(labels, names, choice, findings, hide=hide, dry_run=dry_run)
    findings.count("runs", len(run.cases), run.folder.name)
    if dry_run or not (run.cases or run.erased):
        return
    lock = RunLock(run.folder)
    lock.take()
    try:
        is_clear = _erase_in_run(run, hide)
    finally:
        lock.release()
    if not is_clear:
        findings.unfinished.append(_STILL_READ.format(run.folder))


def _erase_in_run(run: RunCases, hide: Callable[[str], str | None]) -> bool:
    """Erase the cases of a run; return whether their texts have left its files, also those of an earlier call."""
    batches, is_clear = BatchStore(run.folder), True
    if batches.exists:
        batches.open()
        is_clear = batches.erase_replies([make_case_prefix(name) for name in run.cases.values()])
        batches.close()
    store = RunStore(run.folder).open()
    try:
        if run.cases:
            store.erase_cases(run.cases, hide=hide)
        return store.clear_space() and is_clear
    finally:
        store.close()


_STILL_READ = "{} is being read by another process, so the log beside it may hold what was deleted"


def _note_reports(folder: Path, choice: Choice, findings: Findings) -> None:
    """Note the reports and exports that somebody saved in the folder of a run and that name the choice."""
    for path in sorted(folder.iterdir()):
        is_report = path.name not in _OURS and path.suffix.lower() in _REPORTS
        if not is_report or not path.is_file() or path.is_symlink():
            continue
        if _is_named_in(path, choice):
            findings.out_of_reach.append(OutOfReach(place="saved reports", what=f"{path} names it; delete it yourself"))


def _is_named_in(path: Path, choice: Choice) -> bool:
    with suppress(OSError, UsageError):
        if path.stat().st_size <= LARGEST:
            return choice.find_name({"": path.read_text(encoding="utf-8", errors="replace")}) is not None
    return False


@dataclass(slots=True)
class DataFiles:
    """The data sets that runs were made of: adjudge never changes them, and says which rows are about the choice.

    A manifest may be a stranger's and name any file of the machine. So a file is read only if it is called ``.jsonl``
    itself, by no link, and no more of it is told than the numbers of its rows.
    """

    choice: Choice
    seen: set[Path] = field(default_factory=set)

    def note_rows(self, run: RunCases, findings: Findings) -> None:
        """Note which rows of the file that a run names are about the choice, if it is there and has lines.

        A file that is not read is noted for a person to look at.
        """
        path = None if run.data is None else Path(run.data)
        if path is None or path in self.seen or path.suffix != ".jsonl" or not os.path.lexists(path):
            return
        self.seen.add(path)
        try:
            numbers = list(self._list_rows(path))
        except (OSError, ValueError, RecursionError) as error:
            why = (isinstance(error, OSError) and error.strerror) or "it cannot be read"
            what = f"data of {run.folder}, not looked through: {why}"
            findings.for_a_person.append(NamedText(place="data sets", where=str(path), what=what))
            return
        if numbers:
            findings.out_of_reach.append(OutOfReach(place=path.name, what=_list_numbers(numbers, "row")))

    def _list_rows(self, path: Path) -> Iterator[int]:
        """List the numbers of the rows that are about the choice or name it; raises ``OSError`` for no such file."""
        for number, line in enumerate(_read_data(path), 1):
            row = _read_object(line)
            if _is_case(row, self.choice) or self.choice.find_name(row) is not None:
                yield number


def _read_data(path: Path) -> Iterator[bytes]:
    """Yield the lines of a regular file of at most 500 MB; raises ``OSError`` for anything else.

    A pipe would be waited for and a device may never end, so what the path names is looked at before it is opened.
    """
    _check_data(path.lstat())
    with open_unfollowed(path) as file:
        _check_data(os.fstat(file.fileno()))  # again: something else may have come in its place
        yield from file.read(LARGEST).splitlines()


def _check_data(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "it is a link")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if status.st_size > LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST // 10**6} MB")
