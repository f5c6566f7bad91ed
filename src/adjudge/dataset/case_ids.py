"""The ids that were made from contents: cases of the same content are told apart, and ids are shortened for readers.

The id of a case that has none in its data set is made in ``case.py`` (``make_id``).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from adjudge.content import content_text, digest_text
from adjudge.dataset.case import Case, make_id

FEWEST_NAMED = 12
"""Characters of a digest that a table shows, and the fewest of an id by which a command finds a case."""

DIGEST = re.compile(r"(?P<digest>[0-9a-f]{64})(?P<repeat>-[0-9]+)?")
"""An id that was made from a content, with the number of a repeat."""


def shorten_case_id(name: str) -> str:
    """Shorten the id of a case for a reader: of a digest 12 characters, with which a command finds it."""
    match = DIGEST.fullmatch(name)
    return name if match is None else f"{match['digest'][:FEWEST_NAMED]}{match['repeat'] or ''}"


class CaseIds:
    """The ids met while a data set is read once, so that cases with the same content get different ids.

    It holds 8 bytes of the digest of each content, in some 80 bytes of memory.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        """The first 8 bytes of the digests so far."""
        self._repeats: Counter[str] = Counter()
        """The number of cases so far that got an id of this beginning because their content was repeated."""

    def separate(self, case: Case) -> Case:
        """Return the case; under another id if its id is the digest of a content that an earlier case has, too.

        The other id is the digest of content, task, reference and context, so that it does not depend on which cases
        stand between the two. Cases in which these are the same are numbered: ``-2``, ``-3``. Labels and metadata do
        not count, because they are corrected later.
        """
        # A case made by a program may have an id that is no text; that is refused elsewhere.
        if not isinstance(case.id, str) or len(case.id) != 64 or DIGEST.fullmatch(case.id) is None:
            return case
        beginning = int(case.id[:16], 16)
        if beginning not in self._seen:
            self._seen.add(beginning)
            return case
        if case.id != make_id(case.content):
            return case  # given by somebody; a repeated one is refused elsewhere
        parts = [case.task, case.reference, case.context]
        if parts == [None, None, None]:
            name, earlier = case.id, 1  # the first case of this content has the id without a number
        else:
            name, earlier = digest_text(content_text([case.id, *parts])), 0
        self._repeats[name] += 1
        number = earlier + self._repeats[name]
        return replace(case, id=name if number == 1 else f"{name}-{number}")
