"""Secrets in content: keys and tokens by their form, and random values assigned to a name like ``password``.

Messages and metadata name the kind and the place of a secret, and show no character of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.formats.arguments import check_flag
from adjudge.result import RuleResult
from adjudge.rules.document import Detection, Document, fold, read_words, search

FORMS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----"),
    ("private key", r"PuTTY-User-Key-File-[0-9]"),
    ("age secret key", r"AGE-SECRET-KEY-1[0-9A-Za-z]{50,}"),
    ("AWS access key", r"\b(AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("Azure storage key", r"(?i)AccountKey=[A-Za-z0-9+/]{80,}={0,2}"),
    ("Google API key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Google OAuth secret", r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    ("Google access token", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36}"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("GitLab token", r"\bgl(pat|dt|rt|soat|cbt|ptt|ft|imt|agent)-[A-Za-z0-9_.-]{20,}"),
    ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("OpenRouter key", r"\bsk-or-v1-[0-9a-f]{40,}"),
    ("OpenAI key", r"\bsk-(proj|svcacct|admin|service)-[A-Za-z0-9_-]{20,}"),
    ("API key", r"\bsk-[A-Za-z0-9]{20,}"),
    ("Groq key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xAI key", r"\bxai-[A-Za-z0-9]{60,}"),
    ("Perplexity key", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("Replicate token", r"\br8_[A-Za-z0-9]{37}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Slack token", r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    ("Slack webhook", r"hooks\.slack\.com/(services|workflows|triggers)/[A-Za-z0-9_/+-]{20,}"),
    ("Discord webhook", r"discord(app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{40,}"),
    ("Telegram bot token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("Stripe key", r"\b[rs]k_(live|test)_[A-Za-z0-9]{16,}"),
    ("webhook secret", r"\bwhsec_[A-Za-z0-9+/]{24,}"),
    ("Square token", r"\bsq0(atp|csp|idp)-[A-Za-z0-9_-]{22,}"),
    ("Shopify token", r"\bshp(at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    ("Twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}"),
    ("Mailgun key", r"\bkey-[0-9a-f]{32}\b"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    ("Docker token", r"\bdckr_(pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("Heroku key", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    ("Databricks token", r"\bdapi[0-9a-f]{32}"),
    ("Vault token", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("Terraform token", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{50,}"),
    ("Grafana token", r"\bgl(sa|c)_[A-Za-z0-9+/=_]{32,}"),
    ("New Relic key", r"\bNRAK-[A-Z0-9]{27}"),
    ("Sentry token", r"\bsntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    ("Doppler token", r"\bdp\.(pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}"),
    ("Supabase token", r"\bsbp_[0-9a-f]{40}"),
    ("Linear key", r"\blin_(api|oauth)_[A-Za-z0-9]{32,}"),
    ("Notion token", r"\bntn_[A-Za-z0-9]{40,}"),
    ("Figma token", r"\bfig[dor]_[A-Za-z0-9_-]{36,}"),
    ("Postman key", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("Atlassian token", r"\bATATT3[A-Za-z0-9_=-]{50,}"),
    ("JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("password in an address", r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:\"'<>]*:[^\s/?#@\"'<>${}\[\]]{3,}@[A-Za-z0-9\[]"),
    ("authorization header", r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(basic|bearer)\s+[A-Za-z0-9+/_.=~-]{16,}"),
)
"""Kinds of secrets, in words, each with its form."""


LEAST_LENGTH, LEAST_ENTROPY = 12, 2.9
"""Characters, and bits per character, from which an assigned value counts as a secret; prose has fewer of both."""


_ASSIGNMENT = (
    r"(?i)(?:api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret|token|passwd|password|passphrase|pwd"
    r"|credentials?)[\w-]{0,30}[\"'`]?\s{0,4}(?::=|=>|[:=])\s{0,4}[\"'`]?([^\s\"'`,;<>(){}\[\]]{12,})"
)

_PLACEHOLDERS = (
    "example",
    "placeholder",
    "changeme",
    "your",
    "redacted",
    "dummy",
    "xxxx",
    "****",
    "....",
    "process.env",
)


def make_secrets(*, assignments: bool = True, ignore: str | Sequence[str] = ()) -> Callable[[Any], RuleResult]:
    """Make a check that nothing in the content has the form of a secret, or is a random value with a secret's name.

    ``assignments=False`` looks for the known forms alone.
    """
    check_flag("assignments", assignments, where="rule secrets")
    ignored = frozenset(map(fold, read_words("secrets", "ignore", ignore)))

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Detection]:
            return _find_secrets(document, ignored, assignments=assignments)

        return search(content, find, nothing="holds no known secret")

    return check


def _find_secrets(document: Document, ignored: frozenset[str], *, assignments: bool) -> Iterator[Detection]:
    """Yield known forms that are not ignored, then with ``assignments`` random values assigned to a secret's name."""
    known_forms = [
        detection
        for detection in _find_forms(document.text)
        if document.text[detection.start : detection.end] not in ignored
    ]
    yield from known_forms
    if assignments:
        known_starts = {detection.start for detection in known_forms}
        for detection in _find_assigned(document.text):
            # A key of a known form that is assigned to a name is one finding, not two.
            if detection.start not in known_starts and document.text[detection.start : detection.end] not in ignored:
                yield detection


def _find_forms(text: str) -> Iterator[Detection]:
    """Yield all known forms in a text; of several that begin at the same place, only the first of ``FORMS``."""
    pattern_set, patterns = _compile_forms()
    starts: set[int] = set()
    # One pass says which forms occur at all; in nearly every content none does.
    for index in sorted(pattern_set.Match(text) or ()):
        for match in patterns[index].finditer(text):
            if match.start() not in starts:
                starts.add(match.start())
                yield Detection(kind=FORMS[index][0], start=match.start(), end=match.end())


def _find_assigned(text: str) -> Iterator[Detection]:
    for match in _compile_assignment().finditer(text):
        if _looks_random(match.group(1)):
            yield Detection(kind="secret value", start=match.start(1), end=match.end(1))


def _looks_random(value: str) -> bool:
    """Return whether a value has letters and digits without the repetitions of language, and is no placeholder."""
    lower = value[:200].lower()
    if value.startswith("$") or "://" in value or any(word in lower for word in _PLACEHOLDERS):
        return False
    has_letters_and_digits = sum(map(str.isdigit, lower)) >= 2 and sum(map(str.isalpha, lower)) >= 3
    return has_letters_and_digits and _measure_entropy(value[:200]) >= LEAST_ENTROPY


def _measure_entropy(text: str) -> float:
    """Measure Shannon's entropy of a text's characters, in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


@lru_cache(maxsize=1)
def _compile_forms() -> tuple[Any, list[Any]]:
    """Compile the forms of secrets: a set that finds which of them occur, and the pattern of each."""
    import re2

    pattern_set = re2.Set.SearchSet()
    for _, pattern in FORMS:
        pattern_set.Add(pattern)
    pattern_set.Compile()
    return pattern_set, [re2.compile(pattern) for _, pattern in FORMS]


@lru_cache(maxsize=1)
def _compile_assignment() -> Any:
    import re2

    return re2.compile(_ASSIGNMENT)
