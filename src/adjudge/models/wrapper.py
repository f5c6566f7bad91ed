"""The shared part of models around other models: everything but the asking is the inner model's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from adjudge.errors import UsageError
from adjudge.models.function import as_model
from adjudge.models.model import FunctionIdentity, Model, Reply, Request, find_function


class WrapperModel:
    """A model around another one. What is built on it has its own ``complete`` and ``_make_around``."""

    def __init__(self, model: Model | Callable[..., Any]) -> None:
        self.model = as_model(model)
        """The model that is asked."""

    @property
    def name(self) -> str:
        """The model's own name: a replay is looked up under it."""
        return self.model.name

    @property
    def structured(self) -> bool:
        """True if the inner model honours ``Request.form``."""
        return bool(getattr(self.model, "structured", False))

    @property
    def max_input_characters(self) -> int:
        """The most characters of a question that the inner model takes."""
        return int(getattr(self.model, "max_input_characters", 1_000_000))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts the model can contact."""
        return tuple(getattr(self.model, "hosts", ()))

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """The identity that tells the model's answers from another's, besides its name; ``None`` is unknown."""
        return getattr(self.model, "identity", None)

    @property
    def function_identity(self) -> FunctionIdentity | None:
        """The identity of the judge in code that would answer; ``None`` for a model."""
        return find_function(self.model)

    def named(self, name: str) -> Self:
        """Another model of the same provider, behind the same layers. Raises ``UsageError``.

        Args:
            name: The name of the other model.
        """
        open_other_model = getattr(self.model, "named", None)
        if open_other_model is None:
            raise UsageError(f"{self.name} has no other models, so {name!r} cannot be asked of it")
        return self._make_around(open_other_model(name))

    def around(self, model: Model) -> Model:
        """The same layers around another model.

        A rubric or a call may name a model of another provider. It must not be asked past a budget or a recording.

        Args:
            model: The other model.
        """
        wrap = getattr(self.model, "around", None)
        # The layers inside this one are put around the other model first.
        return self._make_around(model if wrap is None else wrap(model))

    async def complete(self, request: Request, /) -> Reply:
        """The model's reply.

        Args:
            request: The request that a judge makes.
        """
        return await self.model.complete(request)

    def compare_names(self, reply: Reply) -> Reply:
        """The reply with the name that the model was asked by, where it has one.

        Args:
            reply: The reply of the wrapped model.
        """
        compare: Callable[[Reply], Reply] | None = getattr(self.model, "compare_names", None)
        return reply if compare is None else compare(reply)

    def check(self) -> None:
        """Raise ``UsageError`` for what the model's own ``check`` finds."""
        check = getattr(self.model, "check", None)
        if check is not None:
            check()

    async def aclose(self) -> None:
        """Close the model's connections."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _make_around(self, model: Model) -> Self:
        """Make the same layer around another model."""
        raise NotImplementedError


def find_innermost(model: Model) -> Model:
    """Return the model inside all wrappers."""
    while isinstance(model, WrapperModel):
        model = model.model
    return model
