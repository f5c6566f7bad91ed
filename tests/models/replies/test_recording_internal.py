"""The masking of a token."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from adjudge.models import TokenLogprob
from adjudge.models.replies.mask import mask, mask_tokens, unmask, unmask_tokens

texts = st.lists(
    st.sampled_from(["{{", "}}", "=", "token", "{{token}}", "{{=token}}", "{{token[0:2]}}", "{", "}", "tok", "x"])
).map("".join)


@given(texts, st.sampled_from(["abcdefgh", "token", "{{token}}", "=token}}", "en}}", "x", "{{", None]))
@example("x{{token}}", "x{{tok")
@example("{{{{token}}}}", "{{token}}")
def test_masking_is_reversible(text, token):
    """Whatever text and token are, what is recorded gives the text back."""
    assert unmask(mask(text, token), token) == text


@given(texts, texts)
def test_masking_cannot_be_forged(before, after):
    """Only where the true token stood does another one come back; a mark that content wrote stays what it was."""
    token = "abcdefgh"
    replayed = unmask(mask(before + token + after, token), "stuvwxyz")

    assert replayed == before + "stuvwxyz" + after


@given(texts, st.lists(st.integers(0, 40), max_size=6))
def test_masking_tokens_follows_any_cut(text, cuts):
    """However a model's tokens cut the reply, each gets its part of the token masked, and back."""
    token = "abcdefgh"
    whole = f"{text}{token}{text}{token}"
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(ends)]
    tokens = tuple(TokenLogprob(token=piece, logprob=-1.0, top=((piece, -1.0),)) for piece in pieces)
    masked = mask_tokens(tokens, token)

    assert unmask_tokens(masked, token) == tokens
    assert not any(set("abcdfgh") & set(item.token.replace("token", "")) for item in masked)
    assert "".join(item.token for item in unmask_tokens(masked, "stuvwxyz")) == whole.replace(token, "stuvwxyz")
