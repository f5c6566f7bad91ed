"""The rule ``model_markup``: content that imitates the markup of a prompt, or the reply of a judge.

Only exact forms are found. No rule reliably finds an order to the model that is written in plain words; how a question
is built keeps content from giving such orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.result import RuleResult
from adjudge.rules.document import Detection, Document, read_choice, search

KINDS = {
    "fence": "fence line of a question",
    "template": "token of a chat template",
    "reply": "form of a judge's reply",
}

# For RE2, which searches without the interpreter's lock, in a time that is linear in the text.
_PATTERNS = {
    "fence": r"(?i)<<(?:end )?[^<>\n\x00]{1,80} [0-9a-z]{8}>>",
    "template": r"(?i)<\|[^|<>\n\x00]{1,40}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<\|?/?(?:bos|eos)\|?>",
    # A judge's token (group 1), or a verdict in the form of MT-Bench. The quotation marks are optional, because a JSON
    # value is searched as ``name: value``.
    "reply": r"""(\btoken["']?\s{0,9}:\s{0,9}["']?[0-9a-z]{8}\b)|\[\[(?:A|B|C|tie|rating: ?[0-9]{1,3})\]\]""",
}

# A reply has one of these names within 300 characters of its token. RE2 has no lookahead.
_REPLY_MEMBER = re.compile(r""".{0,300}?\b(?:score|passed|winner|level)["']?\s{0,9}:""", re.DOTALL)


def make_model_markup(*, kinds: str | Sequence[str] | None = None) -> Callable[[Any], RuleResult]:
    """Make a check that the content imitates no markup of these kinds, by default of all."""
    chosen_kinds = read_choice("model_markup", "kinds", kinds, KINDS)

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Detection]:
            for kind in chosen_kinds:
                for match in _compile_kind(kind).finditer(document.text):
                    # A token (the only group of all patterns) counts only with another member of a reply after it.
                    if not match.lastindex or _REPLY_MEMBER.match(document.text, match.end()):
                        yield Detection(kind=KINDS[kind], start=match.start(), end=match.end())

        return search(content, find, nothing="imitates no markup of a model")

    return check


@lru_cache(maxsize=len(_PATTERNS))
def _compile_kind(kind: str) -> Any:
    import re2

    return re2.compile(_PATTERNS[kind])
