"""The newest tag, or another commit, in an environment of its own: what it writes, and what it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from kit.house import ROOT
from kit.ledgers import POSTGRES

EXTRAS = "server,sign,trust,postgres"


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version in an environment of its own, and the copy of the source that it was built from."""

    python: Path
    source: Path

    def run(self, *arguments: str, folder: Path | None = None) -> str:
        """Return what a command of that version prints."""
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=folder,
            env=variables | {"PYTHONPATH": str(self.source / "tests")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def find_commit() -> str:
    """The commit that ADJUDGE_UPGRADE_FROM names, or the newest tag; a test that needs it skips where there is none."""
    named = os.environ.get("ADJUDGE_UPGRADE_FROM")
    if named:
        return named
    tags = _git("tag", "--list", "v*", "--sort=-version:refname").split()
    if not tags:
        pytest.skip("no tag v* is here; ADJUDGE_UPGRADE_FROM may name a commit")
    return tags[0]


def build_version(folder: Path) -> OldVersion:
    """Build the wheel of that commit, and install it with its extras in a fresh environment."""
    commit = find_commit()
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    _git("archive", "--output", str(folder / "source.tar"), commit)
    _do("tar", "-xf", str(folder / "source.tar"), "-C", str(source))
    uv = (sys.executable, "-m", "uv")
    _do(*uv, "build", "-q", "--wheel", "--out-dir", str(folder), str(source))
    _do(*uv, "venv", "-q", "--python", sys.executable, str(environment))
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    (wheel,) = folder.glob("*.whl")
    _do(*uv, "pip", "install", "-q", "--python", str(python), f"adjudge[{EXTRAS}] @ {wheel.as_uri()}")
    return OldVersion(python, source)


def make_tagged_files(folder: Path) -> Path:
    """The files that the newest tag writes, with the program that it brings for that."""
    version = build_version(folder)
    with open_database() as url:
        version.run("-m", "kit.upgrade_files", str(folder / "files"), url)
    return folder / "files"


@contextmanager
def open_database() -> Iterator[str]:
    """The address of a database of its own on the tests' PostgreSQL server, which is dropped afterwards."""
    from sqlalchemy import create_engine

    name = f"adjudge_{uuid4().hex}"
    engine = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield f"{POSTGRES.rpartition('/')[0]}/{name}"
    finally:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        engine.dispose()


def _git(*arguments: str) -> str:
    return _do("git", *arguments)


def _do(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
