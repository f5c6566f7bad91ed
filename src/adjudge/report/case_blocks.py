"""The blocks of a case that a page shows when it is opened: its judgements and its texts."""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.report.cases import ShownCase, cut
from adjudge.report.document import Block, Excerpt, Heading, Judgement, Paragraph, Words

TEXTS = ("task", "content", "reference", "context")
"""The texts of a case, in the order in which they are read."""

_LONGEST = 160
"""Characters of a text in a table."""


def describe_case(task: str, content: str) -> Words:
    """Describe a case in a table by the first words of its task, or of its content where it has no task."""
    return Words(text=cut(task or content, _LONGEST), kind="quoted")


def name_sort(sort: str) -> str:
    """Name the sort of a disagreement as one word, for the page's script."""
    return sort.replace(" ", "-")


def list_judgements(case: ShownCase) -> Iterator[Block]:
    """Yield every judgement of a case that is shown, and how many there are."""
    for number, result in enumerate(case.results, 1):
        if case.judgements > 1:
            yield Heading(text=f"Judgement {number} of {case.judgements}")
        yield Judgement(result=result)
    if case.judgements > len(case.results):
        yield Paragraph(text=f"{len(case.results)} of {case.judgements} judgements, the worst first.", quiet=True)


def list_texts(case: ShownCase) -> Iterator[Block]:
    """Yield every text that a case has."""
    for name in TEXTS:
        if text := getattr(case, name):
            yield Excerpt(title=name.capitalize(), text=text)
