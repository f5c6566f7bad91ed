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
    # With a metaclass of its own, pydoc would show the descriptor itself and not its text.
    if type(kind) is type and isinstance(text, str) and kind.__module__.startswith("adjudge."):
        type.__setattr__(kind, "__doc__", _LazyDocstring(kind, text))


class _LazyDocstring:
    """The ``__doc__`` of a class: a descriptor that builds the text when it is read for the first time."""

    __slots__ = ("_is_made", "_kind", "_text")

    def __init__(self, kind: type[object], text: str) -> None:
        self._kind, self._text, self._is_made = kind, text, False

    def __get__(self, instance: object, owner: type[object]) -> str:
        """Return the docstring, built at the first read and kept."""
        if not self._is_made:
            self._text, self._is_made = _build_docstring(self._kind, self._text), True
        return self._text


def _build_docstring(kind: type[object], text: str) -> str:
    """Return the docstring of a class, with a section ``Args:`` for its parameters added if there is none yet."""
    import inspect

    text = inspect.cleandoc(text)
    if _HEADING in text:
        return text
    names = inspect.signature(kind).parameters
    # The class itself comes last, so that its docstring of a field replaces that of a parent.
    meanings = {name: meaning for parent in reversed(kind.__mro__) for name, meaning in _read_fields(parent)}
    section = "\n".join(_format_parameter(name, meanings[name]) for name in names if name in meanings)
    return text + _HEADING + section if section else text + _find_inherited_section(kind)


def _read_fields(kind: type[object]) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each field that a class of this package declares itself.

    The docstring of a field is the string below it, which Python does not keep: it is read from the source code. Yields
    nothing for other classes, and where the source code is not available.
    """
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
    for statement, next_statement in itertools.pairwise(members):
        match statement, next_statement:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                yield name, meaning


def _format_parameter(name: str, meaning: str) -> str:
    """Return one entry of a section ``Args:``, indented and wrapped as in the docstrings of the source."""
    import textwrap

    text = f"{name}: {' '.join(meaning.split())}"
    return textwrap.fill(text, 120, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False)


def _find_inherited_section(kind: type[object]) -> str:
    """Return the section ``Args:`` of the nearest parent that has one, with its heading; empty if none has.

    An exception class without parameters of its own has those of its parent.
    """
    import inspect

    for parent in kind.__mro__[1:-1]:  # without the class itself and ``object``
        text = inspect.getdoc(parent) or ""
        if _HEADING in text:
            return _HEADING + text.partition(_HEADING)[2]
    return ""
