"""Patches in shell commands, by the files that they touch."""

from __future__ import annotations

import pytest

from adjudge.errors import UsageError
from adjudge.formats.patch import list_patched_files
from adjudge.harness.patch import find_patch

PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+*** y\n*** Add File: c d.py\n+1\n*** End Patch"
)


def test_every_file_of_a_patch_is_listed():
    """Also the one that another is moved to; a line of a file that looks like a header is none."""
    assert list_patched_files(PATCH) == ("a.py", "b.py", "c d.py")


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Rename File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n+x",
        "x\n*** Begin Patch\n*** Add File: a\n*** End Patch",
        "*** Begin Patch\n  *** Copy File: a\n*** Add File: b\n*** End Patch",
        "*** Begin Patch\n*** Add File:  a\n+x\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** Move to: \tb\n@@\n+x\n*** End Patch",
    ],
)
def test_a_patch_that_cannot_be_read_is_an_error(patch: str):
    """Its files are unknown, so nobody can say whether it may write them."""
    with pytest.raises(UsageError):
        list_patched_files(patch)


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_file_whose_name_some_take_for_two_lines_is_an_error(end: str):
    """Codex ends a line at a newline alone, so for it the name goes on."""
    with pytest.raises(UsageError, match="names the file"):
        list_patched_files(f"*** Begin Patch\n*** Add File: x{end}/../../guard/adjudge.toml\n+x\n*** End Patch")


def test_lines_of_windows_and_names_in_any_language_are_read():
    """What ends a line there is no part of a name."""
    patch = "*** Begin Patch\n*** Add File: \u65e5\u672c a.py\n+x\u2028y\n*** End Patch"

    assert list_patched_files(patch.replace("\n", "\r\n")) == list_patched_files(patch) == ("\u65e5\u672c a.py",)


@pytest.mark.parametrize("command", ["ls", "git apply --check fix.patch", "echo 'a patch' > notes", "cat patch.md"])
def test_other_commands_are_none(command: str):
    """A word that only resembles one is left alone."""
    assert find_patch(command) is None


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<'E'\n{PATCH}\nE",
        f'  applypatch <<"E"\n{PATCH}\nE\n',
        f"cd src && apply_patch <<'E'\n{PATCH}\nE",
        f"cd 'a b' && apply_patch <<'E'\n{PATCH}\nE",
    ],
)
def test_a_patch_alone_is_found(command: str):
    """In the forms that Codex carries out itself, with an end that is quoted, so that the shell changes nothing."""
    found_patch = find_patch(command)

    assert found_patch is not None
    assert found_patch.patch == PATCH


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<E\n{PATCH}\nE",  # the shell would put values of variables into it
        f"apply_patch <<'E'\n{PATCH}\nE\nrm -rf x",
        f"true; apply_patch <<'E'\n{PATCH}\nE",
        f"cd $HOME && apply_patch <<'E'\n{PATCH}\nE",
        f"cd ~/x && apply_patch <<'E'\n{PATCH}\nE",
        f"apply_patch '{PATCH}'",
        "apply_patch < some.patch",
        "cat x | apply_patch",
        "apply''_patch < x",
        "appl\\y_patch < x",
        "printf '*** Begin Patch' | sh",
        "bash -c 'apply_patch < x'",
    ],
)
def test_a_command_with_a_patch_in_it_is_an_error(command: str):
    """What Codex would make of it is a guess, and which files it writes too."""
    with pytest.raises(UsageError):
        find_patch(command)
