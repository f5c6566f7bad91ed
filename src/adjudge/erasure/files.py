"""Forgetting in files: caches of replies, recordings, files of labels, and folders of runs.

Which contents are chosen is decided in ``choice.py`` (``Choice``), and the order in which places are searched in
``forget.py`` (``forget``). The bytes of deleted rows leave a file of adjudge's in ``formats/sqlite_file.py``
(``clear_space``), and a ledger's in ``ledger/store.py``.
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

_REPORT_SUFFIXES = frozenset((".html", ".md", ".json", ".xml", ".csv", ".jsonl", ".txt"))

_RUN_FILES = frozenset((MANIFEST_FILE, "plan.json", "estimate.json", "looks.jsonl"))


# ---------------------------------------------------------------- caches


def forget_in_cache(path: Path, findings: Findings, *, dry_run: bool) -> None:
    """Delete the replies about the subjects in ``findings`` from a cache.

    Replies that do not say what they are about are noted, for a person to look at.
    """
    with ReplyCache(path) as cache:
        count, unknown_count = cache.check().drop_subjects(findings.subjects, dry_run=dry_run)
        findings.add_deleted("kept replies", count)
        if unknown_count:
            replies = "reply does not say what it is" if unknown_count == 1 else "replies do not say what they are"
            what = f"{unknown_count:,} {replies} about; `adjudge cache clear` empties it"
            findings.for_a_person.append(NamedText(place="kept replies", where=str(path), what=what))
        if not dry_run and not cache.clear_space():
            findings.unfinished.append(_STILL_READ.format(path))


# ---------------------------------------------------------------- files of lines


def forget_in_recording(path: Path, choice: Choice, findings: Findings, *, dry_run: bool) -> None:
    """Delete the rows about the subjects in ``findings`` from a recording, and add a row with the number of them.

    That row also counts the rows that were deleted before.
    """
    lines = _read_line_file(path, "recordings", findings)
    remaining_lines: list[_Line] = []
    for line in lines:
        if not _is_about(line.row, findings.subjects):
            remaining_lines.append(line)
            _note_mention(path, line, "recordings", choice, findings)
    count = len(lines) - len(remaining_lines)
    findings.add_deleted("recordings", count, f"in {path.name}")
    if count and not dry_run:
        texts = [line.text for line in remaining_lines if "erased" not in line.row]
        earlier_count = sum(line.row["erased"] for line in lines if isinstance(line.row.get("erased"), int))
        # The key is no digest, so no request has it. Versions of adjudge that do not know this row can read it as one.
        count_row = {
            "schema": RECORDING,
            "key": "erased",
            "model": "",
            "erased": earlier_count + count,
            "reply": {"text": ""},
        }
        replace_lines(path, [*texts, json.dumps(count_row).encode()])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of a file of rows, with its number from 1; a line that is no JSON object has an empty row."""

    number: int
    text: bytes
    row: dict[str, Any]


def _read_line_file(path: Path, place: str, findings: Findings) -> list[_Line]:
    """Read the lines of a file that has one JSON object in each.

    Lines with anything else cannot be searched, and are noted for a person to look at.
    """
    rows = [(number, text, _read_row(text)) for number, text in read_lines(path)]
    unreadable_numbers = [number for number, _, row in rows if row is None]
    if unreadable_numbers:
        what = f"no JSON objects, so not looked through: {_list_numbers(unreadable_numbers, 'line')}"
        findings.for_a_person.append(NamedText(place=place, where=str(path), what=what))
    return [_Line(number=number, text=text, row=row or {}) for number, text, row in rows]


def _note_mention(path: Path, line: _Line, place: str, choice: Choice, findings: Findings) -> None:
    """Note a line for a person to look at, if it names the choice."""
    member = choice.find_naming_member(line.row)
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
    # A row has no subject if it was no judge that called the model. Then the content may be found in the prompt.
    request = row.get("request")
    prompt = request.get("user") if isinstance(request, Mapping) else None
    match = _CONTENT.search(prompt) if isinstance(prompt, str) else None
    return match is not None and digest_text(match[1].encode("utf-8", "replace").decode()) in subjects


def _is_among(value: object, texts: Collection[str]) -> bool:
    """Return whether a value is one of some texts. It comes from a file, so it may also be a list or a number."""
    return isinstance(value, str) and value in texts


def check_label_file(path: Path) -> None:
    """Raise ``UsageError`` for a file of labels in another format than JSON lines, in which nothing would be found."""
    try:
        file_format, is_compressed = find_format(path.name, None)
    except UsageError:  # the name tells no format; lines that are no JSON are noted one by one
        return
    if file_format != "jsonl" or is_compressed:
        actual_format = "compressed" if is_compressed else file_format
        raise UsageError(
            f"{path} is {actual_format}, and labels are looked through as JSON lines or as a file of "
            "`adjudge label`; write it as .jsonl, or delete it yourself and do not name it here"
        )


def forget_in_label_file(path: Path, choice: Choice, findings: Findings, *, dry_run: bool) -> None:
    """Delete the texts in the rows of a file of labels that are about what ``findings`` has.

    The texts are comments, and in a list of cases to label also those of the cases. The rows themselves stay.
    """
    count = 0
    kinds: dict[str, None] = {}  # "comments" and "cases", in the order in which they are found
    new_lines: list[bytes] = []
    for line in _read_line_file(path, "labels", findings):
        text_columns = [name for name in _LABEL_TEXT_COLUMNS if line.row.get(name) not in (None, "")]
        if not _is_label_about(line.row, findings):
            _note_mention(path, line, "labels", choice, findings)
        elif text_columns:
            count += 1
            kinds |= dict.fromkeys("comments" if name == "comment" else "cases" for name in text_columns)
            # Emptied and not taken out: a row that nobody has filled in yet would be refused without its columns.
            emptied_row = line.row | dict.fromkeys(text_columns)
            new_lines.append(json.dumps(emptied_row, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            continue
        new_lines.append(line.text)
    findings.add_deleted("labels", count, f"{' and '.join(kinds)} in {path.name}")
    if count and not dry_run:
        replace_lines(path, new_lines)


_LABEL_TEXT_COLUMNS = (*CASE_COLUMNS, "comment")


def _is_label_about(row: Mapping[str, Any], findings: Findings) -> bool:
    """Return whether a label is about a content, a request for approval or a case of a run that ``findings`` has."""
    run, case = row.get("run"), row.get("case")  # for a label of an approval, the case is the request's id
    if _is_among(row.get("subject"), findings.subjects) or _is_among(case, findings.approvals):
        return True
    return isinstance(run, str) and isinstance(case, str) and (run, case) in findings.run_cases


def replace_lines(path: Path, lines: list[bytes]) -> None:
    """Replace a file's lines in one step, and keep its mode.

    Raises ``AdjudgeError`` where another process has written to the file meanwhile, and where it cannot be written.
    """
    target = path.resolve()
    new_file = target.with_name(f"{target.name}.{secrets.token_hex(4)}.new")
    try:
        before = target.stat()
        descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        new_file.chmod(stat.S_IMODE(before.st_mode))
        after = target.stat()
        if (after.st_size, after.st_mtime_ns, after.st_ino) != (before.st_size, before.st_mtime_ns, before.st_ino):
            raise AdjudgeError(f"{path} is being written; stop what writes it, and run this again")
        new_file.replace(target)
    except OSError as error:
        raise AdjudgeError(
            f"{path} cannot be written: {error.strerror}; make it writable, and run this again"
        ) from None
    finally:
        new_file.unlink(missing_ok=True)


def _read_object(line: bytes | str) -> dict[str, Any]:
    """Read a JSON object; anything else is read as an empty one."""
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
    """Return whether a file of labels is a database of SQLite, and not a file of JSON lines."""
    with open_regular(path) as file:
        return file.read(len(_SQLITE)) == _SQLITE


def note_label_contents(path: Path, choice: Choice, findings: Findings) -> None:
    """Note in ``findings`` the contents of the chosen cases among those that a file of labels holds."""
    store = LabelStore(path)
    try:
        for _, body in store.list_bodies():
            members = _read_object(body)
            if find_erased(members) is None and _is_chosen_case(members, choice):
                findings.subjects.add(digest_content(members.get("content")))
    finally:
        store.close()


def find_in_label_store(path: Path, choice: Choice, findings: Findings) -> set[str]:
    """Find the cases of a file of labels that are about the choice or what ``findings`` has; return their ids.

    The file of labels in a run's folder has no texts of the cases. Such a case is known by the run and its id, or by
    the digest that a label has of the content that was read. Cases that only name the choice are noted in ``findings``.
    """
    store = LabelStore(path)
    try:
        run_id = store.find_fact("run")
        chosen_ids = {case_id for run, case_id in findings.run_cases if run == run_id}
        for case_id, label in store.list_written():
            if _is_among(_read_object(label).get("subject"), findings.subjects):
                chosen_ids.add(case_id)
        for case_id, body in store.list_bodies():
            members = _read_object(body)
            if case_id in chosen_ids or find_erased(members) is not None:
                continue
            if _is_chosen_case(members, choice) or digest_content(members.get("content")) in findings.subjects:
                chosen_ids.add(case_id)
            elif choice.find_naming_member(members) is not None:
                where = f"{path}, case {case_id}"
                findings.for_a_person.append(NamedText(place="labels", where=where, what="names it"))
        return chosen_ids
    finally:
        store.close()


def forget_in_label_store(
    path: Path,
    cases: Collection[str],
    choice: Choice,
    findings: Findings,
    *,
    hide_group: Callable[[str], str | None],
    dry_run: bool,
) -> None:
    """Delete the comments of people on some cases, given by id, and the cases' texts, from a file of labels.

    Comments on other cases that name the choice are noted, for a person to look at.
    """
    store = LabelStore(path)
    try:
        count = (
            store.erase_cases(cases, lambda body: erase_case(body, hide_group=hide_group), dry_run=dry_run)
            if cases
            else 0
        )
        findings.add_deleted("labels", count, "comments")
        if not dry_run and not store.clear_space():
            findings.unfinished.append(_STILL_READ.format(path))
        for case_id, label in store.list_written():
            if case_id not in cases and choice.find_naming_member(label) is not None:
                what = "somebody's comment names it"
                findings.for_a_person.append(NamedText(place="labels", where=f"{path}, case {case_id}", what=what))
    finally:
        store.close()


def _is_chosen_case(members: Mapping[str, Any], choice: Choice) -> bool:
    """Return whether a case has the chosen content, or metadata with the chosen value."""
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
    """Find the cases of a run that are about the choice, and note in ``findings`` the other texts that name it.

    Raises ``UsageError`` for a folder that cannot be read as a run, or in which a file is a link.
    """
    _check_own_files(folder)
    manifest = read_manifest(folder)
    store = RunStore(folder).open()
    try:
        cases, others = _divide_cases(store, choice, findings)
        chosen_ids = set(cases.values())
        naming_ids = [case_id for case_id, names_choice in others.items() if names_choice]
        for case_id, result in store.list_texts():
            if case_id in chosen_ids or not choice.may_name(result):
                continue
            if choice.find_naming_member(_read_object(result)) is not None:
                naming_ids.append(case_id)
        erased = store.count_erased()
    finally:
        store.close()
    _note_batches(folder, choice, findings, judged=others.keys() - chosen_ids, chosen=chosen_ids)
    findings.for_a_person += [
        NamedText(place="runs", where=f"{folder}, case {case_id}", what="names it")
        for case_id in dict.fromkeys(naming_ids)
    ]
    run_id = str(manifest["id"])
    findings.run_cases |= {(run_id, case_id) for case_id in cases.values()}
    for case_id in cases.values():
        if choice.find_naming_member(case_id) is not None:
            findings.for_a_person.append(
                NamedText(place="runs", where=f"{folder}, case {case_id}", what="its id, which stays")
            )
    _note_reports(folder, choice, findings)
    data = manifest["dataset"].get("path")
    return RunCases(
        folder=folder, ident=run_id, cases=cases, erased=erased, data=data if isinstance(data, str) else None
    )


def _check_own_files(folder: Path) -> None:
    """Raise ``UsageError`` if one of the files in a run's folder is a link.

    The files are rewritten, so whoever made the folder could have a file elsewhere changed through a link.
    """
    names = (MANIFEST_FILE, RESULTS_FILE, BATCHES_FILE, STORE_FILE, LOCK_FILE)
    linked = [name for name in names if (folder / name).is_symlink()]
    if linked:
        raise UsageError(f"{folder / linked[0]} is a link, which is not followed; put the file itself there")


def _divide_cases(store: RunStore, choice: Choice, findings: Findings) -> tuple[dict[int, str], dict[str, bool]]:
    """Divide the cases of a run into those about the choice, whose contents are noted in ``findings``, and the others.

    Returns two mappings: the ids of the chosen cases by their places, and for the id of each other case true if it only
    names the choice, so that a person has to look at it.
    """
    chosen: dict[int, str] = {}
    others: dict[str, bool] = {}
    for place, case_id, body in store.list_bodies():
        members = _read_object(body)
        if find_erased(members) is not None:
            others[case_id] = False
        elif _is_chosen_case(members, choice):
            chosen[place] = case_id
            findings.subjects.add(digest_content(members.get("content")))
        else:
            others[case_id] = choice.find_naming_member(members) is not None
    return chosen, others


def _note_batches(
    folder: Path, choice: Choice, findings: Findings, *, judged: Collection[str], chosen: Collection[str]
) -> None:
    """Note the replies of a run's batches that name the choice, and the number of replies to cases not judged yet.

    It is not known whom the latter are about: a batch has the ids of cases, and not their metadata. ``judged`` has the
    ids of judged cases that are not chosen, and ``chosen`` those of the chosen ones.
    """
    batches = BatchStore(folder)
    if not batches.exists:
        return
    unjudged_count = 0
    naming_ids: dict[str, None] = {}  # a set that keeps its order
    batches.open(write=False)
    try:
        for place, body, message in batches.list_outcomes():
            case_id = json.loads(place)[0]
            if case_id not in judged:
                unjudged_count += case_id not in chosen
            elif not (choice.may_name(message) or choice.may_name(body or b"")):
                continue
            elif choice.find_naming_member({"message": message, "reply": _read_object(body or b"")}) is not None:
                naming_ids[case_id] = None
    finally:
        batches.close()
    findings.for_a_person += [
        NamedText(place="runs", where=f"{folder}, case {case_id}", what="a reply by batch names it")
        for case_id in naming_ids
    ]
    if unjudged_count:
        replies = "reply" if unjudged_count == 1 else "replies"
        what = (
            f"{folder} has {unjudged_count:,} {replies} to cases that it has not judged; resume it, and run this again"
        )
        findings.out_of_reach.append(OutOfReach(place="batches of runs", what=what))


def forget_in_run(
    run: RunCases, choice: Choice, findings: Findings, *, hide_group: Callable[[str], str | None], dry_run: bool
) -> None:
    """Delete the texts about the chosen cases of a run: comments of people first, then replies, results and cases.

    The cases are last, because their metadata tell a later call which they are if this one is interrupted.
    """
    case_ids = set(run.cases.values())
    label_file = run.folder / STORE_FILE
    if label_file.is_file():
        forget_in_label_store(label_file, case_ids, choice, findings, hide_group=hide_group, dry_run=dry_run)
    findings.add_deleted("runs", len(run.cases), run.folder.name)
    if dry_run or not (run.cases or run.erased):
        return
    lock = RunLock(run.folder)
    lock.acquire()
    try:
        is_clear = _erase_in_run(run, hide_group)
    finally:
        lock.release()
    if not is_clear:
        findings.unfinished.append(_STILL_READ.format(run.folder))


def _erase_in_run(run: RunCases, hide_group: Callable[[str], str | None]) -> bool:
    """Erase the cases of a run; return whether their texts have left its files, also those of an earlier call.

    They have not where another process is reading a file: its log then still has them.
    """
    batches, is_clear = BatchStore(run.folder), True
    if batches.exists:
        batches.open()
        is_clear = batches.erase_replies([make_case_prefix(case_id) for case_id in run.cases.values()])
        batches.close()
    store = RunStore(run.folder).open()
    try:
        if run.cases:
            store.erase_cases(run.cases, hide_group=hide_group)
        return store.clear_space() and is_clear
    finally:
        store.close()


_STILL_READ = "{} is being read by another process, so the log beside it may hold what was deleted"


def _note_reports(folder: Path, choice: Choice, findings: Findings) -> None:
    """Note the reports and exports that somebody saved in the folder of a run and that name the choice."""
    for path in sorted(folder.iterdir()):
        is_report = path.name not in _RUN_FILES and path.suffix.lower() in _REPORT_SUFFIXES
        if not is_report or not path.is_file() or path.is_symlink():
            continue
        if _is_named_in(path, choice):
            findings.out_of_reach.append(OutOfReach(place="saved reports", what=f"{path} names it; delete it yourself"))


def _is_named_in(path: Path, choice: Choice) -> bool:
    """Return whether a file names the choice; false for one that is too large or cannot be read."""
    with suppress(OSError, UsageError):
        if path.stat().st_size <= LARGEST:
            return choice.find_naming_member({"": path.read_text(encoding="utf-8", errors="replace")}) is not None
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
            os_reason = error.strerror if isinstance(error, OSError) else None
            why = os_reason or "it cannot be read"
            what = f"data of {run.folder}, not looked through: {why}"
            findings.for_a_person.append(NamedText(place="data sets", where=str(path), what=what))
            return
        if numbers:
            findings.out_of_reach.append(OutOfReach(place=path.name, what=_list_numbers(numbers, "row")))

    def _list_rows(self, path: Path) -> Iterator[int]:
        """List the numbers of the rows that are about the choice or name it; raises ``OSError`` for no such file."""
        for number, line in enumerate(_read_data(path), 1):
            row = _read_object(line)
            if _is_chosen_case(row, self.choice) or self.choice.find_naming_member(row) is not None:
                yield number


def _read_data(path: Path) -> Iterator[bytes]:
    """Yield the lines of a regular file of at most 500 MB; raises ``OSError`` for anything else.

    The file's type is checked before it is opened, because opening a pipe would wait, and a device may never end.
    """
    _check_data(path.lstat())
    with open_unfollowed(path) as file:
        _check_data(os.fstat(file.fileno()))  # again: the path may name another file by now
        yield from file.read(LARGEST).splitlines()


def _check_data(status: os.stat_result) -> None:
    """Raise ``OSError`` unless this is the status of a regular file of at most ``LARGEST`` bytes."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "it is a link")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if status.st_size > LARGEST:
        raise OSError(errno.EFBIG, f"it is larger than {LARGEST // 10**6} MB")
