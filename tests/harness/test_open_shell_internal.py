"""Commands that wait for typed input, which no hook of Codex is shown."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.guards import ToolCall
from adjudge.harness.open_shell import NoOpenShell, find_open_shell

OPEN = [
    "",
    "bash|sh|/bin/bash|bash -l|bash -i|bash -i script.sh|zsh -i|env bash|FOO=1 bash|sudo -s|sudo -i|sudo bash",
    "python|python3|python3.12|/usr/bin/python3 -|python -i x.py|python -q|node|irb|perl|php -a|ipython|bc",
    "psql|psql shop|sqlite3|sqlite3 shop.db|redis-cli|mysql -u root",
    "psql -h localhost -p 5432 shop|psql -x -U ana shop|mysql -u root -p|mysql -p -h db|mariadb -pSECRET -hdb shop",
    "redis-cli -h cache -p 6379|redis-cli -n 2|sqlite3 -readonly shop.db|sqlite3 -cmd '.mode json' shop.db",
    "mongosh mongodb://db|clickhouse-client -h db -m|sqlplus ana/x",
    "ssh host|ssh -p 22 host|telnet host|nc host 80",
    "less README.md|vim a.py|man ls|gdb ./a.out|tmux|top|su|su - ana",
    "docker run -it ubuntu|docker exec -ti web bash|kubectl exec -it pod -- sh",
    "true; bash|cd /x && python|ls & bash|timeout 100 bash|(bash)|nohup sh|python -u",
    "",
]

CLOSED = [
    "",
    "ls|bash build.sh|bash -c 'ls'|sh -ec ls|bash --version|env FOO=1 make|sudo make install|python -m pytest",
    "python script.py|python3 -c 'print(1)'|node index.js|node -e 1|perl -pe s/a/b/ x|ruby x.rb|php -r 1",
    "psql -h db -tAc 'select 1'|psql -l|mysql -u root -p -Nse 'select 1'|mysql -e 'select 1'|redis-cli -h cache get x",
    "sqlite3 -readonly shop.db 'select 1'|mongosh --eval 'db.x.find()'|mongosh db x.js|clickhouse-client -q 'select 1'",
    "redis-cli --version|mysql --help|sqlite3 --version|psql -V|redis-cli --scan",
    "psql -c 'select 1'|psql -f x.sql|sqlite3 shop.db 'select 1'|ssh host ls|ls -l|git log|echo bash|cat bash|npm test",
    "bash < script.sh|gdb -batch -ex run ./a.out|docker run ubuntu ls|docker build -t x .|pip install python",
    "make|./configure|cargo run|grep -r 'vim' .",
    "",
]


def split(lines: list[str]) -> list[str]:
    return [command for line in lines for command in line.split("|") if command]


@pytest.mark.parametrize("command", [*split(OPEN), "bash\nls", "ls\nbash", "\tbash", "'bash'", 'ba"sh"', "true || sh"])
def test_a_command_that_waits_for_input_is_found(command: str):
    """Also behind another command, and in a wrapper."""
    assert find_open_shell(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        *split(CLOSED),
        "echo 'ls' | bash",
        "python - <<'EOF'\nprint(\"it's\")\nEOF",
        "python <<EOF\nimport os\nEOF\n",
        "cat <<'X'\nbash\nX",
        "git diff | cat",
    ],
)
def test_a_command_with_its_input_is_none(command: str):
    """A script, a text to run, or a pipe."""
    assert find_open_shell(command) is None


def test_only_the_shell_is_looked_at():
    """A tool of an MCP server with the same name is another tool."""
    screen = NoOpenShell()

    def ask(tool: str, server: str | None, command: object) -> bool:
        call = ToolCall(tool, {"command": command}, "t", "s", server=server)
        return asyncio.run(screen.screen_call(call, {"command": command})).allowed

    assert not ask("Bash", None, "bash")
    assert ask("Bash", "bank", "bash")
    assert ask("Read", None, "bash")
    assert ask("Bash", None, ["bash"])
