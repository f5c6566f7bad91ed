"""What a test asks with: the ``judge`` fixture."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from adjudge import AdjudgeError, Judge, JudgeChain, JudgeResult, JudgmentFailed, Question, Rubric, UsageError
from adjudge._asking import Asking, RubricSource
from adjudge._suite._explain import explain
from adjudge._suite._tape import Tape
from adjudge._sync import run_sync

Chosen = tuple[Judge | JudgeChain, Rubric | None]
Choose = Callable[[Any, RubricSource | None, dict[str, Any]], Chosen]
"""From the judge, the rubric and the other arguments of a call (from which it takes ``model``) to who is asked."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TestJudge:
    """The judge of one test, and what it was asked there.

    ``await judge(content, rubric=...)`` in a test with an event loop, ``judge.evaluate_sync(content, rubric=...)`` in
    one without. It has a ``name`` and ``ask``, so gates and chains take it as a judge.
    """

    __test__ = False  # pytest would collect the class by its name

    test: str
    """The id of the test."""
    choose: Choose
    tape: Tape
    again: str
    """The command that runs this test."""
    results: list[JudgeResult] = field(default_factory=list)
    concluded: bool = False
    """Whether what a marked test returned was judged, as often as its mark says, and enough passed."""
    _pending: list[Pending] = field(default_factory=list)
    _swallowed: str = ""

    @property
    def name(self) -> str:
        """The name of the suite's judge."""
        return self.choose(None, None, {})[0].name

    def __call__(
        self, content: object, rubric: RubricSource | None = None, *, judge: Any = None, **how: Unpack[Asking]
    ) -> Pending:
        """Judge some content; the result is there once this is awaited.

        The arguments are those of ``Judge.evaluate``; ``judge`` is asked instead of the suite's. With
        ``throw_on_fail=True`` a ``JudgmentFailed`` says criterion by criterion why.
        """
        pending = Pending(lambda: self.evaluate(content, rubric, judge=judge, **how))
        self._pending.append(pending)
        return pending

    async def evaluate(
        self, content: object, rubric: RubricSource | None = None, *, judge: Any = None, **how: Unpack[Asking]
    ) -> JudgeResult:
        """The same as a plain coroutine."""
        __tracebackhide__ = True
        options: dict[str, Any] = dict(how)
        throw = options.pop("throw_on_fail", False)
        chosen, found = self.choose(judge, rubric, options)
        result = self._note(await self.tape.thread(chosen).evaluate(content, found, **options))
        if throw and not result.passed:
            error = JudgmentFailed(result)
            error.add_note(explain(result, self.again))
            raise error
        return result

    def evaluate_sync(
        self, content: object, rubric: RubricSource | None = None, *, judge: Any = None, **how: Unpack[Asking]
    ) -> JudgeResult:
        """The same for a test without an event loop; in one with, it blocks the loop."""
        __tracebackhide__ = True
        try:
            return run_sync(self.evaluate(content, rubric, judge=judge, **how))
        except AdjudgeError as error:
            # The frames between are of a loop's thread and tell a reader of the test's report nothing.
            raise error.with_traceback(None) from None

    async def ask(self, question: Question | str, /) -> JudgeResult:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        if isinstance(question, Question) and question.model is not None:
            # As with a rubric's model in ``choose``: it would be asked past the recording.
            question = replace(question, model=None)
        result = await self.tape.thread(self.choose(None, None, {})[0]).ask(question)
        # A gate or a chain takes what is raised here for a seat that broke, so the end of the test says it again.
        self._swallowed = self._swallowed or self.tape.find_miss()
        return self._note(result)

    def ask_sync(self, question: Question | str, /) -> JudgeResult:
        """``ask`` for a test without an event loop."""
        return run_sync(self.ask(question))

    def close(self) -> str:
        """End the test: keep its recording; raises ``UsageError`` for a judgement never awaited, or not recorded.

        Returns a sentence for the summary when the recording was not kept, else nothing.
        """
        said = self.tape.close()
        # Such a test asked nothing and would be green for ever.
        if any(not item.begun for item in self._pending):
            raise UsageError("judge(...) was called and never awaited; await it, or use judge.evaluate_sync(...)")
        if self._swallowed:
            raise UsageError(self._swallowed)
        return said

    def __repr__(self) -> str:
        return f"<the judge of {self.test}>"

    def _note(self, result: JudgeResult) -> JudgeResult:
        __tracebackhide__ = True
        self.results.append(result)
        self.tape.note(result)
        return result


class Pending(Coroutine[Any, Any, JudgeResult]):
    """A judgement that is made when it is awaited, and is neither true nor a result before."""

    __slots__ = ("_make", "_work")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, JudgeResult]]) -> None:
        self._make = make
        self._work: Coroutine[Any, Any, JudgeResult] | None = None

    @property
    def begun(self) -> bool:
        """Whether somebody awaited it."""
        return self._work is not None

    def __await__(self) -> Generator[Any, Any, JudgeResult]:
        return self._begin().__await__()

    def send(self, value: Any, /) -> Any:
        """Go on, as a coroutine does."""
        return self._begin().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise inside, as a coroutine does."""
        return self._begin().throw(*error)

    def close(self) -> None:
        """Give up, as a coroutine does."""
        if self._work is not None:
            self._work.close()

    def __bool__(self) -> bool:
        # Every other object is true, and `assert judge(...)` would pass whatever the content.
        raise UsageError("judge(...) was not awaited; await it, or use judge.evaluate_sync(...)")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"judge(...) has no {name!r} before it is awaited; await it, or use judge.evaluate_sync")

    def _begin(self) -> Coroutine[Any, Any, JudgeResult]:
        if self._work is None:
            self._work = self._make()
        return self._work
