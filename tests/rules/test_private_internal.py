"""The tables behind the rules for secrets and personal data."""

from __future__ import annotations

import random
import string

import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.rules.personal_data import _IBAN_LENGTHS
from adjudge.rules.secrets import FORMS
from kit.rules import check


def test_every_form_of_a_secret_is_a_pattern_of_its_own():
    """No form matches nothing at all or plain words, and all are compiled together."""
    for kind, pattern in FORMS:
        assert kind
        assert re2.search(pattern, "") is None
        assert re2.search(pattern, "plain words with 123 numbers, and https://example.com/a?b=c#d") is None


@settings(max_examples=20)
@given(st.sampled_from(sorted(_IBAN_LENGTHS.items())), st.randoms(use_true_random=False))
def test_an_iban_is_one_by_its_check_digits(country: tuple[str, int], chance: random.Random):
    """Of the hundred pairs of check digits at most two are right, and one always is."""
    code, length = country
    rest = "".join(chance.choices(string.digits + string.ascii_uppercase, k=length - 4))
    pairs = [pair for pair in range(100) if not check({"personal_data": "iban"}, f"{code}{pair:02}{rest}").passed]

    assert 1 <= len(pairs) <= 2
