"""Modules that a configuration file names come from its folder, or from what is installed, and never from elsewhere.

The working directory may hold a pull request that is judged, with modules of the same names. Whoever wrote it must not
be the one who judges.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from adjudge.config.file import read_config
from adjudge.config.gates import open_gate
from adjudge.config.modules import ImportGuard, admit, importing
from adjudge.config.server import read_server
from adjudge.server.server_judges import open_judges
from kit import cli
from kit.cli import Line
from kit.judges import names
from kit.patience import HANG

pytestmark = pytest.mark.integration


MINE = """
def check(content: str) -> bool:
    return "good" in content


def hide(text: str) -> str:
    return text
"""
"""The trusted module."""

THEIRS = """
from pathlib import Path

Path("stolen").touch()


def check(content: str) -> bool:
    return True


def hide(text: str) -> str:
    return text
"""
"""What the pull request puts in its place: it passes everything, and leaves a trace when it is imported."""

CONFIG = """
[defaults]
judge = "mine"

[judges.mine]
seats = ["python:verdicts:check"]

[rubrics]
good = "good.yaml"

[gates.publish]
rubric = "good"

[gates.rules]
rules = [{python = "verdicts:check"}]
"""

GOOD = "name: Good\ncriteria:\n  - {name: good, description: Is good.}\n"


def write(path: str, text: str) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def provide_importer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports is imported anew by the next."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "meta_path", [item for item in sys.meta_path if not isinstance(item, ImportGuard)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None) or ""
        if (
            name.partition(".")[0] in ("verdicts", "helper", "helpers", "pack", "other", "redaction")
            or "stolen" in path
        ):
            del sys.modules[name]


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The checkout of a pull request with a module of its own, and the trusted branch in ``.trusted``."""
    cli.isolate(monkeypatch, tmp_path)
    write("answer.txt", "bad")
    write("verdicts.py", THEIRS)
    write(".trusted/verdicts.py", MINE)
    write(".trusted/adjudge.toml", CONFIG)
    write(".trusted/good.yaml", GOOD)
    return Line(capsys)


TRUSTED = ("--config", ".trusted/adjudge.toml")

COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "the default judge": (("judge", "answer.txt", "--criteria", "Is good."), 1),
    "a judge by its name": (("judge", "answer.txt", "--criteria", "Is good.", "--judge", "mine"), 1),
    "a gate's judge": (("gate", "check", "publish", "answer.txt"), 1),
    "a gate's rule": (("gate", "check", "rules", "answer.txt"), 1),
    "a run": (("run", "answers.jsonl", "--rubric", "good", "--out", "R", "--fail-under", "0.5"), 1),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_trusted_module_judges(line: Line, command: str):
    """Whatever names it, the module comes from the folder of the file, and the other one is never run."""
    write("answers.jsonl", '{"id": "a", "content": "bad"}\n')
    words, status = COMMANDS[command]
    ran = line(*words, *TRUSTED)

    assert ran.status == status, ran.err
    assert not Path("stolen").exists()
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize("table", ["[defaults]\njudge", '[gates.g]\nrubric = "good.yaml"\njudge'])
def test_a_function_that_is_named_without_a_table_is_the_trusted_one(line: Line, table: str):
    """``[defaults]`` and a gate may name a model themselves."""
    write(".trusted/adjudge.toml", f'{table} = "python:verdicts:check"\n')
    words = ("gate", "check", "g", "answer.txt") if "gates" in table else ("judge", "answer.txt", "--criteria", "c")

    assert line(*words, *TRUSTED).status == 1
    assert line("doctor", "--offline", *TRUSTED).status in (0, 1)
    assert not Path("stolen").exists()


def test_a_ledger_s_redaction_is_the_trusted_one(line: Line):
    """It sees every text before it is hidden."""
    ledger = '[ledger]\nurl = "sqlite:///l.db"\nstore_content = "redacted"\nredact = "python:verdicts:hide"\n'
    write(".trusted/adjudge.toml", CONFIG + ledger)

    assert line("judge", "answer.txt", "--criteria", "Is good.", *TRUSTED).status == 1
    assert not Path("stolen").exists()


def test_a_server_judges_by_the_trusted_module(line: Line):
    """It opens every judge and gate of its file, again after each reload, and from whatever folder it was started."""
    config = read_config(Path(".trusted/adjudge.toml"))
    for _ in range(2):
        judges = open_judges(config, read_server(config))
        assert judges.judges["mine"].evaluate_sync("bad", criteria="Is good.").outcome == "failed"
        assert open_gate("rules", config).check_sync("bad").allowed is False
    assert not Path("stolen").exists()


def test_what_a_trusted_module_imports_is_trusted_too(line: Line):
    """Its helpers, packages and parts lie beside it, also those that are imported when a function is called."""
    write(".trusted/verdicts.py", "from pack.polite import check\n")
    write(".trusted/pack/__init__.py", "")
    write(".trusted/pack/polite.py", "from helper import is_good\nfrom .words import WORDS\n\n\n"
          "def check(content: str) -> bool:\n    import helpers.late\n\n"
          "    return is_good(content) and helpers.late.agrees() and bool(WORDS)\n")  # fmt: skip
    write(".trusted/pack/words.py", "WORDS = ['good']\n")
    write(".trusted/helper.py", "def is_good(content: str) -> bool:\n    return 'good' in content\n")
    write(".trusted/helpers/late.py", "def agrees() -> bool:\n    return True\n")
    for name in ("pack/__init__.py", "helper.py", "helpers/late.py", "pack/words.py"):
        write(name, THEIRS)
    write("good.txt", "good")

    assert line("judge", "answer.txt", "--criteria", "Is good.", *TRUSTED).status == 1
    assert line("judge", "good.txt", "--criteria", "Is good.", *TRUSTED).status == 0
    assert not Path("stolen").exists()


def test_a_file_in_the_working_directory_names_modules_beside_it(line: Line):
    """As ever: a project with its own ``adjudge.toml`` needs no other folder."""
    write("adjudge.toml", CONFIG)
    write("good.yaml", GOOD)
    write("verdicts.py", MINE)

    assert line("judge", "answer.txt", "--criteria", "Is good.").status == 1
    assert line("gate", "check", "rules", "answer.txt").status == 1


def test_what_is_installed_can_be_named(line: Line):
    """It comes first, and a file of its name beside the configuration takes its place nowhere."""
    write(".trusted/adjudge.toml", CONFIG.replace("verdicts:check", "operator:truth"))
    write(".trusted/operator.py", THEIRS)
    write("operator.py", THEIRS)

    assert line("gate", "check", "rules", "answer.txt", *TRUSTED).status == 0
    assert not Path("stolen").exists()


@pytest.mark.parametrize("name", ["json", "msgspec", "aiohttp", "yaml"])
def test_a_module_beside_the_file_takes_no_library_s_place(line: Line, name: str):
    """Neither the trusted folder nor the working directory changes what adjudge itself imports."""
    write(f".trusted/{name}.py", THEIRS)
    write(f"{name}.py", THEIRS)

    assert line("judge", "answer.txt", "--criteria", "Is good.", *TRUSTED).status == 1
    assert not Path("stolen").exists()


def test_a_module_that_only_the_working_directory_has_is_not_found(line: Line):
    """The sentence says where it was looked for."""
    Path(".trusted/verdicts.py").unlink()
    ran = line("judge", "answer.txt", "--criteria", "Is good.", *TRUSTED)

    assert (ran.status, Path("stolen").exists()) == (2, False)
    assert names(ran.sentence, "python:verdicts:check", "beside the configuration file")


def test_the_command_line_names_modules_of_the_working_directory(line: Line):
    """Whoever types it means the folder where they are."""
    write("verdicts.py", MINE)
    write(".trusted/verdicts.py", THEIRS)

    assert line("judge", "answer.txt", "--criteria", "c", "--judge", "python:verdicts:check", *TRUSTED).status == 1
    words = ("--judge", "python:verdicts:check", "--rule", '{python: "verdicts:check"}')
    assert line("judge", "answer.txt", "--criteria", "c", *words, *TRUSTED).status == 1
    assert not Path("stolen").exists()


BOTH: dict[str, tuple[str, ...]] = {
    "a judge of the command line beside one of the file": ("--judge", "python:verdicts:check", "--judge", "mine"),
    "a judge of the file beside one of the command line": ("--judge", "mine", "--judge", "python:verdicts:check"),
    "a rule of the command line": ("--rule", '{python: "verdicts:check"}'),
    "another module of the command line": ("--judge", "python:other:check", "--judge", "mine"),
    "another module after it": ("--judge", "mine", "--judge", "python:other:check"),
}


@pytest.mark.parametrize("words", BOTH)
def test_a_name_that_both_folders_have_is_refused_where_both_are_used(line: Line, words: str):
    """Python keeps one module of a name for the whole process: the wrong one could be handed to either."""
    write("other.py", "from verdicts import check\n" if "after" not in words else MINE)
    if words == "another module after it":
        write("other.py", "from verdicts import check\n")
    ran = line("judge", "answer.txt", "--criteria", "c", *BOTH[words], *TRUSTED)

    assert ran.status == 2
    assert names(ran.sentence, "verdicts", ".trusted")


def test_both_folders_may_be_used_for_different_names(line: Line):
    """Nothing is refused where no name is in both."""
    Path("verdicts.py").unlink()
    write("other.py", MINE)
    ran = line("judge", "answer.txt", "--criteria", "c", "--judge", "python:other:check", "--judge", "mine", *TRUSTED)
    assert ran.status == 1


def test_two_configuration_files_do_not_share_a_module(line: Line):
    """The second would be handed the first one's module, which is loaded already."""
    write("second/adjudge.toml", CONFIG)
    write("second/good.yaml", GOOD)
    write("second/verdicts.py", THEIRS)
    first, second = (read_config(Path(f"{folder}/adjudge.toml")) for folder in (".trusted", "second"))
    open_gate("rules", first)
    with pytest.raises(UsageError) as caught:
        open_gate("rules", second)
    assert names(caught.value, "verdicts", ".trusted", "second")
    assert open_gate("rules", first).check_sync("bad").allowed is False
    assert not Path("stolen").exists()


def test_a_package_without_an_init_file_is_not_put_together_of_two_folders(line: Line):
    """Python would look for its parts in every folder of that name."""
    write(".trusted/adjudge.toml", CONFIG.replace("verdicts:check", "pack.verdict:check"))
    write(".trusted/pack/verdict.py", MINE)
    write("pack/helper.py", THEIRS)
    write("other.py", MINE)
    assert line("gate", "check", "rules", "answer.txt", *TRUSTED).status == 1
    with pytest.raises(UsageError, match="rename one of them"):
        admit(None)
    sys.path.append(str(Path.cwd()))
    with pytest.raises(ImportError, match="rename one of them"):
        __import__("pack.helper")
    assert not Path("stolen").exists()


def test_a_module_that_ends_the_program_is_a_sentence(line: Line):
    """As for every module that somebody names."""
    write(".trusted/verdicts.py", "raise SystemExit('away')\n")
    ran = line("judge", "answer.txt", "--criteria", "c", *TRUSTED)
    assert (ran.status, "cannot be imported: SystemExit: away" in ran.sentence) == (2, True)


def test_a_name_in_an_environment_variable_still_runs_nothing(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``ADJUDGE_JUDGE`` may come from anywhere."""
    write(".trusted/adjudge.toml", "[rubrics]\n")
    monkeypatch.setenv("ADJUDGE_JUDGE", "python:verdicts:check")
    assert line("judge", "answer.txt", "--criteria", "c", *TRUSTED).status == 2
    assert not Path("stolen").exists()


# ---------------------------------------------------------------- in a process of its own


def run_in_process(tmp_path: Path, start: str, **environment: str) -> subprocess.CompletedProcess[str]:
    words, variables = cli.command(tmp_path)
    if start == "python -m":
        words = [sys.executable, "-m", "adjudge"]
    if start == "python -P -m":
        words = [sys.executable, "-P", "-m", "adjudge"]
    if start == "python -c":
        words = [sys.executable, "-c", "from adjudge.cli import main; main()"]
    library = variables["PYTHONPATH"]
    more = {name: value.format(library=library) for name, value in environment.items()}
    arguments = [*words, "judge", "answer.txt", "--criteria", "Is good.", *TRUSTED]
    return subprocess.run(
        arguments, env=variables | more, capture_output=True, text=True, check=False, timeout=HANG, cwd=tmp_path
    )


STARTS: dict[str, tuple[str, dict[str, str], int]] = {
    "the command": ("script", {}, 1),
    "python -m": ("python -m", {}, 1),
    "python -P -m": ("python -P -m", {}, 1),
    "PYTHONSAFEPATH": ("script", {"PYTHONSAFEPATH": "1"}, 1),
    # The working directory is on the path before anybody names a module: of the same name in both, neither is taken.
    "python -c": ("python -c", {}, 2),
    "PYTHONPATH with a dot": ("script", {"PYTHONPATH": "." + os.pathsep + "{library}"}, 2),
    "PYTHONPATH with an empty entry": ("script", {"PYTHONPATH": os.pathsep + "{library}"}, 2),
    "PYTHONPATH that ends with a colon": ("script", {"PYTHONPATH": "{library}" + os.pathsep}, 2),
}


@pytest.mark.parametrize("start", STARTS)
def test_however_it_is_started_the_pull_request_s_module_does_not_judge(line: Line, tmp_path: Path, start: str):
    """The trusted module judges, or the command refuses; the other module never runs."""
    command, environment, status = STARTS[start]
    ran = run_in_process(tmp_path, command, **environment)

    assert (ran.returncode, Path("stolen").exists()) == (status, False), ran.stderr
    if status == 2:
        assert names(ran.stderr, "verdicts", ".trusted", "rename one of them")


@pytest.mark.parametrize("start", ["python -c", "PYTHONPATH with a dot"])
def test_a_module_that_the_environment_finds_in_the_working_directory_is_refused(
    line: Line, tmp_path: Path, start: str
):
    """The file means its own folder, where there is none; Python alone would take the pull request's."""
    Path(".trusted/verdicts.py").unlink()
    command, environment, _ = STARTS[start]
    ran = run_in_process(tmp_path, command, **environment)

    assert (ran.returncode, Path("stolen").exists()) == (2, False), ran.stderr
    assert names(ran.stderr, "verdicts", "would be imported from", ".trusted")


def test_a_sitecustomize_in_the_working_directory_is_not_run(line: Line, tmp_path: Path):
    """Python imports it when it starts, from its path, on which the working directory is not."""
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py"):
        write(name, THEIRS)
    for start in ("script", "python -m"):
        assert run_in_process(tmp_path, start).returncode == 1
    assert not Path("stolen").exists()


# ---------------------------------------------------------------- pytest


SUITE = """
def test_it(judge):
    result = judge.evaluate_sync("bad", criteria="Is good.")
    assert result.outcome == "failed"
"""

NAMED: dict[str, Callable[[Path], Any]] = {
    "adjudge.toml": lambda root: write(str(root / "adjudge.toml"), CONFIG),
    "[defaults]": lambda root: write(str(root / "adjudge.toml"), '[defaults]\njudge = "python:verdicts:check"\n'),
    "pytest.ini": lambda root: write(str(root / "pytest.ini"), "[pytest]\njudge = python:verdicts:check\n"),
}


@pytest.mark.slow_table
@pytest.mark.parametrize("named", NAMED)
def test_a_suite_that_is_run_from_another_folder_finds_its_modules(line: Line, tmp_path: Path, named: str):
    """They lie beside the file that names them, in pytest's root directory, wherever pytest is started."""
    root = tmp_path / "suite"
    write(str(root / "pytest.ini"), "[pytest]\n")
    NAMED[named](root)
    write(str(root / "verdicts.py"), MINE)
    write(str(root / "tests" / "test_it.py"), SUITE)
    words = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(root / "pytest.ini")]
    _, environment = cli.command(tmp_path)
    variables = environment | {"PYTHONWARNINGS": "default"}
    ran = subprocess.run(
        [*words, str(root / "tests")],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
        cwd=tmp_path,
    )
    assert (ran.returncode, Path("stolen").exists()) == (0, False), ran.stdout


# ---------------------------------------------------------------- the parts


def test_a_block_that_imports_admits_no_folder_twice(line: Line):
    """However often judges are opened, the path grows by one folder."""
    before = len(sys.path)
    for _ in range(3):
        with importing("here", "verdicts:check", Path(".trusted")):
            pass
    assert len(sys.path) == before + 1
    assert sum(isinstance(item, ImportGuard) for item in sys.meta_path) == 1


def test_a_link_to_the_trusted_folder_is_that_folder(line: Line):
    """Two names of one folder are no two folders."""
    Path("link").symlink_to(".trusted", target_is_directory=True)
    Path("verdicts.py").unlink()
    for config in (".trusted/adjudge.toml", "link/adjudge.toml"):
        assert line("judge", "answer.txt", "--criteria", "c", "--config", config).status == 1
