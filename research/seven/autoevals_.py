"""The jobs of autoevals, a library of scorers: ``LLMClassifier`` judges one answer in a call, the loop is the user's.

Read for what it lacks: its README (on PyPI, 0.4.1) and every module of the package.
"""

from __future__ import annotations

from typing import Any

from autoevals import Battle, LLMClassifier, Score
from autoevals.json import ValidJSON
from openai import OpenAI

from seven.work import (
    BROKEN,
    CRITERION,
    DONE,
    FINE,
    NO_JSON,
    NONE,
    OWN,
    ROWS,
    RUDE,
    TASK,
    TIMEOUT_S,
    Found,
    Server,
    count_agreement,
    count_votes,
    judge_rows,
    try_each,
    weigh_fault,
    weigh_own_file,
    weigh_own_loop,
    weigh_second,
)


def make_classifier(server: Server, mode: str, run: str = "one", **options: Any) -> LLMClassifier:
    return LLMClassifier(
        name="polite",
        prompt_template=CRITERION + "\n{{input}}\n{{output}}",
        choice_scores={"pass": 1, "fail": 0},
        model="mock",  # it asks models that it knows over another API
        client=OpenAI(base_url=server.get_address(mode, run), api_key="sk-mock", **options),
    )


def judge(classifier: LLMClassifier, content: str) -> str:
    score = classifier(output=content, expected=None, input=TASK).score
    return "no verdict: score None" if score is None else "passed" if score == 1 else "failed"


def try_mode(server: Server, mode: str, **options: Any) -> Found:
    classifier = make_classifier(server, mode, **options)
    return weigh_fault(*try_each(lambda content: judge(classifier, content), FINE, BROKEN))


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    return try_mode(server, "hang", timeout=TIMEOUT_S, max_retries=0)


def again(server: Server) -> Found:
    """The retries of the client are for HTTP; nothing in oai.py asks again for JSON that can't be read."""
    classifier = make_classifier(server, "again")
    return weigh_second(lambda: judge(classifier, BROKEN))


def orders(server: Server) -> Found:
    """``Battle`` (templates/battle.yaml) shows the output first, always."""
    battle = Battle(client=OpenAI(base_url=server.get_address("first"), api_key="sk-mock"), model="mock")
    there = battle(output=FINE, expected=ROWS[0], instructions=TASK)
    back = battle(output=ROWS[0], expected=FINE, instructions=TASK)
    agree = there.score != back.score
    return Found(OWN, f"Battle asks in one order; called twice: {there.score}, {back.score}, so agree={agree}")


def function(_server: Server) -> Found:
    """The README: "You can also create your own scoring functions", which return a Score with a number or None."""
    scores = [Score(name="own", score=value, metadata={"why": "…"}).score for value in (True, 0.25, None)]
    return Found(DONE, f"Score takes {scores}; None is documented as skipped")


def several(server: Server) -> Found:
    """No module combines scorers."""
    judges = [make_classifier(server, mode, mode) for mode in ("good", "good", "down-all")]
    return count_votes(lambda at: judge(judges[int(at)], FINE))


def rule(server: Server) -> Found:
    """``ValidJSON`` is a scorer of its own; an ``if`` joins it to the judge."""
    score = ValidJSON()(NO_JSON).score
    if score == 1:
        judge(make_classifier(server, "good"), NO_JSON)
    return Found(OWN, f"ValidJSON: {score}; an if of our own did not ask the judge ({server.count()} requests)")


def long_run(server: Server) -> Found:
    """A loop that writes what it has and leaves it out the next time; the library has none."""
    classifier = make_classifier(server, "slow")
    return judge_rows(lambda content: judge(classifier, content))


def resume(server: Server) -> Found:
    return weigh_own_loop("autoevals", long_run, server)


def cache(server: Server) -> Found:
    """``run_cached_request`` of oai.py has a cache in its name only; Braintrust's proxy, a service, has one."""
    return weigh_own_file(long_run, server)


def budget(_server: Server) -> Found:
    return Found(NONE, "nothing of cost in the package or its README")


def status(server: Server) -> Found:
    found = judge(make_classifier(server, "good"), RUDE)
    return Found(OWN, f"no command of its own; assert in pytest: {found}")


def people(server: Server) -> Found:
    classifier = make_classifier(server, "good")
    return count_agreement(lambda content: judge(classifier, content))


def approval(_server: Server) -> Found:
    return Found(NONE, "nothing holds an action back, in the package or its README")


def record(_server: Server) -> Found:
    return Found(NONE, "nothing is kept, by the package or its README")
