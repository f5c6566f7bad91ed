"""``[hook]`` of ``adjudge.toml``, and where it may come from."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adjudge import Approvals, Ledger
from adjudge.config.hook import OpenedHook, read_hook_settings
from adjudge.config.hook_binding import check_outside, digest_config, read_bound_config
from adjudge.errors import UsageError
from adjudge.harness.events import Harness, read_event
from kit import house

GATES = """
[gates.shell]
rules = [{not_contains = "curl"}]
"""

TODAY = datetime.now(UTC).date()


def configure(tmp_path: Path, hook: str, *, more: str = GATES, ledger: str | None = None) -> Path:
    folder = tmp_path / "guard"
    folder.mkdir(exist_ok=True)
    file = folder / "adjudge.toml"
    url = f"sqlite:///{folder / 'ledger.db'}" if ledger is None else ledger
    file.write_text(f'[ledger]\nurl = "{url}"\n{more}\n[hook]\n{hook}\n', encoding="utf-8")
    return file


def answer(file: Path, harness: Harness, **changed: object) -> str:
    """Ask a hook about a call, and return its opinion."""
    event = {
        "session_id": "s1",
        "cwd": "/work",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "t1",
    }

    async def ask() -> str:
        opened = OpenedHook(read_bound_config(file, digest=None), harness)
        try:
            opened.check_ready()
            output = await opened.guard.answer(read_event(harness, json.dumps(event | changed).encode()))
        finally:
            await opened.aclose()
        return output.get("hookSpecificOutput", {}).get("permissionDecision", "none")

    return asyncio.run(ask())


SHELL = 'tools = {"Bash" = "shell"}'


def test_gates_are_asked_by_the_names_of_tools(tmp_path: Path):
    """Also those of MCP servers; a tool that nothing names is refused."""
    file = configure(
        tmp_path,
        'tools = {"Bash|Write" = "shell"}\nunchecked = ["Read"]\n'
        'mcp = [{server = "bank", tool = "pay*", gate = "shell", source = "user"}]',
    )
    bank = {"mcp_server": {"name": "bank", "source": "user"}, "tool_name": "mcp__bank__pay_out"}
    shadow = bank | {"mcp_server": {"name": "bank", "source": "project"}}

    assert answer(file, "claude") == "none"
    assert answer(file, "claude", tool_input={"command": "curl x"}) == "deny"
    assert answer(file, "claude", tool_name="Read", tool_input={"file_path": "/etc/hosts"}) == "none"
    assert answer(file, "claude", tool_name="Edit", tool_input={"file_path": "a"}) == "deny"
    assert answer(file, "claude", tool_input={"amount": 1}, **bank) == "none"
    assert answer(file, "claude", tool_input={"amount": 2}, **shadow) == "deny"


def test_effects_are_declared_for_own_tools_and_for_those_of_servers(tmp_path: Path):
    """By the same names as their gates."""
    file = configure(
        tmp_path,
        'tools = {"Bash" = "shell"}\neffects = {"Bash" = ["cannot be taken back"]}\n'
        'mcp = [{server = "bank", tool = "pay*", gate = "shell", effects = ["money leaves"]}]',
    )
    config = read_bound_config(file, digest=None)
    settings = OpenedHook(config, "claude").settings

    assert dict(settings.effects) == {"Bash": ("cannot be taken back",)}
    assert settings.mcp[0]["effects"] == ("money leaves",)
    assert config.hook["mcp"][0]["effects"] == ["money leaves"], "the configuration itself is not changed"


def test_a_hook_protects_itself_and_opens_no_shell_in_codex(tmp_path: Path):
    """Both are on by default; Claude Code gives a shell no terminal."""
    file = configure(tmp_path, SHELL)

    assert answer(file, "claude", tool_input={"command": f"cat {file}"}) == "deny"
    assert answer(file, "claude", tool_input={"command": f"cat {file.parent}/ledger.db-wal"}) == "deny"
    assert answer(file, "claude", tool_input={"command": "bash"}) == "none"
    assert answer(file, "codex", tool_input={"command": "bash"}) == "deny"


def test_the_cache_of_a_gate_is_protected_as_the_ledger_is(tmp_path: Path):
    """What is written into it decides, and what is read in it was judged. What it holds is bound by no digest."""
    caching = '[gates.caching]\nrules = [{not_contains = "curl"}]\ncache = "kept/replies.sqlite"\n'
    file = configure(tmp_path, f'{SHELL}\nunchecked = ["Read"]', more=GATES + caching)
    digest = digest_config(read_bound_config(file, digest=None))
    cache = file.parent / "kept" / "replies.sqlite"

    for written in (cache, f"{cache}-wal", f"{cache}-journal"):
        assert answer(file, "claude", tool_input={"command": f"sqlite3 {written} 'insert into replies'"}) == "deny"
    assert answer(file, "claude", tool_name="Read", tool_input={"file_path": str(cache)}) == "deny"
    beside = {"command": f"ls {cache.parent}/notes.txt"}
    assert answer(file, "claude", tool_input=beside) == "none"

    cache.parent.mkdir(exist_ok=True)
    cache.write_text("a reply more", encoding="utf-8")
    assert digest_config(read_bound_config(file, digest=digest)) == digest


def test_both_can_be_switched_off_by_name(tmp_path: Path):
    """Then the words of commands are nobody's business."""
    file = configure(tmp_path, f"{SHELL}\nprotects_itself = false\nno_open_shell = false")

    assert answer(file, "codex", tool_input={"command": f"cat {file}"}) == "none"
    assert answer(file, "codex", tool_input={"command": "bash"}) == "none"


@pytest.mark.parametrize(
    "hook",
    [
        "",
        'mode = "observe"',
        "tools = 3",
        'tools = {"Bash" = 3}',
        'tools = {"B?sh" = "shell"}',
        'tools = {"Bash" = "absent"}',
        f'{SHELL}\ntoolz = "x"',
        f'{SHELL}\nmatch = "name"',
        f'{SHELL}\npending = "ask"',
        f'{SHELL}\npending = "defer"',
        f"{SHELL}\ntimeout = 0",
        f'{SHELL}\nprotects_itself = "no"',
        f'{SHELL}\nno_open_shell = "no"',
        f'{SHELL}\nunchecked = "Read"',
        f'{SHELL}\nunchecked = ["Read*"]',
        f'{SHELL}\nunchecked = ["Bash"]',
        f"{SHELL}\nanswers = true",
        f'{SHELL}\nmcp = [{{server = "bank"}}]',
        f'{SHELL}\nmcp = [{{server = "bank", tool = "pay*"}}]',
        f'{SHELL}\nmcp = [{{server = "bank", tool = "pay", gates = "shell"}}]',
        f'{SHELL}\nmcp = "bank"',
        f'{SHELL}\nmcp = [{{server = "bank", tool = "pay", gate = "shell", effects = "money leaves"}}]',
        f'{SHELL}\neffects = ["money leaves"]',
        f'{SHELL}\neffects = {{"Bash" = "money leaves"}}',
        f'{SHELL}\neffects = {{"B?sh" = ["money leaves"]}}',
        f'{SHELL}\nmode = "off"',
        f'{SHELL}\nmode = "observe"',
        f'{SHELL}\nmode = "observe"\nuntil = "{TODAY}"',
        f'{SHELL}\nmode = "observe"\nuntil = {TODAY - timedelta(days=1)}',
        f'{SHELL}\nmode = "observe"\nuntil = {TODAY + timedelta(days=32)}',
    ],
)
def test_settings_that_cannot_be_meant_are_errors(tmp_path: Path, hook: str):
    """Above all those that would let a call pass unseen."""
    file = configure(tmp_path, hook)

    with pytest.raises(UsageError):
        OpenedHook(read_bound_config(file, digest=None), "claude")


def test_observing_needs_an_end_that_is_near(tmp_path: Path):
    """Until then everything passes, on the record."""
    file = configure(tmp_path, f'{SHELL}\nmode = "observe"\nuntil = {TODAY + timedelta(days=29)}')

    assert answer(file, "claude", tool_input={"command": "curl x"}) == "none"
    assert answer(file, "claude", tool_name="Unknown") == "none"
    assert answer(file, "claude", tool_input={"command": f"cat {file}"}) == "deny"


def test_codex_cannot_defer(tmp_path: Path):
    """It makes a call that is deferred."""
    file = configure(tmp_path, f'{SHELL}\nmatch = "call"\npending = "defer"')

    assert answer(file, "claude") == "none"
    with pytest.raises(UsageError):
        OpenedHook(read_bound_config(file, digest=None), "codex")


def test_a_gate_that_lets_pass_unseen_is_named(tmp_path: Path):
    """Or the hook does not start."""
    more = '[gates.shell]\nrules = [{not_contains = "curl"}]\non_undecided = "allow"\n'

    with pytest.raises(UsageError, match="unsafe"):
        OpenedHook(read_bound_config(configure(tmp_path, SHELL, more=more), digest=None), "claude")
    file = configure(tmp_path, f'{SHELL}\nunsafe = ["shell.on_undecided"]', more=more)
    assert answer(file, "claude") == "none"


@pytest.mark.parametrize("ledger", ["guard.db", "sqlite:///guard.db", "./guard.db"])
def test_a_ledger_has_an_absolute_address(tmp_path: Path, ledger: str):
    """Seen from the folder of the session, it would be the project's."""
    with pytest.raises(UsageError):
        read_bound_config(configure(tmp_path, SHELL, ledger=ledger), digest=None)


def test_a_configuration_without_a_ledger_is_an_error(tmp_path: Path):
    """Nothing would be recorded."""
    file = tmp_path / "adjudge.toml"
    file.write_text(f"[hook]\n{SHELL}\n", encoding="utf-8")

    with pytest.raises(UsageError):
        read_bound_config(file, digest=None)


@pytest.mark.parametrize(
    "more",
    [
        '[gates.shell]\nrules = [{python = "evil:check"}]\n',
        '[gates.shell]\nrules = [{name = "python", function = "evil:check"}]\n',
        f'{GATES}[judges.mine]\nseats = ["python:evil:ask"]\n',
    ],
)
def test_code_is_refused_unless_it_was_allowed(tmp_path: Path, more: str):
    """Whoever writes the module would run in the guard."""
    file = configure(tmp_path, SHELL, more=more)

    with pytest.raises(UsageError):
        read_bound_config(file, digest=None)
    assert read_bound_config(file, digest=None, allow_python=True).path == file


def test_code_is_the_servers_where_one_is_asked(tmp_path: Path):
    """The hook runs none of it."""
    server = '[hook.server]\naddress = "unix:/run/hook.sock"\nkey = "/guard/key"\n'
    file = configure(tmp_path, SHELL, more=f'{GATES}[judges.mine]\nseats = ["python:mine:ask"]\n{server}')

    assert read_bound_config(file, digest=None).path == file


def test_a_configuration_is_bound_by_its_digest_and_by_what_it_names(tmp_path: Path):
    """A rubric, module or recording beside it that changes is another configuration; the ledger's file is not."""
    rubric, module = tmp_path / "guard" / "calls.yaml", tmp_path / "guard" / "mine.py"
    rubric.parent.mkdir()
    rubric.write_text("name: Calls\ncriteria: [{name: kind, description: Is kind.}]\n", encoding="utf-8")
    module.write_text("x = 1\n", encoding="utf-8")
    recording = tmp_path / "guard" / "said.jsonl"
    recording.write_text("{}\n", encoding="utf-8")
    seats = '["python:mine:ask", "replay:said.jsonl?model=m"]'
    more = f'{GATES}[rubrics]\ncalls = "calls.yaml"\n[judges.mine]\nseats = {seats}\n'
    file = configure(tmp_path, SHELL, more=more)
    digest = digest_config(read_bound_config(file, digest=None, allow_python=True))

    (tmp_path / "guard" / "ledger.db").write_text("x", encoding="utf-8")
    assert read_bound_config(file, digest=digest, allow_python=True).path == file
    for changed in (rubric, module, recording, file):
        before = changed.read_text("utf-8")
        changed.write_text(f"{before}\n# changed", encoding="utf-8")
        with pytest.raises(UsageError, match="changed"):
            read_bound_config(file, digest=digest, allow_python=True)
        changed.write_text(before, encoding="utf-8")
    assert read_bound_config(file, digest=digest, allow_python=True).path == file


def test_a_configuration_is_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By an absolute path; no link, and not writable by everybody."""
    file = configure(tmp_path, SHELL)
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    monkeypatch.chdir(file.parent)

    for path in (link, Path("adjudge.toml"), file.parent / "absent.toml"):
        with pytest.raises(UsageError):
            read_bound_config(path, digest=None)
    file.chmod(0o666)
    with pytest.raises(UsageError):
        read_bound_config(file, digest=None)


def test_a_configuration_lies_outside_of_the_session(tmp_path: Path):
    """Also where a link leads into it."""
    file = configure(tmp_path, SHELL)
    (tmp_path / "link").symlink_to(file.parent)

    check_outside(file, str(tmp_path / "work"))
    for cwd in (file.parent, tmp_path, tmp_path / "link"):
        with pytest.raises(UsageError):
            check_outside(file, str(cwd))


def test_the_configuration_of_the_page_does_what_it_says(tmp_path: Path):
    """Two rules, a tool that nothing checks, and one that a person decides about."""
    page = (house.ROOT / "docs" / "hook.md").read_text("utf-8")
    text = page.partition('```toml title="guard/adjudge.toml"\n')[2].partition("```")[0]
    file = tmp_path / "adjudge.toml"
    file.write_text(text.replace("/home/ana/guard/ledger.db", str(tmp_path / "ledger.db")), encoding="utf-8")
    shop = {"tool_name": "mcp__shop__deploy_all", "tool_input": {"to": "production"}}

    assert answer(file, "codex") == "none"
    assert answer(file, "codex", tool_input={"command": "curl x"}) == "deny"
    assert answer(file, "codex", tool_name="view_image", tool_input={"path": "a.png"}) == "none"
    assert answer(file, "codex", **shop) == "deny"

    async def list_waiting() -> int:
        async with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            return len(await Approvals(ledger).list())

    assert asyncio.run(list_waiting()) == 1


def test_the_first_walk_of_the_page_refuses_by_two_rules_and_holds_a_patch(tmp_path: Path):
    """What the page has a shell write, read without its server."""
    page = (house.ROOT / "docs" / "hook.md").read_text("utf-8")
    text = page.partition("adjudge.toml <<END\n")[2].partition("[server]")[0]
    file = tmp_path / "adjudge.toml"
    file.write_text(text.replace("$HOME/guard/ledger.db", str(tmp_path / "ledger.db")), encoding="utf-8")
    patch = {"command": "*** Begin Patch\n*** Add File: new.txt\n+hi\n*** End Patch"}

    assert answer(file, "codex", tool_input={"command": "echo hello"}) == "none"
    assert answer(file, "codex", tool_input={"command": "curl x"}) == "deny"
    assert answer(file, "codex", tool_input={"command": "rm -rf x"}) == "deny"
    assert answer(file, "codex", tool_name="apply_patch", tool_input=patch) == "deny"

    async def list_waiting() -> int:
        async with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            return len(await Approvals(ledger).list())

    assert asyncio.run(list_waiting()) == 1


def test_the_settings_say_how_long_an_answer_may_take(tmp_path: Path):
    """Two checks and a start, which is what a patch in a command needs."""
    settings = read_hook_settings(read_bound_config(configure(tmp_path, f"{SHELL}\ntimeout = 5"), digest=None))

    assert settings.seconds == 20
