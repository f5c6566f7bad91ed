"""The help of a public class: its docstring, and what its parameters mean.

A class with a written ``__init__`` explains its parameters in its docstring. A dataclass explains each field below the
field, where the reference and editors find it; Python keeps no such text, so ``help`` reads it from the source. That
happens when somebody looks, and costs nothing before.
"""

from __future__ import annotations

from collections.abc import Iterator

_HEADING = "\n\nArgs:\n"


def add_help(kind: type[object]) -> None:
    """Give a class of this package a ``__doc__`` that explains its parameters."""
    text = vars(kind).get("__doc__")
    # Where the metaclass is another, pydoc shows the class attribute itself.
    if type(kind) is type and isinstance(text, str) and kind.__module__.startswith("adjudge."):
        type.__setattr__(kind, "__doc__", _Help(kind, text))


class _Help:
    """The ``__doc__`` of a class, made the first time that it is read."""

    __slots__ = ("_is_made", "_kind", "_text")

    def __init__(self, kind: type[object], text: str) -> None:
        self._kind, self._text, self._is_made = kind, text, False

    def __get__(self, instance: object, owner: type[object]) -> str:
        if not self._is_made:
            self._text, self._is_made = _explain(self._kind, self._text), True
        return self._text


def _explain(kind: type[object], text: str) -> str:
    """Write the docstring of a class with its parameters, unless it has them already."""
    import inspect

    text = inspect.cleandoc(text)
    if _HEADING in text:
        return text
    names = inspect.signature(kind).parameters
    meanings = {name: meaning for parent in reversed(kind.__mro__) for name, meaning in _read_fields(parent)}
    section = "\n".join(_wrap(name, meanings[name]) for name in names if name in meanings)
    return text + _HEADING + section if section else text + _find_inherited(kind)


def _read_fields(kind: type[object]) -> Iterator[tuple[str, str]]:
    """Read the text below each field of a class of this package; none where its source is not at hand."""
    import ast
    import inspect
    import itertools
    import textwrap

    if not kind.__module__.startswith("adjudge."):
        return
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError):
        return
    members = body.body if isinstance(body, ast.ClassDef) else []
    for field, below in itertools.pairwise(members):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                yield name, meaning


def _wrap(name: str, meaning: str) -> str:
    """Write one parameter as the docstrings of the source do."""
    import textwrap

    text = f"{name}: {' '.join(meaning.split())}"
    return textwrap.fill(text, 120, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False)


def _find_inherited(kind: type[object]) -> str:
    """Find the parameters in the docstring of the nearest parent that explains them: an error has its parent's."""
    import inspect

    texts = (inspect.getdoc(parent) or "" for parent in kind.__mro__[1:-1])
    return next((_HEADING + text.partition(_HEADING)[2] for text in texts if _HEADING in text), "")
