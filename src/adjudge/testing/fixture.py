"""The ``judge`` fixture: ``TestJudge``, which judges content in a test, and ``Suite``, which chooses judge and rubric.

Recording and replaying is in ``cassette.py``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import EvaluateArguments, RubricSource
from adjudge.judges.judge import Judge
from adjudge.judges.open import as_judge
from adjudge.judges.remedies import list_code_judges
from adjudge.models.open import open_model, resolve_model
from adjudge.question.question import Question
from adjudge.result import JudgeResult, JudgmentFailed
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric
from adjudge.sync import make_sync_method
from adjudge.testing.cassette import Cassette, Mode, name_file
from adjudge.testing.summary import explain, show_content

Chosen = tuple[Judge | JudgeChain, Rubric | None]

Choose = Callable[[Any, RubricSource | None, dict[str, Any]], Chosen]
"""Chooses the judge and the rubric from the ``judge``, the ``rubric`` and the other arguments of a call.

It removes ``model`` from the other arguments."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TestJudge:
    """The judge of one test, and its results there.

    ``await judge(content, rubric=...)`` in a test with an event loop, ``judge.evaluate_sync(content, rubric=...)`` in
    one without. It has a ``name`` and ``ask``, so gates and chains take it as a judge.
    """

    __test__ = False  # pytest would collect the class by its name

    test: str
    """The id of the test."""
    choose: Choose
    cassette: Cassette
    command: str
    """The command that runs this test."""
    results: list[JudgeResult] = field(default_factory=list)
    code_judges: set[str] = field(default_factory=set)
    """The names in results of the judges in code that were asked."""
    concluded: bool = False
    """True if what a marked test returned was judged, as often as its mark says, and enough passed."""
    _pending: list[Pending] = field(default_factory=list)
    _swallowed_error: str = ""

    @property
    def name(self) -> str:
        """The name of the suite's judge."""
        return self.choose(None, None, {})[0].name

    def __call__(
        self,
        content: object,
        rubric: RubricSource | None = None,
        *,
        judge: Any = None,
        **options: Unpack[EvaluateArguments],
    ) -> Pending:
        """Judge some content; the result is there once this is awaited.

        The arguments are those of ``Judge.evaluate``; ``judge`` is asked instead of the suite's. With
        ``throw_on_fail=True`` a ``JudgmentFailed`` says criterion by criterion why.
        """
        pending = Pending(lambda: self.evaluate(content, rubric, judge=judge, **options))
        self._pending.append(pending)
        return pending

    async def evaluate(
        self,
        content: object,
        rubric: RubricSource | None = None,
        *,
        judge: Any = None,
        **options: Unpack[EvaluateArguments],
    ) -> JudgeResult:
        """Do the same as a plain coroutine."""
        __tracebackhide__ = True
        arguments: dict[str, Any] = dict(options)
        throws_on_fail = arguments.pop("throw_on_fail", False)
        chosen_judge, chosen_rubric = self.choose(judge, rubric, arguments)
        self.code_judges |= list_code_judges(chosen_judge)
        result = self._note_result(
            await self.cassette.attach(chosen_judge).evaluate(content, chosen_rubric, **arguments)
        )
        if throws_on_fail and not result.passed:
            error = JudgmentFailed(result)
            error.add_note(explain(result, self.command, code_judges=self.code_judges))
            raise error
        return result

    evaluate_sync = make_sync_method(evaluate)

    def assert_passes(
        self,
        content: object,
        rubric: RubricSource | None = None,
        *,
        judge: Any = None,
        **options: Unpack[EvaluateArguments],
    ) -> JudgeResult:
        """Judge some content and raise ``AssertionError`` unless it passed; undecided is not a pass.

        Returns the result. The arguments are those of ``Judge.evaluate``. It works in a test with or without an event
        loop, and blocks the loop.
        """
        __tracebackhide__ = True
        options.pop("throw_on_fail", None)
        result = self.evaluate_sync(content, rubric, judge=judge, **options)
        if not result.passed:
            raise AssertionError(
                f"{explain(result, self.command, code_judges=self.code_judges)}\n{show_content(content)}"
            )
        return result

    async def ask(self, question: Question | str, /) -> JudgeResult:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        if isinstance(question, Question) and question.model is not None:
            # Like a rubric's model in ``choose``, the question's model would be asked without the recording.
            question = replace(question, model=None)
        result = await self.cassette.attach(self.choose(None, None, {})[0]).ask(question)
        # A gate or a chain would catch an error here as a failed seat, so ``close`` raises it again.
        self._swallowed_error = self._swallowed_error or self.cassette.explain_miss()
        return self._note_result(result)

    ask_sync = make_sync_method(ask)

    def close(self) -> str:
        """End the test: keep its recording; raises ``UsageError`` for a judgement never awaited, or not recorded.

        Returns a sentence for the summary when the recording was not kept, else nothing.
        """
        note = self.cassette.close()
        # Such a test judged nothing, so it could never fail.
        if any(not pending.begun for pending in self._pending):
            raise UsageError("judge(...) was called and never awaited; await it, or use judge.evaluate_sync(...)")
        if self._swallowed_error:
            raise UsageError(self._swallowed_error)
        return note

    def __repr__(self) -> str:
        return f"<the judge of {self.test}>"

    def _note_result(self, result: JudgeResult) -> JudgeResult:
        """Keep a result, count it in the cassette, and return it."""
        __tracebackhide__ = True
        self.results.append(result)
        self.cassette.note(result)
        return result


class Pending(Coroutine[Any, Any, JudgeResult]):
    """A judgement that is made when it is awaited, and is neither true nor a result before."""

    __slots__ = ("_make", "_work")

    def __init__(self, make: Callable[[], Coroutine[Any, Any, JudgeResult]]) -> None:
        self._make = make
        self._work: Coroutine[Any, Any, JudgeResult] | None = None

    @property
    def begun(self) -> bool:
        """Return whether it was awaited."""
        return self._work is not None

    def __await__(self) -> Generator[Any, Any, JudgeResult]:
        return self._begin_work().__await__()

    def send(self, value: Any, /) -> Any:
        """Go on, as a coroutine does."""
        return self._begin_work().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise inside, as a coroutine does."""
        return self._begin_work().throw(*error)

    def close(self) -> None:
        """Give up, as a coroutine does."""
        if self._work is not None:
            self._work.close()

    def __bool__(self) -> bool:
        # Without this it would be true like any object, and `assert judge(...)` would always pass.
        raise UsageError("judge(...) was not awaited; await it, or use judge.evaluate_sync(...)")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"judge(...) has no {name!r} before it is awaited; await it, or use judge.evaluate_sync")

    def _begin_work(self) -> Coroutine[Any, Any, JudgeResult]:
        """Return the coroutine that judges, which is made at first use."""
        if self._work is None:
            self._work = self._make()
        return self._work


_NO_JUDGE_MESSAGE = (
    "there is no judge: name a model with --judge, `judge` in pytest's configuration, [defaults] of adjudge.toml "
    "beside it or ADJUDGE_JUDGE, or replay a recording with --judge-replay"
)


@dataclass(slots=True, kw_only=True)
class Suite:
    """The options of one run of pytest that are about judging."""

    root: Path
    """pytest's root directory: ``adjudge.toml`` is read here, and nowhere else."""
    judge_names: tuple[str, ...]
    strategy: str | None
    mode: Mode
    folder: Path
    """The folder of the recordings."""
    options: tuple[str, ...] = ()
    """The options of the command line that choose the judge; a command that runs one test again has to repeat them."""
    named_in: Path | None = None
    """The folder of the file that names the judges; ``None``: the command line does."""
    open_panel: Callable[[tuple[str, ...], str | None, Path | None, Any], Judge | JudgeChain]
    read_config: Callable[[Path], Any]
    _config: Any = None
    _judges: dict[tuple[tuple[str, ...], Path | None], Judge | JudgeChain] = field(default_factory=dict)

    def begin(self, test: str, function: str, directory: Path) -> TestJudge:
        """Make the judge of one test."""
        # The options are repeated, because without --judge another judge would be asked, or none.
        command = shlex.join(["pytest", *(clean(part, keep_lines=False) for part in (test, *self.options))])
        file = self.folder / name_file(test, function)
        cassette = Cassette(
            mode=self.mode,
            file=file,
            record_command=f"{command} --judge-record",
            names_judge="--judge" in self.options,
        )
        choose = partial(self.choose, cassette, directory)
        mode = "" if self.mode == "live" else f" --judge-{self.mode}"
        return TestJudge(test=test, choose=choose, cassette=cassette, command=f"{command}{mode}")

    def choose(
        self, cassette: Cassette, directory: Path, judge: Any, rubric: RubricSource | None, options: dict[str, Any]
    ) -> Chosen:
        """Choose who answers a call, and about which rubric; a model among ``options`` is taken out of them.

        Raises ``UsageError`` when nobody is named.
        """
        __tracebackhide__ = True
        chosen_judge = self._open_for_call(judge) if judge is not None else self._open_named()
        chosen_rubric = self._find_rubric(rubric, options, directory, chosen_judge)
        model = options.pop("model", None)
        if model is not None:
            chosen_judge = _replace_model(chosen_judge, model)
        if chosen_judge is None and chosen_rubric is not None and chosen_rubric.model is not None:
            chosen_judge = Judge(open_model(chosen_rubric.model))
        needs_no_model = chosen_rubric is not None and all(criterion.rule for criterion in chosen_rubric.criteria)
        if chosen_judge is None and needs_no_model:
            chosen_judge = Judge("rules")
        if chosen_judge is None and cassette.mode == "replay":
            chosen_judge = cassette.replay_alone()
        if chosen_judge is None:
            raise UsageError(_NO_JUDGE_MESSAGE)
        if chosen_rubric is not None and chosen_rubric.model is not None:
            # The judge is chosen already. A rubric's model would replace its model, and be asked without the recording.
            chosen_rubric = replace(chosen_rubric, model=None)
        return chosen_judge, chosen_rubric

    def _open_for_call(self, judge: Any) -> Judge | JudgeChain | None:
        """Open the judge that a call names: a ``TestJudge`` is the suite's, a text a name, anything else a judge."""
        if isinstance(judge, TestJudge):
            return self._open_named()
        return self._open_panel((judge,), None, self.named_in) if isinstance(judge, str) else as_judge(judge)

    def _open_named(self) -> Judge | JudgeChain | None:
        """Open the judge of the command line, of adjudge.toml or of the environment, the first that names one.

        Raises ``UsageError``.
        """
        names = self.judge_names
        if self.strategy is not None and len(names) < 2:
            raise UsageError("--judge-strategy is for several --judge; name them, or use a judge of adjudge.toml")
        if not names and self.load_config().defaults.get("judge"):
            return self._open_panel((), None, self.named_in)
        spec = os.environ.get("ADJUDGE_JUDGE", "").strip()
        if not names and spec:
            if spec.startswith("python:"):
                raise UsageError(
                    f"ADJUDGE_JUDGE names {spec}, which runs code; name it with --judge or in adjudge.toml"
                )
            # The environment names it, so paths in the name start from no file's folder.
            return self._open_panel((spec,), self.strategy, None)
        return self._open_panel(names, self.strategy, self.named_in) if names else None

    def _open_panel(self, names: tuple[str, ...], strategy: str | None, named_in: Path | None) -> Judge | JudgeChain:
        """Open a judge by its names, once, so that all tests share its connections."""
        if (names, named_in) not in self._judges:
            self._judges[names, named_in] = self.open_panel(names, strategy, named_in, self.load_config())
        return self._judges[names, named_in]

    def _find_rubric(
        self, rubric: RubricSource | None, options: dict[str, Any], directory: Path, judge: Judge | JudgeChain | None
    ) -> Rubric | None:
        """Find the rubric of a call: its argument, else the default of the judge, else that of ``adjudge.toml``.

        Returns ``None`` if ``criteria`` or ``result_format`` take its place, or if there is none.
        """
        if rubric is None:
            if options.get("criteria") is not None or options.get("result_format") is not None:
                return None
            judge_rubric = judge._get_default_rubric() if judge is not None else None  # noqa: SLF001 - as ``evaluate`` itself finds it
            return judge_rubric if judge_rubric is not None else self.load_config().find_default_rubric()
        if isinstance(rubric, str) and rubric in self.load_config().rubrics:
            named_rubric: Rubric = self.load_config().find_rubric(rubric)
            return named_rubric
        return load_rubric(self._locate_rubric(rubric, directory))

    def _locate_rubric(self, rubric: RubricSource, directory: Path) -> RubricSource:
        """Find a relative path in the test's folder or the root directory: a suite runs from any working directory."""
        path = Path(rubric) if isinstance(rubric, os.PathLike | str) and "\x00" not in str(rubric) else None
        if path is None or not (path.suffix or len(path.parts) > 1):
            return rubric
        for base in (directory, self.root):
            if (base / path).is_file():
                return base / path
        return rubric

    def load_config(self) -> Any:
        """Read ``adjudge.toml`` of the root directory, once."""
        if self._config is None:
            self._config = self.read_config(self.root)
        return self._config


def _replace_model(judge: Judge | JudgeChain | None, model: str) -> Judge:
    """Replace the judge's model by the one that a call names. Raises ``UsageError``."""
    if judge is None:
        return Judge(open_model(model))
    if isinstance(judge, JudgeChain):
        raise UsageError(f"model {model!r} was given, and the suite's judge is the chain {judge.name!r}; leave it out")
    return judge.replace(model=resolve_model(model, judge.model), name="")
