"""What a notebook shows of runs, reports, measurements, decisions and verdicts: ours alone, and bounded."""

from __future__ import annotations

import html.parser
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, InputFirewall, Judge, JudgeResult, UsageError, open_dataset, open_run, run
from adjudge.guards import Decision, FirewallVerdict, InputVerdict, RejectedRule, Threat
from adjudge.measurement import make_measurement
from adjudge.report import make_report
from adjudge.runs import Progress
from kit.environment import require

HOSTILE = "</td><script>alert(1)</script>\u202ereversed\x1b[31m"
LONG = HOSTILE + "x" * 100_000
MOST_ROWS = 20
TAGS = {"div", "p", "b", "table", "tr", "th", "td", "ul", "ol", "li"}


class Tags(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def polite(content: str):
    return "thank" in content.lower(), HOSTILE


def make_run(folder: Path) -> Any:
    cases = [Case(id=f"{number} {HOSTILE}", content=f"{HOSTILE} {number}", label=True) for number in range(60)]
    return run([*cases, Case(id="good", content="Thank you.")], polite, criteria="Is polite.", out=folder).finish_sync()


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Everything that a notebook shows, of hostile texts."""
    done = make_run(tmp_path_factory.mktemp("runs") / "hostile")
    result = JudgeResult(outcome="failed", judge=HOSTILE, score=0.1, reasoning=LONG, suggestions=(LONG,) * 500)
    rejected = tuple(RejectedRule(index=place, rule=LONG, reason=LONG) for place in range(1, 500))
    threats = tuple(Threat(field=HOSTILE, type=LONG, reason=LONG) for _ in range(500))
    values: dict[str, Any] = {
        "result": result,
        "run": done,
        "report": make_report(done),
        "measurement": make_measurement(done),
        "decision": Decision(gate=HOSTILE, allowed=False, decided_by="policy", detail=LONG, result=result),
        "rules": FirewallVerdict(allowed=(), rejected=rejected),
        "arguments": InputVerdict(passed=False, threats=threats, detail=LONG),
        "progress": Progress(done=3, fresh=3, total=60, seconds=1.0, outcomes={"passed": 3}, cost_usd=0.5),
    }
    return {name: value._repr_html_() for name, value in values.items()}


NAMES = ("result", "run", "report", "measurement", "decision", "rules", "arguments", "progress")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gets_no_markup_but_ours(shown: dict[str, str], name: str):
    """No script, no attribute, no direction mark and no escape sequence, whatever the texts are."""
    tags = Tags(shown[name])

    assert tags.tags <= TAGS
    assert tags.attributes == []
    assert not {"\u202e", "\x1b"} & set(shown[name])


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_gets_is_bounded(shown: dict[str, str], name: str):
    """A long text is cut, and so is a long table."""
    assert len(shown[name]) < 700_000 if name == "result" else len(shown[name]) < 50_000


def test_a_run_shows_its_counts_and_what_failed(shown: dict[str, str]):
    """And says that there are more."""
    assert "1 passed, 60 failed" in shown["run"]
    assert shown["run"].count("<td>failed<td>") == MOST_ROWS
    assert f"The first {MOST_ROWS} are shown." in shown["run"]
    assert "1 passed, 60 failed" in shown["report"]
    assert "3 of 60 judged: 3 passed, $0.5000" in shown["progress"]


def test_a_firewall_s_verdict_in_a_notebook():
    """Of a firewall that was asked."""
    verdict = InputFirewall(lambda content: False).check_sync({"q": "<b>"})
    assert "must not reach the function" in verdict._repr_html_()


FRAME = {"answer": ["Thank you.", "No."], "question": ["Where?", "May I?"], "label": [True, False]}


def test_a_frame_is_judged_and_a_run_becomes_one(tmp_path: Path):
    """``fields`` says which column is the content; criteria are columns of the other frame."""
    require("pandas", find_spec("pandas"), "pip install pandas")
    import pandas as pd

    fields = {"content": "answer", "task": "question"}
    tone = {"tone": "Is polite."}
    done = run(pd.DataFrame(FRAME), polite, criteria=tone, fields=fields, out=tmp_path / "run").finish_sync()
    frame = done.to_pandas()

    assert list(frame["outcome"]) == ["passed", "failed"]
    assert list(frame["criteria.tone"]) == [1.0, 0.0]
    assert list(frame["content"]) == FRAME["answer"]
    assert list(frame["label"]) == [True, False]
    assert list(frame["task"]) == FRAME["question"]
    assert open_run(tmp_path / "run").list_rows()[1]["why"].startswith("failed")


def test_the_content_s_column_is_found_as_in_a_file(tmp_path: Path):
    """The column ``content``, one with a name for it, or the one that ``fields`` names, in a frame as at a path."""
    require("pandas", find_spec("pandas"), "pip install pandas")
    import pandas as pd

    frame, path = pd.DataFrame(FRAME), tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    for source in (frame, str(path)):
        for fields in (None, {"content": "answer"}):
            done = run(source, polite, criteria="Is polite.", fields=fields).finish_sync()
            assert [item.case.content for item in done.items()] == FRAME["answer"]
    with pytest.raises(UsageError, match=r"no column is the content.*fields\['content'\]"):
        run(frame.rename(columns={"answer": "text"}), polite, criteria="Is polite.").finish_sync()
    plain = pd.DataFrame(FRAME | {"content": ["Thank you.", "Thanks."]})
    assert run(plain, polite, criteria="Is polite.").finish_sync().counts["passed"] == 2
    with pytest.raises(UsageError, match="fields are for a path or a frame"):
        run(open_dataset(path, fields={"content": "answer"}), polite, criteria="Is polite.", fields={})


def test_to_pandas_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And that there is another way."""
    done = run(["Thank you."], polite, criteria="Is polite.", out=tmp_path / "run").finish_sync()
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(UsageError, match="pip install pandas, or use list_rows"):
        done.to_pandas()


class Notebook:
    """IPython, as a notebook has it."""

    def __init__(self, *, kernel: bool) -> None:
        self.shown: list[str] = []
        shell = types.SimpleNamespace(**({"kernel": object()} if kernel else {}))
        self.module = types.SimpleNamespace(
            get_ipython=lambda: shell, display=types.SimpleNamespace(display=self.display)
        )

    def display(self, value: Any, *, display_id: bool) -> Notebook:
        assert display_id
        self.update(value)
        return self

    def update(self, value: Any) -> None:
        self.shown.append(value._repr_html_())


@pytest.mark.parametrize("kernel", [True, False])
def test_a_notebook_shows_the_progress(monkeypatch: pytest.MonkeyPatch, kernel: bool):
    """One line, drawn anew up to the end; in a terminal's IPython none, and none beside a function of one's own."""
    notebook = Notebook(kernel=kernel)
    monkeypatch.setitem(sys.modules, "IPython", notebook.module)  # type: ignore[arg-type]
    run(["Thank you.", "No."], Judge(polite), criteria="Is polite.").finish_sync()
    seen = len(notebook.shown)
    run(["Thank you."], polite, criteria="Is polite.", on_progress=lambda progress: None).finish_sync()

    assert len(notebook.shown) == seen
    assert bool(seen) is kernel
    assert not kernel or "2 of 2 judged: 1 passed, 1 failed" in notebook.shown[-1]
