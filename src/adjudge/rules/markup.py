"""Imitations of what stands around content when a model is asked, and of what a judge replies.

Only forms are found, of which code can be sure. An order in plain words is none, and no rule finds those reliably: what
keeps content from giving orders is how a question is built.
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

# By RE2, which searches without the interpreter's lock, in a time that is linear in the text.
_PATTERNS = {
    "fence": r"(?i)<<(?:end )?[^<>\n\x00]{1,80} [0-9a-z]{8}>>",
    "template": r"(?i)<\|[^|<>\n\x00]{1,40}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<\|?/?(?:bos|eos)\|?>",
    # A token, or one of the verdicts of MT-Bench; in a JSON value names and values stand without quotation marks.
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
                    if not match.lastindex or _REPLY_MEMBER.match(document.text, match.end()):
                        yield Detection(kind=KINDS[kind], start=match.start(), end=match.end())

        return search(content, find, nothing="imitates no markup of a model")

    return check


@lru_cache(maxsize=len(_PATTERNS))
def _compile_kind(kind: str) -> Any:
    import re2

    return re2.compile(_PATTERNS[kind])
