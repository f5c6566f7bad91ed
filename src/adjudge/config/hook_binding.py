"""The binding of an installed hook to its configuration: an absolute path, and a digest over all files that count.

The hook runs in the folder of a session, whose files may be an attacker's. So its configuration has an absolute path
outside of the session's folder, and the hook refuses it if it, or a file that it names, has another digest than at the
installation.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adjudge.config.file import Config, find_recording, read_config
from adjudge.config.ledger import SQLITE
from adjudge.errors import Argument, UsageError
from adjudge.formats.text import show


def read_bound_config(path: Path, *, digest: str | None, allow_python: bool = False) -> Config:
    """Read the configuration of a hook, and check that it is the one that was installed.

    Raises ``UsageError`` for a path that is relative, a link or writable by everybody, for another ``digest`` (``None``
    compares none), and for code in it unless ``allow_python``, or a server is asked, which runs it.
    """
    if not path.is_absolute():
        raise UsageError(Argument("config"), f" must be an absolute path, got {show(str(path))}", argument="config")
    _check_file(path)
    config = read_config(path)
    if not allow_python and "server" not in config.hook and (code := find_python(config)) is not None:
        raise UsageError(
            f"{path} runs code ({show(code)}); take it out, or install the hook with ",
            Argument("allow_python", "True"),
            argument="allow_python",
        )
    if "server" not in config.hook:
        _check_ledger(config)
    if digest is not None and digest != digest_installed(config):
        raise UsageError(
            f"{path}, or a file that it names, has changed since the hook was installed; read it, and run "
            "adjudge hook install again"
        )
    return config


def digest_installed(config: Config) -> str:
    """Return the digest to which an installed hook is bound: of the configuration and all files that it names.

    With a server it is of the file alone, because the gates and the files that they name are the server's.
    """
    return (config.digest or "") if "server" in config.hook else digest_config(config)


def check_outside(path: Path, cwd: str) -> None:
    """Raise ``UsageError`` for a configuration in the folder of a session, where the agent can write."""
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(cwd)):
        raise UsageError(f"{path} lies in the folder of the session, {cwd}, where the agent can write; move it")


def find_project(path: Path) -> Path | None:
    """Find the git project that a file lies in, where an agent that works on it can write; ``None`` for no project."""
    return next((folder for folder in Path(os.path.realpath(path)).parents if (folder / ".git").exists()), None)


def _check_file(path: Path) -> None:
    """Raise ``UsageError`` for a configuration that is not there, is a link, or can be written by everybody."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise UsageError(
            f"cannot read the configuration {path}: {error.strerror}; name a file with ",
            Argument("config"),
            argument="config",
        ) from None
    if stat.S_ISLNK(mode):
        raise UsageError(f"{path} is a link, and what it leads to can be changed; name the file itself")
    if mode & stat.S_IWOTH:
        raise UsageError(f"{path} can be written by everybody; take that right away (chmod o-w)")


def _check_ledger(config: Config) -> None:
    """Raise ``UsageError`` unless ``[ledger]`` has a url, and an absolute path if that is a file."""
    url = config.ledger.get("url")
    if url is None:
        raise UsageError(f"{config.path}: [ledger] needs url: what the agent does is recorded, and people are asked")
    if (url.startswith(SQLITE) or "://" not in url) and not Path(url.removeprefix(SQLITE)).is_absolute():
        raise UsageError(f"{config.path}: [ledger] url must be absolute for a hook, like sqlite:////home/ana/guard.db")


def find_python(config: Config) -> str | None:
    """Find the first text or table of a configuration that names code to run; ``None`` if there is none."""
    for value in _walk_values(_list_naming_tables(config)):
        if isinstance(value, str) and value.strip().startswith("python:"):
            return value
        if isinstance(value, dict) and ("python" in value or value.get("name") == "python"):
            return str(value)
    return None


def digest_config(config: Config) -> str:
    """Digest a configuration and every file that it names: rubrics, what rules read, recordings, and modules."""
    files = {str(file): _digest_file(file) for file in list_named_files(config)}
    return hashlib.sha256(json.dumps([config.digest, files], sort_keys=True).encode()).hexdigest()


def list_named_files(config: Config) -> tuple[Path, ...]:
    """List the files that a configuration names, sorted; every text that is the path of a file counts."""
    folder = config.folder or Path()
    files: set[Path] = set()
    for value in _walk_values(_list_naming_tables(config)):
        if isinstance(value, str) and 0 < len(value) < 1_000 and "\n" not in value and "\0" not in value:
            files |= {path for path in _list_candidate_paths(folder, value) if path.is_file()}
    return tuple(sorted(files))


def _list_candidate_paths(folder: Path, text: str) -> list[Path]:
    """List the paths that a text may name: a file, a recording, or for ``python:`` the module and its package."""
    recording = find_recording(text)
    if recording is not None:  # its rows are the verdicts of the judge that replays it
        return [folder / recording]
    if not text.strip().startswith("python:"):
        return [folder / text]
    module = text.strip().removeprefix("python:").partition(":")[0].replace(".", "/")
    return [folder / f"{module}.py", *sorted((folder / module.partition("/")[0]).rglob("*.py"))]


def _list_naming_tables(config: Config) -> dict[str, Any]:
    """List the tables in which a file or code may be named that must not change.

    The ledger's file, its key, and caches are left out, because they change while they are used.
    """
    gates = {name: {key: gate[key] for key in gate if key != "cache"} for name, gate in config.gates.items()}
    redact = {"redact": config.ledger["redact"]} if "redact" in config.ledger else {}
    tables = {"defaults": config.defaults, "judges": config.judges, "rubrics": config.rubrics, "gates": gates}
    # The key of the server may be replaced.
    hook = {name: value for name, value in config.hook.items() if name != "server"}
    return {**tables, "ledger": redact, "approvals": config.approvals, "hook": hook}


def _walk_values(value: Any) -> Iterator[Any]:
    """Yield a value and all values in it, at any depth and in any order; keys are left out."""
    values = [value]
    while values:
        value = values.pop()
        yield value
        if isinstance(value, Mapping):
            values += value.values()
        elif isinstance(value, list | tuple):
            values += value


def _digest_file(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
