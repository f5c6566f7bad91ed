"""Adapters for other packages: each says what is missing where its package is, and nothing else needs any of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec

import pytest

from kit import house

PACKAGES = {
    "claude": "claude-agent-sdk",
    "inspect_ai": "inspect-ai",
    "langchain": "langchain",
    "mcp": "adjudge[mcp]",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai-slim",
    "pydantic_evals": "pydantic-evals",
    "opentelemetry": "adjudge[otel]",
}
"""The adapters that import a package, and what a user installs to have it."""

IMPORTED = {"claude": "claude_agent_sdk", "openai_agents": "agents"}
"""What an adapter imports, where it is not called like it."""

PROGRAM = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
try:
    import adjudge.integrations.{package}
except ModuleNotFoundError as error:
    print(error)
"""


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.integration
@pytest.mark.parametrize("package", PACKAGES)
def test_an_absent_package_is_named_with_its_remedy(package: str):
    """Importing the adapter fails at once, and the error says what to install."""
    output = run_python(PROGRAM.format(package=package, missing=IMPORTED.get(package, package)))

    assert f"adjudge.integrations.{package}" in output
    assert f"pip install '{PACKAGES[package]}'" in output or f"pip install {PACKAGES[package]}" in output


@pytest.mark.integration
@pytest.mark.parametrize(
    ("package", "missing"),
    [("inspect_ai", "anyio"), ("pydantic_evals", "pydantic_ai")],
)
def test_a_package_that_lacks_something_itself_says_so(package: str, missing: str, require):
    """An installed package that cannot be imported is not said to be absent."""
    require(package, find_spec(package), f"pip install {PACKAGES[package]}")

    assert run_python(PROGRAM.format(package=package, missing=missing)) == f"No module named {missing!r}"


def test_nothing_imports_an_adapter():
    """Each is imported by name, by those who have its package."""
    imports = [
        house.where(path, node)
        for path in house.package_files()
        for node in house.nodes(path)
        if isinstance(node, ast.ImportFrom | ast.Import)
        and any(
            name.startswith("adjudge.integrations")
            for name in [getattr(node, "module", None) or "", *[alias.name for alias in node.names]]
        )
    ]

    assert imports == []
