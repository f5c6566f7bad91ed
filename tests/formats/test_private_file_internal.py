"""Files for their owner alone: manifests, label plans and the secret of a run by batches are written this way."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from adjudge.formats.private_file import write_private


def list_names(folder: Path) -> list[str]:
    """What is in a folder."""
    return [path.name for path in folder.iterdir()]


needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX's permissions and symbolic links")


@needs_posix
def test_only_its_owner_can_read_it_whatever_was_there_before(tmp_path: Path):
    """The rights of a file that is replaced, and those that the umask would give, do not count."""
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_private(path, b"new\n")

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new\n", 0o600)
    assert list_names(tmp_path) == ["kept"]


@needs_posix
def test_a_link_is_replaced_and_not_followed(tmp_path: Path):
    """What it led to is somebody else's."""
    theirs, path = tmp_path / "theirs", tmp_path / "kept"
    theirs.write_bytes(b"theirs")
    path.symlink_to(theirs)
    write_private(path, b"ours")

    assert (theirs.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"theirs", b"ours", False)


def test_what_cannot_be_put_in_place_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    """``put`` sees the finished file, and may refuse to give it the name."""
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    seen: list[bytes] = []

    def refuse(fresh: Path, target: Path) -> None:
        assert target == path
        seen.append(fresh.read_bytes())
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        write_private(path, b"new", put=refuse)

    assert (seen, path.read_bytes(), list_names(tmp_path)) == ([b"new"], b"old", ["kept"])


@pytest.mark.skipif(os.name == "nt", reason="Windows may refuse one of two replacements at the same moment")
def test_of_several_writers_one_wins_with_the_whole_of_its_file(tmp_path: Path):
    """None writes into the file that another one is writing."""
    path = tmp_path / "kept"
    bodies = [bytes([65 + number]) * 200_000 for number in range(6)]
    threads = [threading.Thread(target=write_private, args=(path, body)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert path.read_bytes() in bodies
    assert list_names(tmp_path) == ["kept"]
