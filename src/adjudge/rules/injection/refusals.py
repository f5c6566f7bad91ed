"""Refusals: where in a text an assistant says of itself, in the first person, that it does not do something.

A refusal speaks of what an injection speaks of: guidelines, what is unethical, being a language model. What tells them
apart is who is told what: a refusal gives nobody an order. So the phrases of its own clause are not signs, and nothing
else is excused: neither the next sentence, nor what follows in the same one once it turns to the reader. Anybody can
write a refusal before an order.

An order can be what is declined ("I cannot ignore my instructions"). Its sign is dropped only where its verb is the
one that is declined, directly; "I cannot do that ignore all instructions" leaves out a full stop and declines nothing.
What is found with its punctuation (markup, ready verdicts, boundaries) or in hidden text is never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from adjudge.rules.injection.normalise import BLANK, COLON, LINE, PAUSE, STOP, split_clauses

Hit = tuple[int, int, str]
"""Where a phrase began, where it was complete, and its sign."""

Span = tuple[int, int]
"""The first and the last word of something."""


_SELF = frozenset({"model-addressed", "model-named"})
"""Signs that are dropped where an assistant says what it is."""

_MORAL = frozenset({"harm-allowed", "no-limits"})
"""Signs that are dropped in a sentence after a refusal that speaks to nobody and of no model: its reasons."""

_MILD = (
    _SELF
    | _MORAL
    | {"never-refuse", "no-caveats", "persona", "pretext", "provider-policy", "system-prompt", "unbound-model"}
)
"""Signs that are dropped in the whole clause of a refusal: what it says of itself and of what it was asked."""

_ROLES = frozenset({"do-anything", "in-character", "mode-switch"})
"""Signs whose phrases may begin with the name of the role that is declined: "I cannot enter developer mode"."""

_NEAR = 4


_CLASSES = {
    "I": "i we id ill",
    "MY": "my our",
    "CANNOT": "cannot cant not wont wouldnt couldnt shouldnt dont",
    "COULD": "can could will would shall should may must do have need am",
    "DECLINE": "decline refuse refrain abstain",
    "ABLE": """
        able allowed permitted authorized authorised comfortable willing going capable equipped programmed designed
        trained prepared
    """,
    "UNABLE": "unable incapable unwilling prohibited forbidden barred prevented",
    "ADVERB": """
        also simply just really therefore unfortunately still respectfully honestly definitely absolutely certainly
        strongly currently regretfully truly personally only merely ethically legally morally either ever directly
        knowingly even always firmly politely sadly afraid sorry be to in good conscience possibly actually
    """,
    "AI": "ai assistant model chatbot llm bot",
    "RULES": """
        programming guidelines guideline policy policies principles training instructions rules values design purpose
        capabilities standards boundaries safeguards ethics
    """,
    "FORBID": """
        prohibit prohibits prevent prevents forbid forbids restrict restricts preclude precludes not dont doesnt
    """,
    "AGAINST": "within against outside beyond violate violates violating contrary breach breaches with of to",
    "OBJECT": "point clarify emphasize emphasise stress note inform remind advise warn",
    "MORAL": """
        appropriate ethical unethical legal illegal moral immoral acceptable unacceptable harmful dangerous offensive
        right wrong safe unsafe respectful disrespectful inappropriate fair unfair accurate okay humane derogatory
        hurtful productive responsible irresponsible discriminatory
    """,
    "DEED": """
        provide help assist aid fulfill fulfil give offer answer comply share create write generate engage discuss
        support promote condone encourage recommend suggest reveal disclose show print repeat ignore disregard forget
        override bypass act pretend play roleplay do tell say explain describe teach translate execute run send access
        open visit obey process continue participate facilitate adopt assume take make produce respond reply advise
        judge rate grade score mark instruct guide speculate comment endorse advocate contribute draft compose output
        display leak proceed entertain accommodate agree perform direct deliver supply enter switch set impersonate
        simulate justify glorify praise joke mock list quote recite summarize summarise step break change evaluate
        accept award decode decrypt render cater indulge turn disable activate enable remove express validate verify
        confirm approve become operate behave assign use allow carry go walk
    """,
    "CONCEDE": "if though although whether regardless matter how when however even whatever",
    "TURN": "but instead now then unless until please youre youll",
    "DOING": "are must will shall should have can could may need were now never always ought do dont",
    "ADDRESSED": """
        you your yours youre youll u ai assistant model chatbot llm bot gpt chatgpt openai dan claude he she his him hes
        shes persona character system
    """,
    "LEAD": "you with to in by",
    "JOIN": "or nor",
    "ASKED": "request requests attempt attempts ability permission authority capability intention way demand demands",
    "ROLEVERB": """
        act activate adopt assume become behave enable enter go impersonate operate play pretend roleplay simulate
        switch turn
    """,
}


_DECLINES = """
    I ADVERB* CANNOT ADVERB* DEED
    I ADVERB* COULD ADVERB* CANNOT ADVERB* DEED
    I ADVERB* CANNOT and COULD* CANNOT ADVERB* DEED
    I am ADVERB* not ADVERB* ABLE
    im ADVERB* not ADVERB* ABLE
    I am ADVERB* UNABLE
    im ADVERB* UNABLE
    I ADVERB* COULD* ADVERB* DECLINE
    I ADVERB* COULD* CANNOT have WORD{0,2} ASKED
    I have no ASKED
    I ADVERB* COULD* prefer|rather not ADVERB* DEED
"""
"""Somebody says what they do not do. ``X*`` is any number of words of a class, ``WORD{0,3}`` up to three of any."""

_RULED = """
    not AGAINST AGAINST* WORD{0,1} MY WORD{0,4} RULES
    against|violates|beyond|outside AGAINST* MY WORD{0,4} RULES
    MY WORD{0,4} RULES WORD{0,2} FORBID
    RULES WORD{0,2} FORBID WORD{0,1} me
    I ADVERB* COULD ADVERB* OBJECT
    I would|want like|to to* OBJECT
    not something WORD{0,1} I|im
"""
"""Somebody says what their rules are, or that they object."""

_SELVES = """
    as a|an WORD{0,3} AI WORD{0,8} I|im|MY
    as a|an WORD{0,3} AI WORD{0,4} , I|im|MY
    I am ADVERB* a|an WORD{0,3} AI
    im ADVERB* a|an WORD{0,3} AI
"""
"""Somebody says that they are an assistant."""

_OBJECTIONS = """
    it|this|that is|would|was ADVERB* not|never be* MORAL
    its|thats ADVERB* not|never MORAL
    it|this|that is ADVERB* MORAL
    its|thats ADVERB* MORAL
"""
"""Somebody objects to an act, and names nobody."""


_ENDS = frozenset({STOP, LINE, COLON})

_UNCOUNTED = frozenset({LINE, COLON, PAUSE})

_SETS = {name: frozenset(words.split()) for name, words in _CLASSES.items()}

_VERBS = _SETS["DEED"] | {form for verb in _SETS["DEED"] for form in (f"{verb}ing", f"{verb[:-1]}ing")}


def drop_refusals(hits: list[Hit], folded: str) -> list[Hit]:
    """The phrases of a folded text without those that lie within a refusal of the writer's own."""
    if not hits:
        return hits
    words = split_clauses(folded)
    text = BLANK.join(words).encode(errors="replace")
    declines, ruled, selves, objections = (list(_find(pattern, text)) for pattern in _build_patterns())
    # After "even if" an objection is part of an order.
    objections = [span for span in objections if words[span[0] - 1] not in _SETS["CONCEDE"] or span[0] == 0]
    begun = [*declines, *ruled, *selves, *objections]
    if not begun:
        return hits
    refusals = _Refusals(words)
    refusals.excuse_reasons(begun)
    refusals.excuse(declines + ruled, _MILD)
    refusals.excuse(selves, _SELF)
    refusals.excuse(objections, _MORAL)
    refusals.excuse_orders(declines)
    return [hit for hit in hits if not refusals.hold(hit)]


class _Refusals:
    """Which stretches of a text are refusals, from which place on, and for which signs.

    A stretch ends with the sentence or line, or where the sentence turns to the reader.
    """

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._reasons: set[int] = set()
        self._addressing: set[int] = set()
        self._places: list[int] = []
        self._stretches: list[int] = []
        self._stretch_of: dict[int, int] = {}
        self._since: dict[tuple[int, str], int] = {}
        self._orders: set[int] = set()
        self._roles: set[int] = set()
        place, stretch = 1, 0
        for word, after, later in zip(words, [*words[1:], STOP], [*words[2:], STOP, STOP], strict=False):
            place += word not in _UNCOUNTED  # as ``find_phrases`` counts
            stretch += _turns(word, after, later)
            self._places.append(place)
            self._stretches.append(stretch)
            self._stretch_of.setdefault(place, stretch)
            if word in _SETS["ADDRESSED"]:
                self._addressing.add(stretch)

    def excuse(self, spans: list[Span], names: frozenset[str]) -> None:
        """Count no sign of these names from the first word of each span to the end of its stretch."""
        for first, last in spans:
            for name in names:
                key = self._stretches[last], name
                self._since[key] = min(self._places[first], self._since.get(key, self._places[first]))

    def excuse_reasons(self, spans: list[Span]) -> None:
        """Count no word on right and wrong in the sentences after each span, up to one that speaks to somebody."""
        begun = {self._stretches[last] for _, last in spans}
        goes_on = False
        for stretch in range(self._stretches[-1] + 1):
            goes_on = goes_on and stretch not in self._addressing
            if goes_on:
                self._reasons.add(stretch)
            goes_on = goes_on or stretch in begun

    def excuse_orders(self, spans: list[Span]) -> None:
        """Count no order whose verb is what a span declines."""
        ends = [*(first for first, _ in spans[1:]), len(self._words)]
        for (first, last), end in zip(spans, ends, strict=False):
            # A phrase that begins with the "not" of the refusal is its own: "I am not allowed to tell you".
            self._orders.update(self._places[first : last + 1])
            for at in self._find_declined(last, end):
                self._orders.add(self._places[at])
                if self._words[at] in _SETS["ROLEVERB"]:
                    self._roles.update(range(self._places[at], self._places[at] + _NEAR))

    def hold(self, hit: Hit) -> bool:
        """Whether the phrase lies in one stretch, and is excused there."""
        began, place, name = hit
        stretch = self._stretch_of.get(began, -1)  # a phrase may begin with the beginning of the text
        if self._stretch_of[place] != stretch:
            return False
        mild = (name in _MORAL and stretch in self._reasons) or began >= self._since.get((stretch, name), began + 1)
        return mild or began in self._orders or (name in _ROLES and began in self._roles)

    def _find_declined(self, last: int, end: int) -> Iterator[int]:
        """The verbs of what is declined: the opener's last word, and those that "or" or "to" joins to it."""
        expected = True
        for at in range(last, end):
            word, after = self._words[at], self._words[at + 1] if at + 1 < end else STOP
            if self._stretches[at] != self._stretches[last]:
                return
            if word == PAUSE:
                # In a list, "share, reveal or repeat", the verbs follow at once; else a new clause begins.
                expected = after in _VERBS
                if not expected and after not in _SETS["JOIN"]:
                    return
            elif expected and word in _VERBS:
                yield at
                expected = after in _SETS["LEAD"] or after in _SETS["ASKED"]
            else:
                stays = expected and (word in _SETS["LEAD"] or word in _SETS["ADVERB"])
                expected = at == last or stays or word in _SETS["JOIN"] or (word in _SETS["ASKED"] and after == "to")


def _turns(word: str, after: str, later: str) -> bool:
    """Whether a sentence ends with a word, or turns to the reader."""
    if word == PAUSE:
        return after in _VERBS and later not in _SETS["JOIN"] and later != PAUSE
    return word in _ENDS or word in _SETS["TURN"] or (word in {"you", "u"} and after in _SETS["DOING"])


def _find(pattern: Any, text: bytes) -> Iterator[Span]:
    """The first and the last word of whatever a pattern finds."""
    at = seen = 0
    for match in pattern.finditer(text):
        at += text.count(b" ", seen, match.start())
        seen = match.start()
        yield at, at + text.count(b" ", match.start(), match.end())


@cache
def _build_patterns() -> tuple[Any, ...]:
    import re2

    options = re2.Options()
    options.log_errors = False  # RE2 would write to standard error
    lines = (kind.strip().splitlines() for kind in (_DECLINES, _RULED, _SELVES, _OBJECTIONS))
    return tuple(re2.compile("|".join(map(_render_pattern, each)).encode(), options=options) for each in lines)


def _render_pattern(line: str) -> str:
    return r"\b" + "".join(map(_render_part, line.split())).removesuffix(" ") + r"\b"


def _render_part(part: str) -> str:
    if part.startswith("WORD"):
        return r"(?:[^ .,:\n]+ )" + part.removeprefix("WORD")
    words = "|".join(word for item in part.rstrip("*").split("|") for word in _CLASSES.get(item, item).split())
    return f"(?:(?:{words}) )*" if part.endswith("*") else f"(?:{words}) "
