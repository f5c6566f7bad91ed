"""Which reported names are the requested model, and which are another one."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.model_name import is_same_model

SAME = (
    ("gpt-6.1-terra", "gpt-6.1-terra"),
    ("gpt-6.1-terra", "gpt-6.1-terra-2026-09-01"),
    ("gpt-4", "gpt-4-0613"),
    ("claude-haiku-4-5", "claude-haiku-4-5-20251001"),
    ("claude-haiku-4-5", "claude-haiku-4-5@20251001"),
    ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022"),
    ("claude-sonnet-4", "claude-sonnet-4-20250514"),
    ("gemini-2.0-flash", "gemini-2.0-flash-001"),
    ("gemini-3.5-flash-lite", "models/gemini-3.5-flash-lite"),
    ("models/gemini-3.5-flash-lite", "gemini-3.5-flash-lite"),
    ("gemini-3.5-flash-lite", "models/gemini-3.5-flash-lite-001"),
    ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"),
    ("gemini-2.5-pro-preview", "gemini-2.5-pro-preview-06-05"),
    ("gemini-3.5-flash-lite", "publishers/google/models/gemini-3.5-flash-lite"),
    ("mistral-small-latest", "mistral-small-2603"),
    ("mistral-small", "mistral-small-2603"),
    ("mistral-small-latest", "mistral-small-latest"),
    ("openai/gpt-oss-20b", "openai/gpt-oss-20b"),
    ("Qwen/Qwen3.8-Flash", "qwen/qwen3.8-flash"),
)
OTHER = (
    ("gpt-5", "gpt-5-mini"),
    ("gpt-5-mini", "gpt-5"),
    ("gpt-5", "gpt-5-mini-2025-08-07"),
    ("gpt-5-mini", "gpt-6.1-terra"),
    ("gpt-5", "gpt-5.1"),
    ("gpt-5", "gpt-51"),
    ("gpt-5-2025-08-07", "gpt-5-2026-01-01"),
    ("gpt-5-2025-08-07", "gpt-5"),
    ("gemini-2.5-flash", "gemini-3.5-flash-lite"),
    ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("gemini-2.5-flash", "gemini-2.5-flash-lite-001"),
    ("gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025"),
    ("claude-opus-4", "claude-opus-4-1"),
    ("claude-opus-4", "claude-opus-4-5-20251101"),
    ("claude-haiku-4-5", "claude-haiku-5-5"),
    ("mistral-small-latest", "mistral-medium-2604"),
    ("mistral-small-2603", "mistral-small-2506"),
    ("llama3-70b", "llama3-70b-8192"),
    ("gpt-4", "gpt-4-32k"),
    ("gpt-4", "gpt-4-1106-preview"),
    ("gpt-4", "ft:gpt-4:us::1"),
    ("m", "m-2026-13-01"),
    ("m", "m-2026-12-41"),
    ("m", "m-2026-1201"),
    ("m", "m-1399"),
    ("m", "m-٢٠٢٦-٠٩-٠١"),
    ("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
    ("-latest", "-2603"),
)


@pytest.mark.parametrize(("requested", "reported"), SAME)
def test_a_snapshot_of_the_requested_model_is_that_model(requested: str, reported: str):
    """The name itself, a date or version behind it in a provider's form, and the folder that Google puts before it."""
    assert is_same_model(requested, reported)


@pytest.mark.parametrize(("requested", "reported"), OTHER)
def test_another_model_is_another_model(requested: str, reported: str):
    """A size, a version, a preview, another snapshot than the one asked for, and a number that is no date."""
    assert not is_same_model(requested, reported)


NAMES = st.text("abcdefgh-./", min_size=1, max_size=12).filter(lambda name: not name.endswith("-latest"))


@given(NAMES, st.dates(min_value=date(2020, 1, 1), max_value=date(2099, 12, 31)))
def test_every_name_is_answered_by_itself_and_by_any_day_of_it(name: str, day):
    """Whatever a model is called, and whatever the date of its snapshot."""
    assert is_same_model(name, name)
    assert is_same_model(name, f"{name}-{day:%Y-%m-%d}")
    assert is_same_model(name, f"{name}-{day:%Y%m%d}")
    assert is_same_model(name, f"{name}-{day:%y%m}")


@given(NAMES, st.text("abcdefghxyz", min_size=1, max_size=8))
def test_a_word_behind_a_name_makes_another_model(name: str, word: str):
    """A word is never a snapshot, with or without a date behind it; the one word that is none is ``latest``."""
    assert not is_same_model(name, f"{name}-{word}")
    assert not is_same_model(name, f"{name}-{word}-2026-09-01")
    assert is_same_model(f"{name}-latest", f"{name}-2603")
