"""The table that a user of a provider can send: what could be read, in which form, and what it cost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from kit.cli import Provider, find_token, serve
from kit.house import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timed]

FORMS = ("text, token", "text, no token", "structured, token", "structured, no token", "pair, both orders")


class PairProvider(Provider):
    """Passes every statement, and prefers neither of two."""

    def say(self, body: Mapping[str, Any]) -> dict[str, Any]:
        prompt = json.dumps(body).encode().decode("unicode_escape")
        replied = super().say(body)
        if "preferred" in prompt:
            text = json.dumps({"token": find_token(prompt), "reasoning": "", "preferred": "tie"})
            replied["choices"][0]["message"]["content"] = text
        return replied


def try_provider(provider: Provider) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "try_provider"), provider.spec, "--replies", "2"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_table_has_a_row_for_each_form_and_says_how_the_request_ended():
    """A provider whose every reply can be read: exit status 0, though it passes what is false."""
    with serve(PairProvider()) as provider:
        done = try_provider(provider)

    assert done.returncode == 0, done.stderr
    rows = {line[:22].strip(): line[22:].split() for line in done.stdout.splitlines()}
    assert [rows[form][:3] for form in FORMS[:4]] == [["2", "2", "1"]] * 4
    assert set(FORMS) <= set(rows)
    assert "model as reported  small-1" in done.stdout
    assert "the next request: passed" in done.stdout


def test_forms_that_cannot_be_read_are_named():
    """A provider that leaves the token out: the forms without it can be read, and those with it cannot."""
    with serve(Provider(mode="tokenless")) as provider:
        done = try_provider(provider)

    assert done.returncode == 1
    named = {line.split(":")[0] for line in done.stderr.splitlines()}
    assert named >= {"text, token", "structured, token"}
    assert "text, no token" not in named


def test_a_provider_that_cannot_be_asked_is_told_from_a_poor_one():
    """Every request is refused: exit status 3."""
    with serve(Provider(mode="403")) as provider:
        done = try_provider(provider)

    assert done.returncode == 3
    assert "could not be asked" in done.stderr
