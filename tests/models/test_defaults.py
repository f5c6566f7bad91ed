"""The models that are named by default stand in one place, and whatever a reader would copy names them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adjudge.models import DEFAULT_MODELS
from kit import docs, house

NAMED = re.compile(
    r"""(?<![\w./-])
    (?: (?:openai|meta-llama|google|anthropic|qwen|mistralai|deepseek|x-ai)/ )?
    (?: (?:chatgpt|gpt|claude|gemini|gemma|mistral|ministral|magistral|codestral|mixtral|llama|qwen|deepseek|grok|phi)
        -?[a-z]*-?\d [\w.:-]* | (?:gpt|claude|gemini|mistral|ministral|deepseek|grok)-[a-z][\w.:-]* | o[1-9](?:-\w+)? )
    (?![\w/(-])""",
    re.VERBOSE | re.IGNORECASE,
)
"""What looks like the name of a model that a provider serves."""

MEASURED = {"GPT-4", "Gemma-2B", "Llama-13B", "Llama-70B", "Llama-7B", "Llama3-70B", "Llama3-8B", "Mistral-7B"}
"""Judges of published data sets, whose verdicts are recorded."""

HISTORY = {
    "docs/coverage.md": MEASURED | {"LLaMA2", "gpt-5.4", "gpt-5.4-mini"},  # judges and their recorded cascades
    "docs/monitor.md": MEASURED | {"gpt-4t", "llama2-13b-chat"},
    "docs/plan-measured.md": MEASURED,
    "docs/reproductions.md": {"GPT-4"},
    "README.md": {"llama3.2"},  # on a server of one's own, where nobody takes it away
    "docs/index.md": {"llama3.2"},
    "docs/local-server.md": {"llama3.2"},
    "docs/cli.md": {"llama3.2"},
    "docs/integrations.md": {"llama3.2"},
    "docs/moving.md": {
        "anthropic/claude-haiku-5-5",
        "google/gemini-3.5-flash-lite",
    },  # defaults, as another tool names them
    "docs/models.md": {"gpt-5", "gpt-5-mini"},  # which names are another model
    "docs/seeds.md": {"gpt-4o-mini", "claude-haiku"},  # functions in the seeds' own example
    "docs/measure-a-judge.md": {"GPT-4", "gpt4", "llama2orig"},  # whose replies and answers are recorded
    "examples/measured-judge/README.md": {"GPT-4"},
    "examples/measured-judge/adjudge.toml": {"GPT-4"},
    "examples/measured-judge/answers.jsonl": {"gpt4", "llama2orig"},
    "examples/measured-judge/recorded.jsonl": {"gpt-4"},
}
"""Names that pages mention and nobody is told to ask, by page."""

NO_MODELS = {"claude-agent-sdk", "claude-agent-sdk.md"}
"""A package and its page, which are called like models."""

IN_CODE = {
    "_FAMILIES": {"o1", "o3", "o4"},  # how names begin, by which a provider is found
    "_COMPACT_DATE": {"gpt-5.2-20251211", "gpt-5.2-2025-12-11"},  # how a date in a name is written
    "is_same_model": {"gpt-5", "gpt-5-mini", "gpt-6.1-terra-2026-09-01"},  # which names are another model
}
"""The same for modules, by a name that they define."""


PRICES = house.ROOT / "src/adjudge/models/prices.json"
"""The shipped prices, which list every known model and which nobody copies from."""

TEXTS = {".css", ".html", ".js", ".json", ".jsonl", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}


def list_files() -> list[Path]:
    """What a reader copies from: pages, examples, the package's own messages and docstrings, and its schema files."""
    paths = [*docs.find_pages(), *(house.ROOT / "examples").rglob("*"), *(house.ROOT / "src").rglob("*")]
    return [path for path in paths if path.is_file() and path.suffix in TEXTS]


def find_names(text: str) -> set[str]:
    """The models that a text names."""
    return {match[0].rstrip(".:-") for match in NAMED.finditer(text)}


@pytest.mark.parametrize(
    "text",
    [
        "openai:gpt-5-mini",
        "`gemini:gemini-2.5-flash`",
        "anthropic:claude-haiku-4-5",
        "mistral:mistral-small-latest",
        "groq:llama-3.3-70b-versatile",
        "together:meta-llama/Llama-3.3-70B-Instruct-Turbo",
        "openrouter:openai/gpt-5-mini",
        "model='o3'",
        '"gpt-4o" = {',
    ],
)
def test_a_model_is_seen_wherever_it_is_named(text: str):
    """Or the next test could not fail."""
    assert find_names(text)


@pytest.mark.slow
def test_no_page_example_or_message_names_another_model():
    """A reader who copies a line must not copy a model that is about to end."""
    known = set(DEFAULT_MODELS.values())
    in_code = {house.find_definition(name): models for name, models in IN_CODE.items()}
    others_by_file = {}
    for path in list_files():
        name = path.relative_to(house.ROOT).as_posix()
        if path in (house.find_definition("DEFAULT_MODELS"), PRICES):
            continue
        mentioned = HISTORY.get(name, set()) | in_code.get(path, set())
        others = find_names(path.read_text(encoding="utf-8")) - known - mentioned - NO_MODELS
        if others:
            others_by_file[name] = sorted(others)

    assert others_by_file == {}


def test_the_pages_say_where_the_defaults_stand():
    """Both the page of models and that of the command line."""
    for page in ("models.md", "cli.md"):
        text = " ".join((house.ROOT / "docs" / page).read_text(encoding="utf-8").split())
        assert "adjudge.models.DEFAULT_MODELS" in text, page
