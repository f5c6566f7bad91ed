"""The rule ``commands``: one simple command and nothing else, whatever a shell would make of it."""

from __future__ import annotations

import pytest

from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.rules import rule_from_spec
from kit.rules import check

ONLY = ["npm test", "npm run lint:*", "git commit -m *", "ls **"]

ALLOWED = [
    "npm test",
    "npm run lint:css",
    "git commit -m fix",
    "git commit -m 'Fix the build'",
    'git commit -m "Fix the build"',
    "ls",
    "ls -la src tests",
]

BYPASSES = """\
npm test; curl x
npm test ;curl x
npm test && curl x
npm test || curl x
npm test | sh
npm test & curl x
npm test > /etc/passwd
npm test < /dev/tcp/x/1
npm test 2>&1
npm test $(curl x)
npm test `curl x`
npm test ${IFS}x
npm test $HOME
npm test <(curl x)
npm test #x
npm test *
npm test ?
npm test [ab]
npm test {a,b}
npm test ~
npm test !!
npm test \\x
npm test --prefix /tmp/e
npm test x
npm  test x
npm
npm run
npm run test
npm run lint
npm run lint:a b
npm run-script lint:a
npmtest
Npm test
NPM TEST
./npm test
/tmp/npm test
PATH=. npm test
PATH=/tmp:$PATH npm test
A=b npm test
env npm test
env PATH=. npm test
/usr/bin/env npm test
sudo npm test
sudo -u root npm test
doas npm test
xargs npm test
nohup npm test
time npm test
timeout 9 npm test
nice npm test
setsid npm test
stdbuf -o0 npm test
exec npm test
eval npm test
command npm test
builtin npm test
source npm test
. npm test
sh -c 'npm test'
bash -c "npm test"
bash -lc 'npm test'
/bin/sh -c 'npm test'
busybox npm test
busybox sh
ssh host npm test
docker run npm test
find . -exec npm test
watch npm test
flock x npm test
! npm test
( npm test )
{ npm test
if npm test
'npm test'
"npm test"
'npm' 'te'st x
n\\pm test
npm test "
npm test '
git commit -m a b
git commit -m 'a' --amend
git commit --amend -m a
git commit -m
git commit -am a
git -c core.editor=x commit -m a
git commit -m "$(curl x)"
git commit -m "`curl x`"
git commit -m 'a'; curl x
git commit -m 'a' | sh
git commit -m a > x
ls; curl x
ls && curl x
ls | sh
ls $(curl x)
ls `curl x`
ls > x
ls *
ls ~
ls \\
ls {a,b}
lsx
ls=x
cd /tmp
cd /tmp && npm test
export PATH=.
alias npm=curl
set -x
trap x EXIT
curl http://evil.example
python -c x
make
"""

CONTROL = [
    "npm test\ncurl x",
    "npm test\r\ncurl x",
    "npm test\rcurl x",
    "npm\ttest",
    "npm test\x0bcurl",
    "npm\u00a0test",
    "npm\u3000test",
    "npm test\u2028curl x",
    "npm te\u200bst",
    "npm t\u0435st",
    " npm test",
    "npm test ",
    "",
    " ",
    "npm test \x1b[2K",
    "npm test\ufffd",
]

REFUSED = [*BYPASSES.splitlines(), *CONTROL]


def make_run(arguments: object, tool: str = "Bash") -> AgentRun:
    return AgentRun(steps=[Step(role="assistant", call=AgentCall(tool=tool, arguments=arguments, result="ok"))])


def passes(run: AgentRun, **options) -> bool:
    return check(rule_from_spec({"commands": options}), run).passed


@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_that_may_be_run_passes(command: str):
    """Word for word; an asterisk is within one word, and two at the end are any more words."""
    assert passes(make_run({"command": command}), only=ONLY)


def test_there_are_a_hundred_ways_around():
    """So many are tried below."""
    assert len(set(REFUSED)) > 100


@pytest.mark.parametrize("command", REFUSED, ids=map(str, range(len(REFUSED))))
def test_nothing_else_passes(command: str):
    """Whatever a shell would run beside, instead or around the commands that may be run."""
    assert not passes(make_run({"command": command}), only=ONLY)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": None},
        {"command": ["npm", 3]},
        {"command": "npm test", "cmd": "curl x"},
        {"command": "npm test", "cwd": "/tmp/e"},
        {"command": "npm test", "workdir": "/tmp/e"},
        {"command": "npm test", "env": {"PATH": "."}},
        {"command": "npm test", "shell": "/tmp/sh"},
        {"command": ["sh", "-c", "npm test; curl x"]},
        {"command": ["bash", "-lc", "npm test", "x"]},
        {"command": ["npm", "test; curl x"]},
        {"Command": "npm test"},
        "npm test",
        [],
    ],
    ids=map(str, range(14)),
)
def test_a_call_whose_command_is_in_doubt_does_not_pass(arguments: object):
    """No command, two, one with an argument that changes what it does, or arguments that cannot be read."""
    assert not passes(make_run(arguments), only=ONLY)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "npm test", "description": "Test it; all of it", "timeout": 1000},
        {"command": ["npm", "test"]},
        {"command": ["bash", "-lc", "npm test"]},
        {"cmd": "npm test", "yield_time_ms": 10},
    ],
    ids=map(str, range(4)),
)
def test_words_that_only_describe_do_not_count(arguments: object):
    """Nor does the way in which a harness hands a command to its shell."""
    assert passes(make_run(arguments), only=ONLY)


@pytest.mark.parametrize("tool", ["bash", "BASH", "mcp__box__bash", "shell", "exec_command", "run_shell_command"])
def test_a_shell_is_one_under_any_name(tool: str):
    """Typed input, which no command shows, is none that may be run."""
    assert not passes(make_run({"command": "curl x"}, tool), only=ONLY)
    assert not passes(make_run({"chars": "curl x\n"}, "write_stdin"), only=ONLY)


def test_other_tools_run_no_commands_unless_they_are_named():
    """``tools`` names those of a harness of yours."""
    run = make_run({"command": "curl x"}, "console")

    assert passes(run, only=ONLY)
    assert not passes(run, only=ONLY, tools=["console"])


@pytest.mark.parametrize(
    "command",
    [
        "curl http://x",
        "curl",
        "/usr/bin/curl x",
        "CURL x",
        "sudo curl x",
        "a=b curl x",
        "npm test; curl x",
        "npm test;curl x",
        "echo $(curl x)",
        "echo `curl x`",
        "bash -c 'curl x'",
        "cu''rl x",
        "c\\url x",
        "curl$IFS-x",
        "find . -exec curl {} +",
        "npm test\ncurl x",
        "git push --force",
        "git  push   --force origin",
    ],
    ids=map(str, range(18)),
)
def test_never_finds_what_is_written_plainly(command: str):
    """In any place of the command, quoted or not."""
    assert not passes(make_run({"command": command}), never=["curl", "git push --force"])


def test_never_lets_other_commands_pass_and_says_that_it_is_a_net():
    """A word that only begins like one is another."""
    result = check(rule_from_spec({"commands": {"never": "curl"}}), make_run({"command": "npm test curly.js"}))

    assert result.passed
    assert "never is a net" in result.message


@pytest.mark.slow
def test_never_takes_time_in_proportion_to_the_command():
    """A command of a million characters is looked at once."""
    assert passes(make_run({"command": "a " * 500_000}), never=["curl *", "a b c"])
