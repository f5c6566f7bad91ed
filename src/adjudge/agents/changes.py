"""The difference of two snapshots of a workspace: which files changed, and a drawing of how.

git draws, and decides nothing: it is shown the two versions of a file under names that are numbers, in a folder of
ours, with no configuration and no attributes, so that nothing in the workspace tells it to hide a line or to run a
program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeGuard

from adjudge.agents.step import ChangeKind, FileChange
from adjudge.agents.workspace import Entry, Snapshot
from adjudge.formats.files import open_unfollowed

LONGEST_DIFF = 200_000
"""Characters of the drawing of one file; a longer one is cut in its middle."""

MOST_DRAWN = 2_000_000
"""Bytes of the largest file that is drawn."""

MOST_FILES_DRAWN = 2_000

MOST_BYTES_DRAWN = 50_000_000
"""Bytes of all versions of the files that are drawn; git's drawing of them, at most twice as long, is in memory."""

SECONDS = 60
"""The time that git has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    path: str
    kind: ChangeKind
    before: Entry | None
    after: Entry | None


def list_changes(before: Snapshot, after: Snapshot, source: Path, copy: Path) -> tuple[FileChange, ...]:
    """List what is different, in the order of the paths, with how it differs.

    ``source`` is the folder of the first snapshot and ``copy`` that of the second; both are only read. A folder is
    listed if it is empty, or its permissions are other ones. What a link leads to is written down and never read.
    """
    full = {path.rpartition("/")[0] for snapshot in (before, after) for path in snapshot.entries}
    changes = [_compare_path(path, before, after, full) for path in sorted({*before.entries, *after.entries})]
    different = [change for change in changes if change is not None]
    drawn = _draw_files(different, source, copy)
    return tuple(
        [
            FileChange(path=change.path, kind=change.kind, diff=_describe_change(change) + drawn.get(place, ""))
            for place, change in enumerate(different)
        ]
    )


def _compare_path(path: str, before: Snapshot, after: Snapshot, full: Collection[str]) -> _Change | None:
    """Compare one path; ``full`` are the folders with anything in them, of which their files say that they are new."""
    old, new = before.entries.get(path), after.entries.get(path)
    only = new if old is None else old if new is None else None
    is_full_folder = only is not None and only.kind == "folder" and path in full
    if old == new or is_full_folder:
        return None
    kind: ChangeKind = "added" if old is None else "deleted" if new is None else "modified"
    return _Change(path=path, kind=kind, before=old, after=new)


def _describe_change(change: _Change) -> str:
    """Describe in lines what no drawing of texts shows: kinds, permissions, links, digests."""
    old, new = change.before, change.after
    entry = new or old
    lines = []
    if old is not None and new is not None and old.kind != new.kind:
        lines.append(f"was a {old.kind}, is a {new.kind}")
    elif entry is not None and entry.kind != "file":
        lines.append(f"a {entry.kind}")
    if old is not None and new is not None and old.mode != new.mode:
        lines.append(f"mode {old.mode:o} -> {new.mode:o}")
    elif new is not None and old is None and new.mode & 0o111 and new.kind == "file":
        lines.append(f"mode {new.mode:o}")
    old_link, new_link = [entry.digest if entry is not None and entry.kind == "link" else "" for entry in (old, new)]
    if old_link != new_link:
        is_moved = old_link and new_link
        lines.append(f"link to {old_link} -> {new_link}" if is_moved else f"link to {new_link or old_link}")
    text = "".join(f"{line}\n" for line in lines)
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")


def _draw_files(changes: Sequence[_Change], source: Path, copy: Path) -> Mapping[int, str]:
    """Draw what is different in the files whose bytes are, by their places; of large ones only sizes and digests.

    Files beyond ``MOST_FILES_DRAWN`` or ``MOST_BYTES_DRAWN`` get sizes and digests too.
    """
    texts = {place: _describe_sizes(change) for place, change in enumerate(changes) if _has_other_bytes(change)}
    git = shutil.which("git")
    if git is None:
        return texts
    with tempfile.TemporaryDirectory(prefix="adjudge-diff-") as folder:
        root = Path(folder)
        for side in "ab":
            (root / side).mkdir()
        drawn, room = 0, MOST_BYTES_DRAWN
        for place in texts:
            change = changes[place]
            size = sum(entry.size for entry in (change.before, change.after) if _is_file(entry))
            if drawn < MOST_FILES_DRAWN and size <= room and _write_versions(change, source, copy, root, str(place)):
                drawn, room = drawn + 1, room - size
        return texts | (_run_git(git, root) if drawn else {})


def _is_file(entry: Entry | None) -> TypeGuard[Entry]:
    return entry is not None and entry.kind == "file"


def _has_other_bytes(change: _Change) -> bool:
    """Return whether a change is one of a file's bytes."""
    digests = [entry.digest if _is_file(entry) else None for entry in (change.before, change.after)]
    return digests[0] != digests[1]


def _write_versions(change: _Change, source: Path, copy: Path, root: Path, name: str) -> bool:
    """Write both versions of a file below ``a`` and ``b``; return false, and write none, if one cannot be read."""
    entries = (change.before, change.after)
    contents = [_read_version(base / change.path, entry) for base, entry in zip((source, copy), entries, strict=True)]
    if None in contents:
        return False
    for side, content, entry in zip("ab", contents, entries, strict=True):
        if content is not None and _is_file(entry):
            (root / side / name).write_bytes(content)
    return True


def _read_version(path: Path, entry: Entry | None) -> bytes | None:
    """Read one version of a file, as it was when it was looked at; ``None`` for one that is too large or is another."""
    if not _is_file(entry):
        return b""
    if entry.size > MOST_DRAWN:
        return None
    try:
        with open_unfollowed(path) as file:
            content = file.read(MOST_DRAWN + 1)
    except OSError:
        return None
    return content if sha256(content).hexdigest() == entry.digest else None


def _run_git(git: str, root: Path) -> dict[int, str]:
    """Let git draw all pairs of files below ``a`` and ``b`` at once, and return each drawing by the number of its pair.

    ``git`` is the path of the program.
    """
    # No variable of ours: GIT_DIR, GIT_EXTERNAL_DIFF and the like would name a repository or a program.
    environment = {
        "PATH": str(Path(git).absolute().parent),
        "HOME": str(root),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
    }
    command = [
        "git",
        "diff",
        "--no-index",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-renames",
        "--",
        "a",
        "b",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - given files of ours alone
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return _split_diffs(done.stdout)


def _split_diffs(output: bytes) -> dict[int, str]:
    """Split the output of ``git diff`` into the diff of each pair of files, by the number that is the pair's file name.

    A head is known by its beginning: a line of a file begins with a blank, a plus or a minus. The bytes are split, and
    each diff is read and shortened by itself: as text, all of them would take several times as much memory.
    """
    texts: dict[int, str] = {}
    for chunk in (b"\n" + output).split(b"\ndiff --git ")[1:]:
        head, _, body = chunk.decode(errors="replace").replace("\x00", "\ufffd").partition("\n")
        number = head.rpartition("/")[2]
        if number.isdecimal():
            lines = body.split("\n")
            begin = next((place for place, line in enumerate(lines) if line.startswith(("@@", "Binary files"))), None)
            text = "binary files differ\n" if begin is not None and lines[begin].startswith("Binary") else ""
            texts[int(number)] = text or _shorten_diff("\n".join(lines[begin:]) if begin is not None else "")
    return texts


def _describe_sizes(change: _Change) -> str:
    before, after = [
        f"{entry.size:,} bytes, SHA-256 {entry.digest}" if entry is not None and entry.kind == "file" else "nothing"
        for entry in (change.before, change.after)
    ]
    return f"not drawn: {before} -> {after}\n"


def _shorten_diff(text: str) -> str:
    if len(text) <= LONGEST_DIFF:
        return text
    half = LONGEST_DIFF // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
