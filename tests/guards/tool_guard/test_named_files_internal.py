"""The files that a call names are found in its folder, and for a command elsewhere too."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from adjudge.guards.tool_guard.named_files import MOST_BYTES, MOST_FILES, MOST_WORDS, NamedFiles, read_named_files


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "deploy.py").write_text("deploy")
    (folder / "src" / "a b.py").write_text("spaced")
    (tmp_path / "outside.txt").write_text("outside")
    return folder


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


NAMED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a path": ({"path": "deploy.py"}, {"deploy.py"}),
    "a path with a blank": ({"path": "src/a b.py"}, {"src/a b.py"}),
    "a word of a command": ({"command": "python ./deploy.py --now"}, {"deploy.py"}),
    "quoted": ({"command": "python 'deploy.py'"}, {"deploy.py"}),
    "after an operator": ({"command": "true&&python deploy.py;true"}, {"deploy.py"}),
    "quoted with a blank": ({"command": "cat 'src/a b.py'"}, {"src/a b.py"}),
    "after an at sign": ({"command": "curl -d @deploy.py"}, {"deploy.py"}),
    "the name of a member": ({"files": {"deploy.py": True}}, {"deploy.py"}),
    "an option's value": ({"command": "run --file=deploy.py"}, {"deploy.py"}),
    "redirected": ({"command": "sh<deploy.py"}, {"deploy.py"}),
    "a list of words": ({"argv": ["python", "deploy.py"]}, {"deploy.py"}),
    "below other members": ({"options": [{"input": "deploy.py"}]}, {"deploy.py"}),
    "short without its dots": ({"path": "x/../" * 900 + "deploy.py"}, {"deploy.py"}),
    "with a line that goes with its dots": ({"path": "x\n/../deploy.py"}, {"deploy.py"}),
    "outside": ({"path": "../outside.txt"}, set()),
    "a folder": ({"path": "src"}, set()),
    "no file": ({"path": "nothing.py"}, set()),
    "not a path": ({"text": "x" * 10_000, "number": 5, "flag": True}, set()),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_files_are_found(folder: Path, name: str):
    """As a whole argument, or as a word of a command."""
    arguments, expected = NAMED[name]

    named = read_named_files(arguments, str(folder))

    assert set(named.digests) == expected
    assert named.is_complete


PATCH = "*** Begin Patch\n*** Update File: src/a b.py\n@@\n-spaced\n+see deploy.py * $HOME\n*** End Patch"


def test_the_files_of_a_patch_are_those_of_its_headers(folder: Path):
    """No word of what it adds, and nothing that a shell would read; for the tool alone that applies it."""
    named = read_named_files({"command": PATCH}, str(folder), tool="apply_patch")
    other = read_named_files({"command": PATCH}, str(folder), tool="Bash")

    assert (dict(named.digests), named.is_complete) == ({"src/a b.py": digest("spaced")}, True)
    assert not other.is_complete


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": PATCH, "cwd": "/"},
        {"command": PATCH.replace("*** Update", "*** Rename")},
        {"command": f"{PATCH}; cat *"},
        {"command": [PATCH]},
    ],
    ids=range(4),
)
def test_what_is_no_patch_alone_is_read_as_any_arguments(folder: Path, arguments: dict[str, Any]):
    """Its files may be others than those of its headers."""
    assert not read_named_files(arguments, str(folder), tool="apply_patch").is_complete


def test_an_absolute_path_in_the_folder_is_found(folder: Path):
    """It is named relative to the folder, with the SHA-256 of what it holds."""
    named = read_named_files({"path": str(folder / "deploy.py")}, str(folder))

    assert named == NamedFiles({"deploy.py": digest("deploy")})


def test_what_a_link_leads_to_is_bound_and_read_inside_the_folder_alone(folder: Path):
    """A link can be pointed elsewhere between the yes and the call."""
    outside = folder.parent / "outside.txt"
    (folder / "in").symlink_to(folder / "deploy.py")
    (folder / "out").symlink_to(outside)
    (folder / "up").symlink_to(folder.parent)

    named = read_named_files({"a": "in", "b": "out", "c": "up/outside.txt", "d": "up"}, str(folder))

    assert named.digests == {"in": digest("deploy")}
    assert named.links == {
        "in": str(folder / "deploy.py"),
        "out": str(outside),
        "up/outside.txt": str(outside),
        "up": str(folder.parent),
    }


OUTSIDE = {
    "absolute": "bash {above}/outside.txt",
    "above the folder": "bash ../outside.txt",
    "redirected": "bash<{above}/outside.txt",
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("argument", ["command", "cmd", "script", "input", "commands", "argv", "shell", "bash"])
def test_a_file_outside_that_a_command_names_is_bound(folder: Path, name: str, argument: str):
    """By its full path; else an agent could write it anew between the yes and the call."""
    outside = folder.parent / "outside.txt"
    arguments = {argument: OUTSIDE[name].format(above=folder.parent), "path": str(outside)}

    approved = read_named_files(arguments, str(folder))
    outside.write_text("worse")
    repeated = read_named_files(arguments, str(folder))

    assert approved == NamedFiles({str(outside): digest("outside")})
    assert repeated == NamedFiles({str(outside): digest("worse")})


def test_what_a_link_of_a_command_leads_to_outside_is_bound(folder: Path):
    """In the folder or out of it, and if another argument names the link first."""
    outside, inside, elsewhere = folder.parent / "outside.txt", folder / "in.sh", folder.parent / "link.sh"
    inside.symlink_to(outside)
    elsewhere.symlink_to(outside)

    named = read_named_files({"command": f"bash in.sh; bash {elsewhere}", "path": "in.sh"}, str(folder))

    assert named.links == {"in.sh": str(outside), str(elsewhere): str(outside)}
    assert named.digests == {"in.sh": digest("outside"), str(elsewhere): digest("outside")}


@pytest.mark.parametrize("command", ["bash closed/x.sh", "bash ../closed/x.sh", "bash link.sh"])
def test_a_file_that_this_account_may_not_see_is_said_to_be_left_out(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
):
    """In a folder that is closed to a server's account, say; root sees all, so the system's answer is a double's."""
    (folder / "link.sh").symlink_to(folder.parent / "closed" / "x.sh")
    stat = Path.stat

    def refuse(path: Path, **options: Any) -> os.stat_result:
        if "closed" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)

    assert not read_named_files({"command": command}, str(folder)).is_complete


def test_a_file_outside_that_is_too_large_is_said_to_be_left_out(folder: Path):
    """As one in the folder."""
    with (folder.parent / "large.bin").open("wb") as file:
        file.truncate(MOST_BYTES + 1)

    assert read_named_files({"command": "bash ../large.bin"}, str(folder)) == NamedFiles({}, is_complete=False)


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "ls ..", "npm test", "git status", "python -m pytest", "echo hi > /dev/null", "cat < /dev/stdin"),
        *("/bin/sh -c true", "/usr/bin/env true", "cat /etc/passwd", "find . -exec true {} +"),
        *("docker ps --format '{{.Names}}'", 'curl -d \'{"a": 1, "b": 2}\' shop.example', 'git commit -m "don\'t"'),
        *("grep -C 3 x", "npm run build --color", "env CI=1 npm test"),
    ],
)
def test_a_harmless_command_is_bound_to_nothing_and_said_to_be_complete(folder: Path, command: str):
    """Files of the system, which only root may change, are none that people have to read about with every call."""
    assert read_named_files({"command": command}, str(folder)) == NamedFiles({})


def test_a_command_in_a_list_may_have_an_apostrophe(folder: Path):
    """It is one mark of a text, and no quotation."""
    assert read_named_files({"command": ["git", "commit", "-m", "don't"]}, str(folder)) == NamedFiles({})


def test_a_name_that_climbs_from_a_link_is_not_said_to_be_bound(folder: Path):
    """A shell opens the file beside the link's target, and not the one beside the link."""
    other = folder.parent / "other" / "sub"
    other.mkdir(parents=True)
    (folder / "up").symlink_to(other)

    assert not read_named_files({"command": "python up/../deploy.py"}, str(folder)).is_complete
    assert read_named_files({"command": "python src/../deploy.py"}, str(folder)).is_complete


def test_a_folder_that_is_a_link_is_bound_to_where_it_leads(folder: Path):
    """Else the same call would run elsewhere."""
    link = folder.parent / "link"
    link.symlink_to(folder)

    named = read_named_files({"path": "deploy.py"}, str(link))

    assert (named.digests, named.links["."]) == ({"deploy.py": digest("deploy")}, str(folder))


HIDDEN = [
    "python dep\\loy.py",
    "python dep*.py",
    "python $PWD/deploy.py",
    "python deploy''.py",
    "cd src && python x.py",
    'c"d" src && python x.py',
    "bash dep{loy,}.py",
    "bash {a,deploy}.py",
    "bash deploy{1..3}.py",
    "env -C src python x.py",
    "/usr/bin/env -iC src python x.py",
    "env --chdir=src python x.py",
    "env --ch src python x.py",
    "sudo --chdir=src python x.py",
    "uv run --directory src x.py",
    'python de"plo"y.py # it\'s harmless',
]


@pytest.mark.parametrize("command", HIDDEN)
def test_a_command_that_names_a_file_as_a_shell_reads_it_is_not_said_to_be_bound(folder: Path, command: str):
    """People see that there may be files which the approval is not bound to."""
    assert not read_named_files({"command": command}, str(folder)).is_complete


@pytest.mark.parametrize(
    "command", [True, 5, 0.5, None, {"run": "python deploy.py"}, ["python", 5, "deploy.py"]], ids=str
)
def test_a_command_of_another_type_is_read_as_any_argument(folder: Path, command: Any):
    """A tool of somebody's own may call a number ``command``; the call is checked like any other."""
    assert read_named_files({"command": command}, str(folder)).is_complete


def test_a_command_in_parts_is_read_as_a_shell_would(folder: Path):
    """In whichever part it names a file."""
    assert not read_named_files({"command": {"run": "python dep*.py"}}, str(folder)).is_complete
    assert not read_named_files({"command": ["python", "dep*.py"]}, str(folder)).is_complete


def test_a_folder_that_is_no_absolute_path_binds_nothing():
    """It would be another one in every process."""
    assert read_named_files({"path": "deploy.py"}, "repo") == NamedFiles({}, is_complete=False)


def test_files_of_the_kernel_are_not_read():
    """To read some of them takes for ever."""
    named = read_named_files({"path": "/proc/self/environ", "other": "proc/kmsg"}, "/")

    assert named.digests == {}


def test_what_is_no_file_is_not_read(folder: Path):
    """A pipe would keep the reader for ever."""
    os.mkfifo(folder / "pipe")

    assert read_named_files({"path": "pipe"}, str(folder)) == NamedFiles({})


def test_more_files_than_are_bound_are_said_to_be_left_out(folder: Path):
    """People see that not all files are bound."""
    for number in range(MOST_FILES + 1):
        (folder / f"{number}.txt").write_text("x")
    named = read_named_files({"command": " ".join(f"{n}.txt" for n in range(MOST_FILES + 1))}, str(folder))

    assert len(named.digests) == MOST_FILES
    assert not named.is_complete


def test_a_file_that_is_too_large_is_said_to_be_left_out(folder: Path):
    """The others are bound all the same."""
    with (folder / "large.bin").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    named = read_named_files({"command": "cat large.bin deploy.py"}, str(folder))

    assert set(named.digests) == {"deploy.py"}
    assert not named.is_complete


def test_words_without_end_are_said_to_be_left_out(folder: Path):
    """The work has a limit, whatever the arguments hold."""
    named = read_named_files(
        {"command": " ".join(f"x{number}" for number in range(MOST_WORDS)) + " deploy.py"}, str(folder)
    )

    assert not named.is_complete
