"""A judge as a scorer of Inspect (``inspect-ai``), by a rubric, and a guard as an approver of its agents' calls.

A judgement that is undecided gives no number. Inspect calls such a sample *unscored*: its value is NaN, metrics and
reducers leave it out, and the log counts it in ``unscored_samples``.

A call that waits for people waits inside its approver: Inspect keeps nothing that it could go on with later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_seconds
from adjudge.formats.text import clean, show
from adjudge.guards.tool_guard.call import ToolCall, shorten_id
from adjudge.guards.tool_guard.guard import NOT_CHECKED, ToolGuard
from adjudge.hooks import logger
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import find_judge
from adjudge.result import JudgeResult
from adjudge.rules.ruleset import AnyRule
from adjudge.runs.judging import Assignment, resolve_contents

try:
    from inspect_ai.approval import Approval, Approver, approver
    from inspect_ai.model import ChatMessage
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer, stderr
    from inspect_ai.solver import TaskState
    from inspect_ai.tool import ToolCall as InspectCall
    from inspect_ai.tool import ToolCallView
except ModuleNotFoundError as error:
    if error.name != "inspect_ai":  # it is installed, and lacks something of its own
        raise
    message = "adjudge.integrations.inspect_ai needs inspect-ai; to have it, pip install inspect-ai"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["ScoreValue", "guard_approver", "judge_scorer"]

ScoreValue = Literal["score", "outcome"]


# ---------------------------------------------------------------- a scorer


@scorer(metrics=[accuracy(), stderr()])
def judge_scorer(
    judge: JudgeLike | ModelSource | None = None,
    *,
    rubric: RubricSource | None = None,
    criteria: str | Sequence[str] | Mapping[str, str] | None = None,
    threshold: float | None = None,
    rules: Sequence[AnyRule] = (),
    instructions: str | None = None,
    value: ScoreValue = "score",
    use_input: bool = True,
    use_target: bool = True,
) -> Scorer:
    """Score the completion of a sample with a judge, by a rubric or by criteria.

    The completion is the content, the sample's input the ``task``, its target the ``reference``: all three reach the
    judge as fenced data. The score's ``explanation`` is the outcome in one line and the judge's reasoning. Its
    ``metadata`` holds ``outcome``, ``undecided_because``, ``decided_by``, ``score``, ``threshold``, ``criteria`` (name
    to score), ``judge``, ``model`` and ``result_id``. The sample's id is the result's ``metadata["case"]``, which also
    selects recorded replies.

    An undecided judgement is ``Score.unscored``: NaN, never a pass and never 0. Its ``reason`` is ``grader_failed``,
    or ``scoring_failed`` where the completion could not be put to the judge (a NUL character, too long). Look at
    ``unscored_samples`` in the log beside every metric, since metrics are computed without these samples.

    Raises ``UsageError`` for arguments that cannot be; one that shows only when a question is put together (no API
    key, no rubric) is raised from the first sample, and Inspect then ends the evaluation as it does for every error.

    Args:
        judge: A judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model; without
            one, what ``ADJUDGE_JUDGE`` names, read when the scorer is made.
        rubric: A ``Rubric``, the path of one, or a shipped name; by default the judge's own.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        threshold: The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1.
        rules: Checks in code that run first; a failed ``error`` rule decides before a model is asked.
        instructions: More instructions, which the judge obeys; never put content here.
        value: ``score`` gives the number in 0 to 1, so that ``accuracy`` is the mean score; where a judgement has an
            outcome and no number, it is 1.0 for passed and 0.0 for failed. ``outcome`` gives ``C`` for passed and
            ``I`` for failed, so that ``accuracy`` is the share that passed.
        use_input: Whether the judge sees the sample's input.
        use_target: Whether the judge sees the sample's target.
    """
    check_choice("value", value, get_args(ScoreValue))
    check_flag("use_input", use_input)
    check_flag("use_target", use_target)
    opened_judge = find_judge(judge)
    options: EvaluateArguments = {
        "criteria": criteria,
        "threshold": threshold,
        "rules": rules,
        "instructions": instructions,
    }
    assignment: Assignment | None = None

    async def score(state: TaskState, target: Target) -> Score:
        """Judge the completion of one sample, and make its score."""
        nonlocal assignment
        if assignment is None:
            # Made with the first sample: only then an event loop runs. Two samples at once may both make one; the two
            # are equal.
            assignment = await resolve_contents(opened_judge, rubric, options)
        task = _read_input(state) if use_input else None
        case = Case(
            id=str(state.sample_id),
            content=state.output.completion,
            task=task,
            reference=_read_target(target) if use_target else None,
        )
        result = await assignment.judge_case(case, sample=0)
        if not isinstance(result, JudgeResult):
            raise UsageError(
                f"a scorer needs a result about one content, got {type(result).__name__}", argument="result"
            )
        return _make_score(result, state.output.completion, value)

    return score


def _read_input(state: TaskState) -> str | None:
    """Read the input of a sample as text; ``None`` if it is empty or has no user message."""
    try:
        return state.input_text or None
    except ValueError:  # a conversation without a message of the user
        return None


def _read_target(target: Target) -> str | list[str] | None:
    """Read the target as one text, or as a list if several are right; ``None`` if it is empty."""
    texts = [text for text in target if text]
    return texts[0] if len(texts) == 1 else texts or None


def _make_score(result: JudgeResult, answer: str, value: ScoreValue) -> Score:
    """Make the score of a result; an undecided one is unscored."""
    metadata = _describe(result)
    if result.undecided_because is not None:
        # Not 0 and not "I", because Inspect would count either as a wrong answer of the model under test.
        was_not_asked = result.undecided_because == "error" and result.attempts == 0
        return Score.unscored(
            reason="scoring_failed" if was_not_asked else "grader_failed",
            answer=answer,
            explanation=result.explain(),
            metadata=metadata,
        )
    return Score(
        value=_choose_value(result, value),
        answer=answer,
        explanation=_explain(result),
        metadata=metadata,
    )


def _choose_value(result: JudgeResult, value: ScoreValue) -> str | float:
    """Return the score's value: the number of the result, or its outcome, as ``value`` says."""
    if value == "outcome":
        return CORRECT if result.passed else INCORRECT
    if result.score is not None:
        return float(result.score)
    return 1.0 if result.passed else 0.0


def _explain(result: JudgeResult) -> str:
    """Write the outcome, the judge's reasoning, and that of each criterion."""
    parts = [
        result.explain(),
        result.reasoning,
        *[f"{criterion.name}: {criterion.reasoning}" for criterion in result.criteria],
    ]
    return clean("\n\n".join(filter(None, parts)))


def _describe(result: JudgeResult) -> dict[str, Any]:
    """Describe a result for the metadata of a score: outcome, scores, names and id, without any text of the judge."""
    return {
        "outcome": result.outcome,
        "undecided_because": result.undecided_because,
        "decided_by": result.decided_by,
        "score": result.score,
        "threshold": result.threshold,
        "criteria": {criterion.name: criterion.score for criterion in result.criteria},
        "judge": result.judge,
        "model": result.model,
        "result_id": result.id,
    }


# ---------------------------------------------------------------- an approver


@approver
def guard_approver(guard: ToolGuard, *, wait: float = 3600.0) -> Approver:
    """Approve the calls that a guard allows, and reject all others: ``ApprovalPolicy(guard_approver(guard), "*")``.

    A rejected call gives the model the guard's sentence. If people have to decide, the call waits for them inside the
    approver; where nobody has answered after ``wait``, the model is told that the call waits, and with
    ``match="content"`` of the guard the same call passes once it is approved. Whatever goes wrong is a rejection.

    The sample is the run of the guard: ``EvalSample.uuid`` in the log. Outside of a sample every call is rejected. The
    log's ``ApprovalEvent`` has in its metadata the id of the guard's ``decision``, and ``because``.

    Inspect asks an approver before a call alone. So a guard with ``results`` is refused, and its ``answers`` and
    ``prompts`` are not asked.

    Raises ``UsageError`` for a guard that is none or has ``results``, and for a ``wait`` that is no time. Policy files
    cannot name this approver, because no text holds a guard: let them name a function of yours, with ``@approver``.

    Args:
        guard: The guard. Its patterns find tools by the names that the model calls, also those of MCP servers,
            ``submit``, and agents that are handed over to.
        wait: Seconds that a call may wait for people; 0 asks them, and waits for nobody.
    """
    # Inspect tells an approver its sample in no other way. Here, so that a version without it is noticed before a call.
    from inspect_ai.log._samples import sample_active

    if not isinstance(guard, ToolGuard):
        raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
    if guard.results is not None:
        raise UsageError(
            "guard has results, which an approver of Inspect never sees; make one without results for it",
            argument="guard",
        )
    if wait != 0:
        check_seconds("wait", wait)

    async def approve(
        message: str,  # noqa: ARG001 - Inspect's names, here and below
        call: InspectCall,
        view: ToolCallView,  # noqa: ARG001
        history: list[ChatMessage],  # noqa: ARG001
    ) -> Approval:
        """Answer a call; never with an exception, some of which Inspect would show to the model."""
        try:
            sample = sample_active()
            guard_call = _read_call(call, None if sample is None else sample.sample_uuid)
            verdict = await guard.wait(guard_call, seconds=wait)
        except Exception as error:  # noqa: BLE001 - what cannot be checked is not made
            logger.error("a call of %s could not be checked: %s", show(str(call.function)[:80]), type(error).__name__)
            return Approval(decision="reject", explanation=NOT_CHECKED)
        decision = None if verdict.decision is None else verdict.decision.id
        return Approval(
            decision="approve" if verdict else "reject",
            explanation=verdict.message or None,
            metadata={"decision": decision, "because": verdict.because},
        )

    return approve


def _read_call(call: InspectCall, sample: str | None) -> ToolCall:
    """Convert a call of Inspect to one for the guard. Raises ``UsageError`` outside of a sample."""
    if sample is None:
        # Ids of calls repeat in each sample, so without the sample's id an approval could be used in another sample.
        raise UsageError("a call is checked within a sample", argument="call")
    # The arguments are not copied. If something changes them while people decide, the guard sees another call, which
    # they did not approve.
    return ToolCall(call.function, call.arguments, shorten_id(call.id), sample)
