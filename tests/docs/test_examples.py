"""The examples run, and the pages say what the code says: tables, help texts, names, links."""

from __future__ import annotations

import asyncio
import importlib.machinery
import importlib.util
import inspect
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, get_args

import pytest

from adjudge import (
    Criterion,
    CriterionResult,
    Judge,
    JudgeChain,
    JudgeChainResult,
    JudgeResult,
    Rubric,
    RuleResult,
    UsageError,
)
from adjudge.errors import Reason
from adjudge.judges import EvaluateArguments
from adjudge.models import Reply
from adjudge.rubric import load_rubric
from adjudge.testing import FAULTS, ScriptedModel
from kit import docs, house, suites
from kit.environment import require
from kit.ledgers import find
from kit.patience import HANG
from kit.registries import serve_reviews
from kit.rubrics import SHIPPED

pytestmark = pytest.mark.timed


REASONS: tuple[str, ...] = get_args(Reason)

EXAMPLES = house.ROOT / "examples"
DOCS = house.ROOT / "docs"


def read_page(name: str) -> str:
    """The text of one page."""
    return (DOCS / name).read_text(encoding="utf-8")


def load_script(name: str) -> Any:
    """A script of the repository as a module, without byte code beside it."""
    loader = importlib.machinery.SourceFileLoader(f"script_{name}", str(house.ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(loader.source_to_code(Path(loader.path).read_bytes(), loader.path), vars(module))
    return module


TABLE = load_script("truth_table")


# ---------------------------------------------------------------- examples


def test_the_answer_gate_sends_one_of_three(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The gate sends the good answer, holds one by a rule and one by the judges."""
    monkeypatch.setattr(sys, "argv", ["answer_gate.py"])
    runpy.run_path(str(EXAMPLES / "answer_gate.py"), run_name="__main__")
    output = capsys.readouterr().out

    assert re.findall(r"^(send|hold)", output, re.MULTILINE) == ["send", "hold", "hold"]
    assert re.findall(r"by (\w+):", output) == ["judge", "rule", "judge"]


def test_thresholds_are_tried_on_one_recording(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A recording answers at every threshold, so a threshold is no part of the question."""
    monkeypatch.setattr(sys, "argv", ["try_thresholds.py"])
    runpy.run_path(str(EXAMPLES / "try_thresholds.py"), run_name="__main__")

    assert re.findall(r": (\d) of 3", capsys.readouterr().out) == ["2", "2", "1"]


def test_what_was_held_back_is_proven_from_an_export(capsys: pytest.CaptureFixture[str]):
    """One answer passes, one is approved, one denied; the export alone tells so, and a forged one shows."""
    runpy.run_path(str(EXAMPLES / "held_back.py"), run_name="__main__")
    output = capsys.readouterr().out
    before, after = output.split("The store is deleted.")

    assert re.findall(r"^  (\w+): (sent|held back|not sent); \w+ by (\w+)", before, re.MULTILINE) == [
        ("label", "sent", "judge"),
        ("refund", "held back", "policy"),
        ("voucher", "held back", "policy"),
        ("refund", "sent", "human"),
        ("voucher", "not sent", "human"),
    ]
    for line in (
        "in order: 13 entries, up to the head we kept",
        "refund approved by ana: the policy changed this morning",
        "voucher denied by bob: nobody agreed to a voucher",
        "refund failed, and was let through by ana",
        "voucher failed, and was stopped by bob",
        "label passed, and was let through by policy-judge",
        "opinion unqualified",
        "minor: it failed, a gate asked people, and a person (ana) approved it",
        "not in order: entry 10 has another payload than was recorded [payload_changed]",
    ):
        assert line in after, line


def test_a_held_request_is_sent_again_until_it_is_approved(capsys: pytest.CaptureFixture[str]):
    """A real server and client: one order passes at once, the other one waits for a person and then passes."""
    for needed in ("starlette", "uvicorn"):
        require(needed, find_spec(needed), "pip install 'adjudge[server]'")
    runpy.run_path(str(EXAMPLES / "held_request.py"), run_name="__main__")
    output = capsys.readouterr().out
    crane = re.findall(r"crane: (\d+)", output)

    assert re.findall(r"hammer: (\d+)", output) == ["201"]
    assert set(crane[:-1]) == {"202"}
    assert crane[-1] == "201"
    assert len(set(re.findall(r'"approval": "([^"]+)"', output))) == output.count("ana approves") == 1
    assert "the last of them by human" in output


FORGED = ["forge", "forge", "promote", "use", "use", "use", "use", "use", "promote", "change", "use", "review", "end"]


def run_agent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What the agent that forges tools says, line by line."""
    monkeypatch.setattr(sys, "argv", ["agent_with_forged_tools.py", *arguments])
    runpy.run_path(str(EXAMPLES / "agent_with_forged_tools.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_the_agent_forges_uses_promotes_and_loses_a_tier(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A wrong tool is rejected by its own test, a right one rises, and a change brings it back to the beginning."""
    lines = run_agent(monkeypatch, capsys, "--ledger", str(tmp_path / "agent.db"))

    assert [line.split()[0] for line in lines] == FORGED
    assert "gave another output than `expected`" in lines[0]
    assert lines[2].startswith("promote  usage:")
    assert lines[8] == "promote  to agent"
    assert lines[9] == "change   it is unreviewed, with the tier session"
    assert "refused" in lines[10]
    assert "approved" in lines[11]
    kinds = [entry.kind.removeprefix("tool.") for entry in find(f"sqlite:///{tmp_path / 'agent.db'}")]
    assert kinds == ["genesis", "reviewed", "reviewed", "promoted", "demoted", "reviewed", "demoted"]


@pytest.mark.parametrize("approves", [True, False])
def test_the_agent_runs_unchanged_with_any_judge(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], approves: bool
):
    """With models behind a server it goes the same way, or ends where they refuse."""
    with serve_reviews(approves=approves) as (spec, asked):
        lines = run_agent(monkeypatch, capsys, "--judge", spec, "--judge", spec)

    assert [line.split()[0] for line in lines] == (FORGED if approves else FORGED[:2])
    assert len(asked) == (4 if approves else 1)  # a creation, two reviewers of the promotion, and what was changed


@pytest.mark.integration
def test_the_example_suite_passes():
    """The suites that show how to test with a judge and an agent are suites that pass."""
    paths = [str(EXAMPLES / name) for name in ("test_with_a_judge.py", "test_an_agent.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites.PLUGIN, *paths]
    done = subprocess.run(command, cwd=house.ROOT, capture_output=True, text=True, check=False, timeout=HANG)

    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- what scripts write


@pytest.mark.integration
@pytest.mark.parametrize("script", ["truth_table", "cli_help"])
def test_written_pages_are_current(script: str, require):
    """What a script writes into a page is what it would write now."""
    if script == "cli_help":
        require("the command line", docs.find_main(), "install adjudge with its command line")
    command = [sys.executable, str(house.ROOT / "scripts" / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)

    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- the truth tables and real chains


class Seat:
    """A judge that answers with one result; ``barrier`` makes several answer at the same moment."""

    def __init__(self, letter: str, barrier: asyncio.Barrier | None = None) -> None:
        self.name = letter
        self.barrier = barrier

    async def ask(self, question: object, /) -> JudgeResult:
        if self.barrier is not None:
            await self.barrier.wait()
        return TABLE.SEATS[self.name]


def ask_chain(letters: str, *, together: bool = False, **options: Any) -> tuple[str, int]:
    """What a real chain of such seats says, as a cell of the table, and how many seats it asked."""

    async def ask(*, fail_open: bool) -> JudgeChainResult:
        barrier = asyncio.Barrier(len(letters)) if together else None
        chain = JudgeChain([Seat(letter, barrier) for letter in letters], fail_open=fail_open, timeout=None, **options)
        return await chain.ask("Is it safe?")

    closed, opened = asyncio.run(ask(fail_open=False)), asyncio.run(ask(fail_open=True))
    assert closed.outcome == opened.outcome or (closed.outcome, opened.outcome) == ("undecided", "passed")
    assert opened.fallback_triggered == (closed.outcome == "undecided")
    return (str(closed.outcome) if closed.outcome == opened.outcome else "undecided, opens"), len(closed.results)


@pytest.mark.parametrize("seats", [2, 3])
def test_counting_chains_say_what_the_table_says(seats: int):
    """Consensus, majority and every quorum, over every set of answers: as in the table."""
    for letters in map("".join, combinations_with_replacement("PFUT", seats)):
        assert ask_chain(letters, strategy="consensus")[0] == TABLE.count_seats(letters, "consensus"), letters
        assert ask_chain(letters, strategy="majority")[0] == TABLE.count_seats(letters, "majority"), letters
        for quorum in range(1, seats + 1):
            expected = TABLE.count_seats(letters, "quorum", quorum)
            assert ask_chain(letters, strategy="quorum", quorum=quorum)[0] == expected, (letters, quorum)


@pytest.mark.parametrize("seats", [2, 3])
def test_fallbacks_say_what_the_table_says(seats: int):
    """A fallback, and a hedged chain whose seats answer in turn, ask the seats in the table and say what it says."""
    for letters in map("".join, product("PFUT", repeat=seats)):
        asked, outcome = TABLE.walk_fallback(letters)
        assert ask_chain(letters, strategy="fallback") == (outcome, len(asked)), letters
        assert ask_chain(letters, strategy="hedged", hedge_after=60.0) == (outcome, len(asked)), letters


@pytest.mark.parametrize("seats", [2, 3])
def test_hedged_chains_say_what_the_table_says(seats: int):
    """A hedged chain whose seats all answer before it looks: as in the table."""
    for letters in map("".join, product("PFUT", repeat=seats)):
        assert ask_chain(letters, together=True, strategy="hedged", hedge_after=1e-9)[0] == TABLE.look_hedged(
            letters
        ), letters


@pytest.mark.parametrize("seats", [2, 3])
@pytest.mark.parametrize("abstain_below", [None, TABLE.ABSTAIN_BELOW])
def test_cascades_say_what_the_table_says(seats: int, abstain_below: float | None):
    """A cascade asks the seats in the table and says what it says, with and without abstaining."""
    options = {"strategy": "cascade", "escalate_below": TABLE.SURE_AT, "abstain_below": abstain_below}
    for letters in map("".join, product("PpFfUT", repeat=seats)):
        asked, outcome = TABLE.walk_cascade(letters, abstain_below)
        assert ask_chain(letters, **options) == (outcome, len(asked)), letters


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("judge.md", Judge),
        ("chain.md", JudgeChain),
        ("rubric.md", Rubric),
        ("rubric.md", Criterion),
        ("result.md", JudgeResult),
        ("result.md", JudgeChainResult),
        ("result.md", CriterionResult),
        ("result.md", RuleResult),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_pages_name_every_field(page: str, kind: type):
    """A page that describes a class has every field it takes, in backticks."""
    named = set(re.findall(r"`(\w+)`", read_page(page)))
    taken = set(inspect.signature(kind).parameters)

    assert taken - named == set()


def test_pages_name_every_argument():
    """judge.md has every keyword of ``evaluate``."""
    assert set(EvaluateArguments.__annotations__) - set(re.findall(r"`(\w+)`", read_page("judge.md"))) == set()


def test_pages_name_every_reason_and_fault():
    """result.md has every reason, gravest first, and testing.md every fault."""
    page = read_page("result.md")
    table = page[page.index("| `undecided_because` | means |") :]

    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))[1:14] == REASONS
    assert [fault for fault in FAULTS if f'"{fault}"' not in read_page("testing.md")] == []


def read_fault_table(path: str) -> dict[str, tuple[str, set[str]]]:
    """From each library of a page's first table with versions to its version and the figures of its row."""
    page = (house.ROOT / path).read_text(encoding="utf-8")
    table = page[page.index("| library | version |") :].partition("\n\n")[0]
    rows = {}
    for line in table.splitlines()[2:]:
        cells = [cell.strip().replace("*", "") for cell in line.strip("|").split("|")]
        names = [name.strip() for name in cells[0].partition("(")[0].split(",") if "`" not in name]
        figures = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", " ".join(cells[2:])))
        rows |= {name: (version, figures) for name, version in zip(names, cells[1].split(", "), strict=True)}
    return rows


def test_the_fault_table_of_the_readme_is_that_of_the_comparison():
    """The same libraries and versions, and no figure that the other does not have; the judge is that of the script."""
    script = (house.ROOT / "research" / "broken_replies.py").read_text(encoding="utf-8")
    found = re.search(r"ROWS, PASSING, FAILING = (\d+), (\d+), (\d+)", script)
    assert found is not None
    rows, passing, failing = map(int, found.groups())
    broken = str(rows - passing - failing)
    short, full = read_fault_table("README.md"), read_fault_table("docs/comparison.md")

    assert len(full) == 8
    assert {name: version for name, (version, _) in short.items()} == {name: row[0] for name, row in full.items()}
    # Every column of the comparison is about those on which the judge breaks, so their number is in its heading.
    assert [name for name, (_, figures) in short.items() if figures - full[name][1] - {broken}] == []
    for page in ("README.md", "docs/comparison.md"):
        text = " ".join((house.ROOT / page).read_text(encoding="utf-8").split())
        assert re.search(rf"passes {passing}\b.*?fails {failing}\b.{{,20}}breaks on {broken}\b", text), page
        assert re.search(rf"{rows} answers", text), page


def test_the_shipped_rubrics_are_as_described():
    """rubric.md's table has every shipped rubric with its threshold, weights and vetoes."""
    page = read_page("rubric.md")
    for name in SHIPPED:
        rubric = load_rubric(name)
        criteria = [
            f"{item.name} ({item.weight:g}" + (f"; {item.threshold}" if item.threshold is not None else "") + ")"
            for item in rubric.criteria
        ]
        assert f"| `{name}` | {rubric.passing_threshold:g} | {', '.join(criteria)} |" in page


SEEDS = (
    "createJudgeChain JudgeChain JudgeChainConfig adapters SemanticProbeAdapter strategy JudgeStrategy timeoutMs "
    "failOpen JudgeChainResult JudgeResult passed results totalDurationMs fallbackTriggered adapterName "
    "rawResponse durationMs safe allowed evaluateRules FirewallVerdict chainResult telemetry EmergentJudge "
    "generateText reviewCreation validateReuse reviewPromotion CreationVerdict ReuseVerdict PromotionVerdict "
    "schemaErrors ToolCandidate SAFETY CORRECTNESS DETERMINISM BOUNDED toolId Rubric RubricCriterion "
    "passingThreshold weight threshold score criteria reasoning suggestions CriterionResult judge throwOnFail "
    "resultFormat CustomResult codeQualityRubric securityRubric testCoverageRubric a11yRubric docsRubric vibeTest "
    "runAgent expect JudgeConfig model metadata ruleResults Rules Audit Approval approvalGate"
)
"""Every name in the seed documents."""


def test_the_seeds_page_maps_every_name():
    """seeds.md has a row for every name in the seed documents."""
    page = read_page("seeds.md")

    assert [name for name in SEEDS.split() if not re.search(rf"\b{name}\b", page)] == []


# ---------------------------------------------------------------- what the threat model says


@pytest.mark.parametrize("name", ["openai:m?key_env=HOME", "http://host/v1?key_env=HOME#m", "python:os:getcwd"])
def test_a_rubric_takes_no_key_and_runs_no_code(name: str):
    """A rubric's model is a name without options, and never a function: nobody is asked."""
    model = ScriptedModel({"criteria": [{"name": "polite", "reasoning": "", "score": 1.0}]})
    rubric = {"name": "R", "model": name, "criteria": [{"name": "polite", "description": "Is polite."}]}

    with pytest.raises(UsageError, match=r"has options after|has the prefix python:"):
        Judge(model).evaluate_sync("Hello.", rubric)
    assert model.requests == []


def test_a_reply_that_was_cut_off_is_not_read():
    """The provider's signal counts, even where the reply holds a complete object."""
    reply = Reply(text='{"safe": true}', finish_reason="length")
    result = asyncio.run(Judge(ScriptedModel(reply)).ask("Is it safe?"))

    assert (result.outcome, result.undecided_because) == ("undecided", "truncated")


# ---------------------------------------------------------------- links


def name_anchor(heading: str) -> str:
    """The anchor of a heading, as Markdown renderers make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def read_prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^ {0,3}```.*?^ {0,3}```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", docs.find_pages(), ids=house.where)
def test_links_lead_somewhere(page: Path):
    """Every relative link of a page names a file that is there, and a heading that it has."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", read_prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        is_page = file.suffix == ".md"  # a picture or a program has no headings
        headings = re.findall(r"^#+ (.+)$", read_prose(file), re.MULTILINE) if is_page and file.is_file() else []
        if not file.is_file() or (anchor and anchor not in map(name_anchor, headings)):
            broken.append(target)

    assert broken == []


def test_the_threat_model_names_tests_that_exist():
    """Every test file the threat model relies on is there."""
    named = set(re.findall(r"`((?:\w+/)*test_\w+\.py)`", read_page("threat-model.md")))

    assert named
    assert [name for name in named if not (house.TESTS / name).is_file()] == []


def find_tests(file: str) -> dict[str, bool]:
    """The tests of a file, each with whether it is an expected failure."""
    text = (house.TESTS / file).read_text("utf-8")
    heads = re.findall(r"((?:^@.*\n|^    .*\n|^\)\n)*)^(?:async )?def (test_\w+)\(", text, re.MULTILINE)
    return {name: "mark.xfail" in marks for marks, name in heads}


def test_the_attacks_of_the_threat_model_are_tests_and_those_that_are_open_are_expected_to_fail():
    """Each of the numbered attacks names its tests; a mark stands behind one exactly if it is an expected failure."""
    rows = [row for row in read_page("threat-model.md").splitlines() if re.match(r"\| \d+ \|", row)]
    for number, row in enumerate(rows, 1):
        assert row.startswith(f"| {number} |")
        tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`( ✗)?", row)
        assert tests, row
        for file, name, mark in tests:
            assert find_tests(file)[name] == bool(mark), name
    assert len(rows) == 18


def test_what_a_hook_cannot_close_is_a_test_each_and_every_expected_failure_is_there():
    """Each row names its tests; a mark stands behind one exactly if it is an expected failure."""
    [table] = re.findall(r"^\| what \| .* \| tests \|\n(.*?)\n\n", read_page("hook.md"), re.MULTILINE | re.DOTALL)
    there = find_tests("harness/test_real_harnesses_internal.py")
    named: dict[str, bool] = {}
    for row in table.splitlines()[1:]:
        tests = re.findall(r"`(test_\w+)`( ✗)?", row)
        assert tests, row
        named |= {name: bool(mark) for name, mark in tests}

    assert named == {name: there.get(name) for name in named}
    assert {name for name, fails in there.items() if fails} <= set(named)
