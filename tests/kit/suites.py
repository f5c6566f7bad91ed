"""Suites that tests of the pytest plugin write and run, and the model that judges in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

import pytest

from kit import house

# pytester drops the modules that a run in this process brought, and some break when they are loaded a second time. Not
# the integrations: with Inspect comes a zipfile that reads zstd, for every other test as well.
for _name in house.modules():
    if not _name.startswith(("adjudge.cli", "adjudge.__main__", "adjudge.integrations.")):
        house.load_module(_name)
for _name in ("re2", "rfc8785", "yaml"):
    import_module(_name)

INSTALLED = any(point.value == "adjudge.testing.plugin" for point in entry_points(group="pytest11"))
"""True if pytest finds the plugin by itself: where the wheel is installed. Elsewhere it is named."""
_WITHOUT = ("-p", "no:schemathesis", "-p", "no:langsmith_plugin")
PLUGIN = _WITHOUT if INSTALLED else (*_WITHOUT, "-p", "adjudge.testing.plugin")
"""The options that each suite is run with; these two plugins take a second to import, in every interpreter."""

MODEL = """
from adjudge.models import Reply
from adjudge import Usage
from adjudge.testing import ScriptedModel

asked = []

def answer(request):
    asked.append(request)
    score = 0.2 if "rude" in request.user else 0.9
    text = '{"criteria": [{"name": "is-polite", "reasoning": "\\\\u001b[31mas it reads", "score": %s}]}' % score
    return Reply(text=text, usage=Usage(input_tokens=100, output_tokens=7))

model = ScriptedModel(answer, name="fake")
twin = ScriptedModel(answer, name="fake")
broken = ScriptedModel(ConnectionError("reset"), name="broken")
"""

OFFLINE = """
def refuse(request):
    raise AssertionError("somebody was asked in a replay")

from adjudge.testing import ScriptedModel
model = twin = ScriptedModel(refuse, name="fake")
"""

INI = "[pytest]\nstrict_markers = true\n"
if find_spec("pytest_asyncio"):
    INI += "asyncio_default_fixture_loop_scope = function\n"

POLITE = "criteria='Is polite.'"


@pytest.fixture(name="suite")
def provide_suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.Pytester]:
    """A directory for a suite, with a model in ``fake.py`` that finds everything polite but what says it is rude."""
    monkeypatch.delenv("ADJUDGE_JUDGE", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.syspathinsert()
    if not INSTALLED:
        monkeypatch.setenv("PYTHONPATH", str(house.PACKAGE.parent))  # for the processes that a test starts
    pytester.makepyfile(fake=MODEL)
    pytester.makeini(INI)
    yield pytester
    sys.modules.pop("fake", None)


def run(suite: pytest.Pytester, *options: str, judge: str | None = "python:fake:model") -> pytest.RunResult:
    """Run the suite in this process."""
    sys.modules.pop("fake", None)
    named = () if judge is None else ("--judge", judge)
    return suite.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist", *named, *options)


def write(suite: pytest.Pytester, *lines: str) -> None:
    """A suite of these lines."""
    suite.makepyfile(test_it="\n".join(["import pytest", "from adjudge.testing import assert_passes", *lines]))


def recordings(suite: pytest.Pytester) -> dict[str, list[dict[str, Any]]]:
    """The rows of every recording, by file."""
    files = sorted((suite.path / "judge-recordings").glob("*"))
    return {file.name: [json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files}


SUITE = (
    f"def test_one(judge): assert judge.evaluate_sync('nice', {POLITE}).passed",
    "@pytest.mark.parametrize('text', ['nice', '../../etc'])",
    f"def test_two(text): assert_passes(text, {POLITE})",
    f"@pytest.mark.judged({POLITE}, repeat=2)",
    "def test_three(): return 'nice'",
)
