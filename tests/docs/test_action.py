"""The GitHub Action: its steps are run here by bash, with a stand-in for ``gh``, against a small data set and rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import house

pytestmark = pytest.mark.integration


ACTION = yaml.safe_load((house.ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]

BEFORE = ("Make room for what is trusted", "Install adjudge")
"""The steps around the checkout of the base branch, whose work is done here by the tests."""

RUBRIC = "name: Polite\ncriteria:\n  - {name: greets, description: Greets., rule: {regex: '^Dear'}}\n"
GOOD = {"id": "good", "content": "Dear Ann, it left on Monday."}
BAD = {"id": "bad", "content": "No."}
SECRET = "sk-not-a-real-key"

GH = '''#!{python}
"""Comments of a pull request, as GitHub's API answers for them; each call is written down."""
import json, os, sys
from pathlib import Path

store = Path(os.environ["FAKE_GITHUB"])
state = json.loads(store.read_text("utf-8"))
path, method = sys.argv[2], "GET"
if "--method" in sys.argv:
    method = sys.argv[sys.argv.index("--method") + 1]
if state["refuses"]:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
assert sys.argv[1] == "api" and os.environ["GH_TOKEN"] == "the-token"
if method == "GET":
    assert path == "repos/someone/thing/issues/7/comments?per_page=100" and "--paginate" in sys.argv
    for item in state["comments"]:  # a page for each
        print(json.dumps([item]))
else:
    body = json.load(sys.stdin)["body"]
    if method == "POST":
        assert path == "repos/someone/thing/issues/7/comments"
        state["comments"].append({{"id": 100 + len(state["comments"]), "user": {{"login": state["me"]}}, "body": body}})
    else:
        [item] = [item for item in state["comments"] if path == f"repos/someone/thing/issues/comments/{{item['id']}}"]
        item["body"] = body
    state["calls"].append(method)
    store.write_text(json.dumps(state), encoding="utf-8")
'''


@dataclass
class Job:
    """A job that uses the action on a pull request: folders, inputs, and a GitHub that keeps its comments."""

    root: Path
    inputs: dict[str, str] = field(default_factory=dict)
    event: dict[str, str] = field(default_factory=lambda: {"github.event.pull_request.number": "7"})
    environment: dict[str, str] = field(default_factory=dict)
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("workspace", "workspace/.adjudge-trusted", "temp/adjudge-python/bin", "tools"):
            (self.root / name).mkdir(parents=True)
        for place, module in (
            ("temp/adjudge-python/bin/adjudge", "-m adjudge"),
            ("temp/adjudge-python/bin/python", ""),
        ):
            self.write(place, f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', mode=0o755)
        self.write("tools/gh", GH.format(python=sys.executable), mode=0o755)
        self.write("workspace/.adjudge-trusted/polite.yaml", RUBRIC)
        self.write_data(GOOD, BAD)
        self.write_github()

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def write_data(self, *rows: Mapping[str, Any]) -> None:
        self.write("workspace/answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))

    def write_github(self, *comments: Mapping[str, Any], refuses: bool = False) -> None:
        state = {"comments": comments, "calls": [], "me": "github-actions[bot]", "refuses": refuses}
        self.write("github.json", json.dumps(state))

    @property
    def github(self) -> dict[str, Any]:
        return json.loads((self.root / "github.json").read_text("utf-8"))

    @property
    def comments(self) -> list[str]:
        return [item["body"] for item in self.github["comments"]]

    @property
    def summary(self) -> str:
        return (self.root / "summary").read_text("utf-8")

    def run(self, **inputs: str) -> int:
        """Run the steps of the action that are scripts, and return the status of the last one."""
        options = {"data": "answers.jsonl", "rubric": "polite.yaml", "judge": "rules", "token": "the-token"}
        defaults = {name: item.get("default", "") for name, item in ACTION["inputs"].items()}
        self.inputs = {**defaults, **options, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        self.log, self.outputs = "", {}
        (self.root / "summary").unlink(missing_ok=True)
        for step in STEPS:
            if "run" in step and step["name"] not in BEFORE and self.wants(step):
                status = self.run_step(step)
                if status:
                    return status
        return 0

    def comment(self, name: str = "adjudge") -> int:
        """Run the step that comments alone, with a short report."""
        [step] = [step for step in STEPS if step["name"] == "Comment"]
        self.inputs = {"name": name, "token": "the-token", "comment-author": "github-actions[bot]"}
        self.outputs = {"steps.judge.outputs.markdown": str(self.write("comment.md", "### Report\n"))}
        return self.run_step(step)

    def wants(self, step: Mapping[str, Any]) -> bool:
        return step["name"] != "Comment" or (self.inputs["comment"] == "true" and bool(self.event))

    def run_step(self, step: Mapping[str, Any]) -> int:
        output = self.root / "output"
        output.write_text("", encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ADJUDGE", "GITHUB"))}
        environment = {
            **kept,
            **self.environment,
            "PATH": f"{self.root / 'tools'}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.root / "summary"),
            "GITHUB_REPOSITORY": "someone/thing",
            "FAKE_GITHUB": str(self.root / "github.json"),
            **{name: self.fill(value) for name, value in step.get("env", {}).items()},
        }
        folder = self.root / "workspace" / self.fill(step.get("working-directory", "."))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.log += done.stdout + done.stderr
        if "id" in step:
            for line in output.read_text("utf-8").splitlines():
                name, _, value = line.partition("=")
                self.outputs[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def fill(self, text: str) -> str:
        """The text with the value of each expression, as the runner would put it there."""
        known = {
            "runner.temp": str(self.root / "temp"),
            "github.workspace": str(self.root / "workspace"),
            "github.action_path": str(house.ROOT),
            **{f"inputs.{name}": value for name, value in self.inputs.items()},
            **self.event,
            **self.outputs,
        }
        return re.sub(r"\$\{\{\s*(.+?)\s*\}\}", lambda match: known[match[1]], text)


@pytest.fixture
def job(tmp_path: Path, require) -> Job:
    require("bash", shutil.which("bash"), "install bash")
    return Job(root=tmp_path)


def test_no_input_is_text_of_a_script():
    """An expression in a script would be a way to write commands into it; inputs come as environment variables."""
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []


def test_other_actions_are_githubs_own_and_pinned():
    """By the digest of a commit, which nobody can move as a tag is moved."""
    used = [step["uses"] for step in STEPS if "uses" in step]

    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", item) for item in used)


def test_every_step_and_input_is_complete():
    """Each step has a name, each script its shell, each input a description, and each value a source."""
    inputs = {f"inputs.{name}" for name in ACTION["inputs"]}
    text = (house.ROOT / "action.yml").read_text("utf-8")

    assert all("name" in step and ("uses" in step or step["shell"] == "bash") for step in STEPS)
    assert all(item["description"] for item in ACTION["inputs"].values())
    assert set(re.findall(r"inputs\.[a-z-]+", text)) == inputs


def test_the_page_shows_a_workflow_for_this_action():
    """Its inputs are those of the action, it grants no more than is needed, and the page lists every input."""
    page = (house.ROOT / "docs" / "ci.md").read_text("utf-8")
    workflow = yaml.safe_load(re.search(r"```yaml title=.*?\n(.*?)```", page, re.DOTALL)[1])
    [*_, used] = workflow["jobs"]["judge"]["steps"]

    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == {"pull_request", "push"}
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert [name for name in ACTION["inputs"] if f"`{name}`" not in page] == []


def test_who_judges_and_what_is_good_comes_from_the_base_branch():
    """The base of the pull request is checked out without credentials, and the judge runs in that folder."""
    [checkout] = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout")]
    [judge] = [step for step in STEPS if step.get("id") == "judge"]

    assert "github.event.pull_request.base.sha" in checkout["with"]["ref"]
    assert checkout["with"]["persist-credentials"] is False
    assert judge["working-directory"] == checkout["with"]["path"]


def test_the_first_run_comments_and_the_next_updates(job: Job):
    """One comment, whose text is that of the last run."""
    assert job.run() == 0
    assert job.github["calls"] == ["POST"]
    assert "50 % of 2 cases passed" in job.comments[0]

    job.write_data(GOOD)
    assert job.run() == 0
    assert job.github["calls"] == ["POST", "PATCH"]
    assert len(job.comments) == 1
    assert "100 % of 1 case passed" in job.comments[0]


def test_a_run_that_misses_its_share_comments_and_fails(job: Job):
    """The comment is there when the job fails, and the status is that of the run."""
    assert job.run(fail_under="0.9") == 1
    assert "90 % needed" in job.comments[0]
    assert job.outputs["steps.judge.outputs.status"] == "1"


@pytest.mark.parametrize(
    ("inputs", "status"),
    [({"rubric": "nowhere.yaml"}, 2), ({"judge": "nobody:knows"}, 2), ({"data": "missing.jsonl"}, 2)],
    ids=["rubric", "judge", "data"],
)
@pytest.mark.slow_table
def test_what_cannot_be_judged_fails_and_says_so(job: Job, inputs: dict[str, str], status: int):
    """An earlier comment does not stay as if it were of this commit."""
    assert job.run() == 0
    assert job.run(**inputs) == status
    assert len(job.comments) == 1
    assert "Nothing was judged" in job.comments[0]
    assert f"status {status}" in job.comments[0]


def test_undecided_is_not_passed(job: Job):
    """A judge that cannot be asked is a failure of the job: nothing was decided."""
    assert (
        job.run(rubric="", criteria="Is polite.", judge="http://127.0.0.1:9/v1#nobody", arguments="--timeout\n1") == 3
    )
    assert "2 undecided" in job.comments[0]


@pytest.mark.full
def test_the_summary_of_the_job_has_the_report(job: Job):
    """For those who cannot see the comment."""
    job.run()

    assert "50 % of 2 cases passed" in job.summary


@pytest.mark.full
def test_a_token_that_may_not_comment_fails_nothing(job: Job):
    """That of a fork: the job says so, and ends as the run did."""
    job.write_github(refuses=True)

    assert job.run() == 0
    assert "::warning::" in job.log
    assert job.comments == []
    assert "50 % of 2 cases passed" in job.summary


@pytest.mark.full
def test_without_a_pull_request_nobody_is_written_to(job: Job):
    """On a push there is nothing to comment on."""
    job.event = {}

    assert job.run() == 0
    assert job.github["calls"] == []


@pytest.mark.full
def test_comments_can_be_switched_off(job: Job):
    """For a workflow that reports in its own way."""
    assert job.run(comment="false") == 0
    assert job.github["calls"] == []


def test_two_names_are_two_comments(job: Job):
    """A workflow that judges two data sets keeps a comment for each."""
    for name in ("answers", "summaries", "answers"):
        job.comment(name)

    assert job.github["calls"] == ["POST", "POST", "PATCH"]
    assert [body.splitlines()[0] for body in job.comments] == [
        "<!-- adjudge/comment/1 answers -->",
        "<!-- adjudge/comment/1 summaries -->",
    ]


def test_a_comment_of_somebody_else_is_left_alone(job: Job):
    """Whoever writes our mark into a comment does not choose which comment is overwritten."""
    theirs = {"id": 1, "user": {"login": "mallory"}, "body": "<!-- adjudge/comment/1 adjudge -->\n### All passed"}
    job.write_github(theirs)
    job.comment()

    assert job.github["calls"] == ["POST"]
    assert job.comments[0] == theirs["body"]


def test_only_a_comment_that_begins_with_the_mark_is_ours(job: Job):
    """A report that quotes the mark of another is no comment of that name."""
    mine = {"id": 1, "user": {"login": "github-actions[bot]"}, "body": "quoted: <!-- adjudge/comment/1 adjudge -->\n"}
    job.write_github(mine)
    job.comment()

    assert job.github["calls"] == ["POST"]


HOSTILE = [
    "Dear $(touch PWNED) `touch PWNED` ${IFS}",
    "Dear '; touch PWNED #",
    'Dear "; touch PWNED #',
    "Dear ${{ secrets.KEY }}",
    "Dear ::stop-commands::x\n::add-mask::passed\n::set-output name=status::0\n::error::gone",
    "Dear @everyone <img src=x onerror=alert(1)> [link](http://evil.example) closes #12",
    "--fail-open",
]


def test_data_stays_data(job: Job):
    """What is judged is run by no shell, is no command for the runner, and stands in the comment as text."""
    job.write_data(BAD, *[{"id": text, "content": text.removeprefix("Dear ")} for text in HOSTILE])

    assert job.run(fail_under="0.5") == 1
    assert list(job.root.rglob("PWNED")) == []
    assert f"0 % of {len(HOSTILE) + 1} cases passed" in job.comments[0]
    plain = re.sub(r"(`+) ?.*? ?\1(?!`)", "", job.comments[0])
    assert [piece for piece in ("<img", "@everyone", "[link]", "#12", "::error", "touch") if piece in plain] == []
    assert "@everyone" in job.comments[0]


@pytest.mark.parametrize("name", ["rubric", "judge", "fail_under", "arguments", "data", "criteria", "config"])
@pytest.mark.slow_table
def test_inputs_stay_inputs(job: Job, name: str):
    """An input that a workflow took from the event is one argument, whatever it holds."""
    job.run(**{name: " ".join(HOSTILE[:3])})

    assert list(job.root.rglob("PWNED")) == []
    assert job.outputs["steps.judge.outputs.status"] == "2"


def test_the_runner_does_not_listen_while_it_is_judged(job: Job):
    """Between two lines with a token that nobody can know, lines that look like commands are text."""
    job.write_data({"id": "::add-mask::passed", "content": "No."})
    job.run()
    first, *_, last = [line for line in job.log.splitlines() if re.fullmatch(r"::.*", line)]
    token = first.removeprefix("::stop-commands::")

    assert re.fullmatch("[0-9a-f]{32}", token)
    assert last == f"::{token}::"


@pytest.mark.slow_table
@pytest.mark.parametrize("target", ["../secrets.jsonl", ".git/config", "other.jsonl"])
def test_data_is_no_link(job: Job, target: str):
    """A link could lead to credentials, which the report would show."""
    (job.root / "workspace" / ".git").mkdir()
    for place in ("secrets.jsonl", "workspace/.git/config", "workspace/other.jsonl"):
        job.write(place, json.dumps({"id": "1", "content": SECRET}))
    (job.root / "workspace" / "answers.jsonl").unlink()
    (job.root / "workspace" / "answers.jsonl").symlink_to(target)

    assert job.run() == 2
    assert SECRET not in job.comments[0] + job.log


@pytest.mark.slow_table
@pytest.mark.parametrize("data", ["../secrets.jsonl", "./answers.jsonl", "linked/secrets.jsonl", "", "."])
def test_data_is_a_file_of_the_workspace(job: Job, data: str):
    """Named plainly: neither beside it, nor through a folder that is a link."""
    job.write("secrets.jsonl", json.dumps({"id": "1", "content": SECRET}))
    (job.root / "workspace" / "linked").symlink_to(job.root)

    assert job.run(data=data) == 2
    assert SECRET not in job.comments[0] + job.log


def test_a_pull_request_changes_neither_rubric_nor_configuration(job: Job):
    """Files of these names in the workspace are not read."""
    job.write("workspace/polite.yaml", RUBRIC.replace("^Dear", ".*"))
    job.write("workspace/adjudge.toml", '[defaults]\njudge = "python:evil:judge"\n')
    job.write("workspace/evil.py", "open('PWNED', 'w')\n")
    job.write("workspace/json.py", "open('PWNED', 'w')\n")

    assert job.run(fail_under="0.9", judge="") in {1, 2}
    assert list(job.root.rglob("PWNED")) == []


@pytest.mark.parametrize("target", [".", "elsewhere"])
def test_a_pull_request_puts_no_link_where_the_base_is_checked_out(job: Job, target: str):
    """It is removed first, and what it leads to is not: else the base's data could be judged in place of its own."""
    [place] = [number for number, step in enumerate(STEPS) if step["name"] == BEFORE[0]]
    trusted, elsewhere = job.root / "workspace" / ".adjudge-trusted", job.root / "workspace" / "elsewhere"
    shutil.rmtree(trusted)
    elsewhere.mkdir()
    job.write("workspace/elsewhere/kept", "kept")
    trusted.symlink_to(target)

    assert job.run_step(STEPS[place]) == 0
    assert "actions/checkout" in STEPS[place + 1]["uses"]
    assert not trusted.is_symlink()
    assert (elsewhere / "kept").is_file()
    assert (job.root / "workspace" / "answers.jsonl").is_file()


def test_the_configuration_of_the_base_branch_is_read(job: Job):
    """Without inputs, it says who judges and by which rubric."""
    folder = "workspace/.adjudge-trusted"
    job.write(f"{folder}/adjudge.toml", '[defaults]\njudge = "rules"\nrubric = "p"\n[rubrics]\np = "polite.yaml"\n')

    assert job.run(rubric="", judge="") == 0
    assert "50 % of 2 cases passed" in job.comments[0]


def test_the_environment_has_the_keys_and_the_report_has_not(job: Job):
    """A key that the workflow gives to the step is nowhere in what is published."""
    job.environment = {"OPENAI_API_KEY": SECRET}
    job.run()
    report = Path(job.outputs["steps.judge.outputs.html"]).read_text("utf-8")

    assert "Dear Ann" in report
    assert SECRET not in report + job.comments[0] + job.log + job.summary


@pytest.mark.full
def test_several_judges_and_arguments_are_lines(job: Job):
    """One judge of a chain on each line, and one argument, with blanks in it."""
    assert job.run(judge="rules", arguments="--on-bad-row\nskip\n\n--repeat\n2\n") == 0
    assert "2 cases passed" in job.comments[0]


@pytest.mark.slow_table
@pytest.mark.parametrize("name", ["", "a b", "x -->", "../x", "x" * 61])
def test_a_name_is_checked_before_anything_is_written(job: Job, name: str):
    """It stands in a comment, so it must not be able to end it."""
    assert job.comment(name) == 0
    assert job.github["calls"] == []
    assert "::warning::" in job.log


def test_adjudge_is_installed_from_the_action_itself(job: Job):
    """At the commit that the workflow pinned, by a Python that imports nothing from the workspace."""
    [step] = [step for step in STEPS if step["name"] == "Install adjudge"]
    job.write("tools/python3", '#!/bin/sh\necho "python3 $*"\nmkdir -p adjudge-python/bin\n', mode=0o755)
    job.write("temp/adjudge-python/bin/python", '#!/bin/sh\necho "python $*"\n', mode=0o755)
    status = job.run_step(step)

    assert status == 0
    assert "python3 -I -m venv" in job.log
    assert job.log.rstrip().endswith(str(house.ROOT))
    assert " -I -m pip install" in job.log


@pytest.mark.full
def test_a_comment_is_never_too_long(job: Job):
    """GitHub refuses what is longer than 65,536 characters."""
    job.write_data(*[{"id": f"{number} {'é' * 300}", "content": "No. " * 100} for number in range(500)])
    job.run()

    assert len(job.comments[0]) <= 65_536
