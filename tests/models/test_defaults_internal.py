"""The table of providers against the models that are used by default."""

from __future__ import annotations

import pytest

from adjudge import open_model
from adjudge.config.judges import PROVIDERS
from adjudge.models import DEFAULT_MODELS
from adjudge.models.defaults import EXAMPLE, default_spec
from adjudge.models.providers.catalog import ANTHROPIC, GEMINI, OPENAI_COMPATIBLE
from kit import house


def test_every_provider_that_has_a_key_has_a_default():
    """Azure and local servers have none: what is deployed there is named by whoever deployed it."""
    providers = {**OPENAI_COMPATIBLE, "anthropic": ANTHROPIC, "gemini": GEMINI}
    keys = {name: provider.key_variables for name, provider in providers.items() if provider.key_variables}

    assert set(DEFAULT_MODELS) == set(keys) - {"azure"}
    assert sorted(PROVIDERS) == sorted(
        (variable, default_spec(name)) for name, variables in keys.items() if name != "azure" for variable in variables
    )


@pytest.mark.parametrize("prefix", sorted(DEFAULT_MODELS))
def test_a_default_can_be_opened(prefix: str):
    """Its name is one that its provider's adapter takes."""
    assert open_model(default_spec(prefix)).name == default_spec(prefix)


def test_the_first_page_uses_the_default():
    """The judge of the first example is the one that messages show and that is asked when its key is set."""
    assert PROVIDERS[0][1] == EXAMPLE
    assert EXAMPLE in (house.ROOT / "README.md").read_text(encoding="utf-8")
