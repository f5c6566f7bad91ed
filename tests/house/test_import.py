"""Importing adjudge is silent and cheap: nothing is read, opened, printed or started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kit import house
from kit.house import TESTS

PROBE = TESTS / "kit" / "import_probe.py"
HEAVY = {
    "aiohttp",
    "cryptography",
    "genai_prices",
    "idna",
    "jinja2",
    "jsonschema_rs",
    "numpy",
    "openai",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "pydantic",
    "rapidfuzz",
    "re2",
    "rich",
    "scipy",
    "sqlalchemy",
    "typer",
    "yaml",
}

ADAPTERS = {
    "adjudge.integrations.claude",
    "adjudge.integrations.inspect_ai",
    "adjudge.integrations.langchain",
    "adjudge.integrations.mcp",
    "adjudge.integrations.openai_agents",
    "adjudge.integrations.opentelemetry",
    "adjudge.integrations.pydantic_ai",
    "adjudge.integrations.pydantic_evals",
    "adjudge.mcp.client",
    "adjudge.mcp.elicited_votes",
    "adjudge.mcp.result_screens",
    "adjudge.mcp.server",
    "adjudge.server.mcp_serving",
    "adjudge.server.mcp_tools",
}
"""Each is imported by name by those who use its package, and imports it; see integrations/test_integrations.py."""

SPEC = find_spec("adjudge")
INSTALLED = Path(next(iter(SPEC.submodule_search_locations or ()))) if SPEC else house.PACKAGE


def list_groups() -> dict[str, list[str]]:
    """The modules that one interpreter imports one after the other, by a name for them.

    Each package at the top is imported alone, as users do, and its modules together: an interpreter takes half a second
    to import anything of adjudge, and there are hundreds of modules. The full tests import each alone.
    """
    groups: dict[str, list[str]] = {}
    for module in sorted(house.modules().keys() - ADAPTERS):
        package = module.split(".")[:2]
        alone = module.count(".") < 2 or os.environ.get("ADJUDGE_FULL")
        groups.setdefault(module if alone else f"{'.'.join(package)}.*", []).append(module)
    return groups


def probe(directory: Path, modules: list[str], package: Path) -> tuple[dict[str, list[str]], str]:
    """What importing modules did, and what it printed, in an interpreter that has imported nothing yet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "ADJUDGE"))}
    environment = kept | {"PYTHONPATH": str(package.parent), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-P", str(PROBE), ",".join(modules), str(package), str(directory / "report.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=directory, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((directory / "report.json").read_text("utf-8")), done.stdout + done.stderr


GROUPS = list_groups()


@pytest.mark.integration
@pytest.mark.parametrize("group", GROUPS)
def test_importing_a_module_does_nothing_else(group: str, tmp_path: Path):
    """No file, no environment variable, no socket, process or thread, no output, and nothing heavy brought along."""
    report, printed = probe(tmp_path, GROUPS[group], INSTALLED)
    heavy = HEAVY - ({"rich", "typer"} if group.startswith("adjudge.cli") else set())
    heavy -= {"pydantic"} if group.startswith("adjudge.server.") else set()  # FastAPI's; adjudge serve imports it

    assert printed == ""
    assert {name: report[name] for name in ("environment", "files", "written", "traces", "threads")} == {
        "environment": [],
        "files": [],
        "written": [],
        "traces": [],
        "threads": [],
    }
    assert heavy.intersection(report["modules"]) == set()


NOISY = """
import os, socket, threading
from pathlib import Path
os.environ.get("HOME")
Path(__file__).with_name("data.txt").read_text()
socket.socket().close()
threading.Thread(target=print, args=("started",)).start()
"""


@pytest.mark.integration
def test_the_probe_sees_what_it_looks_for(tmp_path: Path):
    """A module that reads, connects, starts and prints is found out; so the test above can fail."""
    package = tmp_path / "noisy"
    package.mkdir()
    (package / "__init__.py").write_text(NOISY, encoding="utf-8")
    (package / "data.txt").write_text("read at import", encoding="utf-8")
    report, printed = probe(tmp_path, ["noisy"], package)

    assert printed == "started\n"
    assert "HOME" in report["environment"]
    assert report["files"] == [str(package / "data.txt")]
    assert {"socket.__new__", "threading.Thread.start"} <= set(report["traces"])


@pytest.mark.integration
def test_what_sends_requests_is_imported_with_the_first_request(tmp_path: Path):
    """Judges, models, gates and clients can be made without waiting for an HTTP client."""
    program = (
        "import sys\n"
        "from adjudge import Gate, Judge, JudgeChain\n"
        "from adjudge.client import Client\n"
        "from adjudge.models import open_model\n"
        "judge = Judge('openai:gpt-6.1-terra')\n"
        "chain = JudgeChain([judge, 'anthropic:claude-haiku-6', 'ollama:small'])\n"
        "Gate('publish', judge=chain, rubric='security')\n"
        "open_model('http://127.0.0.1:1/v1#small')\n"
        "Client('http://127.0.0.1:1', key='secret')\n"
        "print(*sys.modules)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "ADJUDGE"))}
    environment = kept | {"OPENAI_API_KEY": "secret", "ANTHROPIC_API_KEY": "secret"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    heavy = HEAVY - {"yaml"}  # the rubric is a file of YAML
    assert (heavy | {"yarl"}) & set(done.stdout.split()) == set()


def test_the_package_under_test_is_the_installed_one(require):
    """What is tested is what users install: the wheel, not the source tree."""
    remedy = "run ./scripts/test, which builds and installs it"
    require("an installed adjudge", not INSTALLED.is_relative_to(house.ROOT / "src"), remedy)

    assert (INSTALLED / "py.typed").is_file()
    data = {path.relative_to(house.PACKAGE) for path in house.PACKAGE.rglob("*") if path.is_file()}
    paths = {path for path in data if "__pycache__" not in path.parts}
    assert {str(path) for path in paths if not (INSTALLED / path).is_file()} == set()
