"""The settings files in which coding agents (harnesses) keep their hooks: finding, reading and replacing them.

The hook's entries in the settings are made in ``installing.py`` (``merge_settings``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from adjudge.errors import UsageError
from adjudge.formats.files import MAX_BYTES, open_regular
from adjudge.formats.private_file import write_private
from adjudge.harness.events import Harness

_MANAGED = {
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
    "linux": Path("/etc/claude-code/managed-settings.json"),
}


def find_settings(harness: Harness, *, managed: bool) -> Path:
    """Return the path of a harness's settings: of this user, or the managed settings of this machine.

    Raises ``UsageError`` if the path of managed settings is not known.
    """
    if managed:
        if sys.platform not in _MANAGED:
            raise UsageError(f"where managed settings are on {sys.platform} was not tried; name the file with --file")
        return _MANAGED[sys.platform]
    if harness == "claude":
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "settings.json"
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "hooks.json"


def read_settings(path: Path) -> str | None:
    """Read the settings; ``None`` if there are none.

    Raises ``UsageError`` for a file of another account, and for a link, which may lead to a file that has nothing to do
    with the harness.
    """
    for checked in (path, path.parent):
        if checked.is_symlink():
            raise UsageError(f"{checked} is a link; name the file that it leads to with --file")
        if checked.exists() and hasattr(os, "geteuid") and checked.stat().st_uid != os.geteuid():
            raise UsageError(f"{checked} belongs to another account, which could change it; install as that account")
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
        return raw.decode() if len(raw) <= MAX_BYTES else _refuse_size(path)
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; mend it first") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; name another with --file") from None


def _refuse_size(path: Path) -> str:
    """Raise ``UsageError`` for settings that are too large."""
    raise UsageError(f"{path} has more than {MAX_BYTES:,} bytes; name another with --file")


def write_settings(path: Path, text: str, *, managed: bool) -> None:
    """Replace the settings in one step; managed settings can be read by everybody, since every harness needs them.

    Raises ``UsageError`` if they cannot be written.
    """

    def put(new_file: Path, target: Path) -> None:
        user_mode = target.stat().st_mode & 0o777 if not managed and target.exists() else 0o600
        mode = 0o644 if managed else user_mode
        new_file.chmod(mode)
        new_file.replace(target)

    try:
        path.parent.mkdir(mode=0o755 if managed else 0o700, parents=True, exist_ok=True)
        write_private(path, text.encode(), put=put)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; name another with --file") from None
