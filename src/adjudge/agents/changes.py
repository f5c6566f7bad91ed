"""The difference of two snapshots of a workspace: which files changed, and their diffs.

git draws the diffs and decides nothing else. It is shown the two versions of a file under names that are numbers, in a
folder of ours, with no configuration and no attributes, so that nothing in the workspace tells it to hide a line or to
run a program.
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
"""The most characters of the diff of one file; a longer one is cut in its middle."""

MOST_DRAWN = 2_000_000
"""The most bytes of a file whose diff is drawn."""

MOST_FILES_DRAWN = 2_000

MOST_BYTES_DRAWN = 50_000_000
"""The most bytes of all versions of the files whose diffs are drawn: the diffs, at most twice as long, are in
memory."""

SECONDS = 60
"""The seconds after which git is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PathChange:
    """The change of one path between two snapshots: ``None`` is a path that is not in that snapshot."""

    path: str
    kind: ChangeKind
    before: Entry | None
    after: Entry | None


def list_changes(before: Snapshot, after: Snapshot, source: Path, copy: Path) -> tuple[FileChange, ...]:
    """List what changed between two snapshots, in the order of the paths, each change with its diff.

    ``source`` is the folder of the first snapshot and ``copy`` that of the second; both are only read. A folder is
    listed if it is empty, or its permissions changed. Of a link its target is compared, and what it leads to is never
    read.
    """
    nonempty_folders = {path.rpartition("/")[0] for snapshot in (before, after) for path in snapshot.entries}
    paths = sorted({*before.entries, *after.entries})
    comparisons = [_compare_path(path, before, after, nonempty_folders) for path in paths]
    changes = [change for change in comparisons if change is not None]
    diffs = _draw_files(changes, source, copy)
    return tuple(
        [
            FileChange(path=change.path, kind=change.kind, diff=_describe_change(change) + diffs.get(index, ""))
            for index, change in enumerate(changes)
        ]
    )


def _compare_path(
    path: str, before: Snapshot, after: Snapshot, nonempty_folders: Collection[str]
) -> _PathChange | None:
    """Compare what is at a path in two snapshots; ``None`` where nothing changed.

    A new or deleted folder with something in it is no change of its own, because its files are listed.
    """
    old, new = before.entries.get(path), after.entries.get(path)
    added_or_deleted = new if old is None else old if new is None else None
    is_folder = added_or_deleted is not None and added_or_deleted.kind == "folder"
    if old == new or (is_folder and path in nonempty_folders):
        return None
    kind: ChangeKind = "added" if old is None else "deleted" if new is None else "modified"
    return _PathChange(path=path, kind=kind, before=old, after=new)


def _describe_change(change: _PathChange) -> str:
    """Describe in lines what a diff of texts does not show: kinds, permissions and the targets of links."""
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
        is_in_both = old_link and new_link
        lines.append(f"link to {old_link} -> {new_link}" if is_in_both else f"link to {new_link or old_link}")
    text = "".join(f"{line}\n" for line in lines)
    # The target of a link may hold what no text can: that is replaced.
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")


def _draw_files(changes: Sequence[_PathChange], source: Path, copy: Path) -> Mapping[int, str]:
    """Draw the diffs of the files whose bytes changed, and return them by the index of their change.

    Files that are too large, or are beyond ``MOST_FILES_DRAWN`` or ``MOST_BYTES_DRAWN``, get sizes and digests instead,
    and so do all files where there is no git.
    """
    texts = {index: _describe_sizes(change) for index, change in enumerate(changes) if _has_other_bytes(change)}
    git = shutil.which("git")
    if git is None:
        return texts
    with tempfile.TemporaryDirectory(prefix="adjudge-diff-") as folder:
        root = Path(folder)
        for version_folder in "ab":
            (root / version_folder).mkdir()
        count, bytes_left = 0, MOST_BYTES_DRAWN
        for index in texts:
            change = changes[index]
            size = sum(entry.size for entry in (change.before, change.after) if _is_file(entry))
            has_room = count < MOST_FILES_DRAWN and size <= bytes_left
            if has_room and _write_versions(change, source, copy, root, str(index)):
                count, bytes_left = count + 1, bytes_left - size
        return texts | (_run_git(git, root) if count else {})


def _is_file(entry: Entry | None) -> TypeGuard[Entry]:
    return entry is not None and entry.kind == "file"


def _has_other_bytes(change: _PathChange) -> bool:
    """Return whether the bytes of a file are others than before."""
    digests = [entry.digest if _is_file(entry) else None for entry in (change.before, change.after)]
    return digests[0] != digests[1]


def _write_versions(change: _PathChange, source: Path, copy: Path, root: Path, name: str) -> bool:
    """Write the old version of a file into the folder ``a`` and the new one into ``b``, both under the same name.

    Return false, and write neither, if one of them cannot be read.
    """
    entries = (change.before, change.after)
    contents = [_read_version(base / change.path, entry) for base, entry in zip((source, copy), entries, strict=True)]
    if None in contents:
        return False
    for version_folder, content, entry in zip("ab", contents, entries, strict=True):
        if content is not None and _is_file(entry):
            (root / version_folder / name).write_bytes(content)
    return True


def _read_version(path: Path, entry: Entry | None) -> bytes | None:
    """Read one version of a file.

    ``None`` for a file that is too large, cannot be read, or has changed since its snapshot; no bytes for what is no
    file.
    """
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
    """Let git draw the diff of each pair of files of one name below ``a`` and ``b``.

    Return each diff by the number that is the name of its pair. ``git`` is the path of the program.
    """
    # No variable of this process is handed on: GIT_DIR, GIT_EXTERNAL_DIFF and the like name a repository or a program.
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
        completed = subprocess.run(  # noqa: S603 - given files of ours alone
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
    return _split_diffs(completed.stdout)


def _split_diffs(output: bytes) -> dict[int, str]:
    """Split the output of ``git diff`` into the diffs of its pairs, each by the number that is the name of its pair.

    The head of a diff is found by the beginning of its line: lines of a file begin with a blank, a plus or a minus. The
    bytes are split, and each diff is decoded and shortened by itself, because all of them as text would take several
    times as much memory.
    """
    texts: dict[int, str] = {}
    for chunk in (b"\n" + output).split(b"\ndiff --git ")[1:]:
        head, _, body = chunk.decode(errors="replace").replace("\x00", "\ufffd").partition("\n")
        number = head.rpartition("/")[2]
        if number.isdecimal():
            texts[int(number)] = _extract_hunks(body)
    return texts


def _extract_hunks(body: str) -> str:
    """Return a diff from its first hunk on, shortened; without one, an empty text, or that binary files differ."""
    lines = body.split("\n")
    for index, line in enumerate(lines):
        if line.startswith("@@"):
            return _shorten_diff("\n".join(lines[index:]))
        if line.startswith("Binary files"):
            return "binary files differ\n"
    return ""


def _describe_sizes(change: _PathChange) -> str:
    """Describe a change of a file whose diff is not drawn: sizes and digests before and after."""
    before, after = [
        f"{entry.size:,} bytes, SHA-256 {entry.digest}" if entry is not None and entry.kind == "file" else "nothing"
        for entry in (change.before, change.after)
    ]
    return f"not drawn: {before} -> {after}\n"


def _shorten_diff(text: str) -> str:
    """Cut a diff of more than ``LONGEST_DIFF`` characters in its middle, and say how many are left out."""
    if len(text) <= LONGEST_DIFF:
        return text
    half = LONGEST_DIFF // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"
