"""The model of each provider that is asked when nobody names one: the one place where these names are written.

Providers withdraw models, or answer for them with others, on dates that they announce. Documentation, examples and
messages name these models and no others; a test checks that. To change one, change it here first, and then there.
"""

from __future__ import annotations

from collections.abc import Mapping

# Read on 22 November 2026: a current small model each, with no date on which it ends.
DEFAULT_MODELS: Mapping[str, str] = {
    "openai": "gpt-6.1-terra",  # the provider's own replacement for gpt-5-mini
    "anthropic": "claude-haiku-5-5",
    "gemini": "gemini-3.5-flash-lite",  # the provider's own replacement for gemini-2.5-flash
    "mistral": "mistral-small-2603",  # and not -latest, whose replies change without a word
    "groq": "openai/gpt-oss-20b",
    "together": "openai/gpt-oss-120b",
    "openrouter": "openai/gpt-6.1-terra",
}
"""By the prefix of a spec, the most usual first."""


EXAMPLE = f"openai:{DEFAULT_MODELS['openai']}"
"""The spec that messages show."""


def default_spec(prefix: str) -> str:
    """The spec of a provider's default model."""
    return f"{prefix}:{DEFAULT_MODELS[prefix]}"
