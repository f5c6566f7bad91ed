"""An input firewall around a function: what is rejected never reaches it."""

from __future__ import annotations

import asyncio
import inspect
import json

import pytest

from adjudge import AdjudgeError, InputFirewall, InputRejected
from adjudge.testing import ScriptedModel
from kit.firewalls import CLEAN, threaten
from kit.judges import complaint


def make(line=CLEAN, **options) -> tuple[InputFirewall, ScriptedModel]:
    """A firewall and the model it asks."""
    model = ScriptedModel(line)
    return InputFirewall(model, **options), model


def shown(model: ScriptedModel) -> list[dict]:
    """The arguments that each request showed."""
    return [json.loads(item.user.partition("\n")[2].partition("\n<<end ")[0]) for item in model.requests]


def test_a_function_runs_when_its_arguments_pass():
    """Sync functions stay sync, and async ones async; name and signature are the function's own."""
    firewall, model = make()

    @firewall.guard()
    def find(q: str, limit: int = 5) -> str:
        """Find it."""
        return f"{q} {limit}"

    @firewall.guard()
    async def find_later(q: str) -> str:
        return q

    assert find("a", limit=2) == "a 2"
    assert asyncio.run(find_later(q="b")) == "b"
    assert shown(model) == [{"q": "a", "limit": 2}, {"q": "b"}]
    assert inspect.iscoroutinefunction(find_later)
    assert (find.__name__, find.__doc__, list(inspect.signature(find).parameters)) == (
        "find",
        "Find it.",
        ["q", "limit"],
    )


def test_a_rejection_raises_and_the_function_never_runs():
    """The error carries the code, what was found, what to do, and the verdict."""
    firewall, _ = make(threaten("q", reason="look: DROP TABLE"), error_code="NOPE", tool_name="search")
    ran = []

    @firewall.guard()
    def find(q: str) -> None:
        ran.append(q)

    @firewall.guard()
    async def find_later(q: str) -> None:
        ran.append(q)

    for call in (lambda: find("DROP TABLE"), lambda: asyncio.run(find_later("DROP TABLE"))):
        with pytest.raises(InputRejected) as caught:
            call()
        error = caught.value
        assert isinstance(error, AdjudgeError)
        assert (error.code, error.tool, error.threats) == ("NOPE", "search", error.verdict.threats)
        assert error.threats[0].reason == "look: DROP TABLE"
        assert not error.verdict
    assert ran == []


def test_the_errors_text_may_be_shown():
    """It holds the code, the tool and what to do; nothing that the arguments or a judge said."""
    firewall, _ = make(threaten("SECRET", "SECRET", reason="SECRET"))

    @firewall.guard()
    def find(**named: str) -> None:
        """Never runs."""

    with pytest.raises(InputRejected) as caught:
        find(SECRET="SECRET")
    message = str(caught.value)

    assert message.startswith("INPUT_REJECTED: the arguments of ")
    assert message.endswith(caught.value.recovery)
    assert "SECRET" not in message


def test_defaults_and_the_rest_are_checked():
    """Whatever the function would see, under its parameter's name; names that both kinds could have do not collide."""
    firewall, model = make()

    @firewall.guard()
    def find(q, /, *more, deep=True, **named) -> None:
        """Do nothing."""

    find(1)
    find(1, 2, [3], q="x", more="y", deep=None)

    assert shown(model) == [
        {"q": 1, "deep": True},
        {"q": 1, "more": [2, [3]], "deep": None, "named": {"q": "x", "more": "y"}},
    ]


def test_no_arguments_ask_nobody():
    """None at all, or none that were sent."""
    firewall, model = make({"safe": False})

    @firewall.guard()
    def now() -> str:
        return "now"

    @firewall.guard()
    def collect(*items: str, **named: str) -> str:
        return "none"

    assert (now(), collect()) == ("now", "none")
    assert model.requests == []


def test_the_object_of_a_method_is_not_an_argument():
    """Nobody sends it. A parameter of that name elsewhere is one like any other."""
    firewall, model = make()

    class Mailer:
        @firewall.guard()
        def send(self, text: str) -> str:
            return text

        @classmethod
        @firewall.guard()
        def make(cls, text: str) -> str:
            return text

        @staticmethod
        @firewall.guard()
        def join(text: str) -> str:
            return text

    @firewall.guard()
    def send(self: str) -> str:
        return self

    assert [Mailer().send("a"), Mailer.make("b"), Mailer.join("c"), send("d")] == ["a", "b", "c", "d"]
    assert shown(model) == [{"text": "a"}, {"text": "b"}, {"text": "c"}, {"self": "d"}]


def test_what_the_program_fills_in_can_be_left_out():
    """By name: it is neither shown nor checked, and need be no JSON."""
    firewall, model = make()

    @firewall.guard(trusted=["connection"])
    def find(connection: object, q: str) -> object:
        return connection

    held = object()
    assert find(held, "a") is held
    assert shown(model) == [{"q": "a"}]


def test_arguments_that_cannot_be_shown_do_not_get_through():
    """Without a question; the reason is in the verdict."""
    firewall, model = make()

    @firewall.guard()
    def find(q: object) -> None:
        """Never runs."""

    with pytest.raises(InputRejected) as caught:
        find(object())
    assert "of type object" in caught.value.verdict.detail
    assert model.requests == []


def test_events_name_the_function():
    """Unless the firewall has a name for what it stands before."""
    events = []
    for options in ({}, {"tool_name": "billing"}):
        firewall, _ = make(on_event=events.append, **options)

        @firewall.guard()
        def pay(order: str) -> None:
            """Do nothing."""

        pay("1")

    assert [event.guard.rpartition(".")[2] for event in events] == ["pay", "billing"]


def test_a_generators_arguments_are_checked_when_it_is_called():
    """Before it is first resumed."""
    firewall, _ = make({"safe": False})

    @firewall.guard()
    def letters(text: str) -> object:
        yield from text

    with pytest.raises(InputRejected):
        letters("abc")


def test_what_cannot_be_guarded_is_refused_at_once():
    """An async generator, something that is no function, a parameter that is not there."""
    firewall, _ = make()

    async def stream(text: str) -> object:
        yield text

    def find(q: str) -> None:
        """Do nothing."""

    assert "cannot wait for the judges" in complaint(firewall.guard(), stream)
    assert "it is not a function" in complaint(firewall.guard(), 7)
    assert "put the guard below @staticmethod" in complaint(firewall.guard(), staticmethod(find))
    assert "put the guard below @classmethod" in complaint(firewall.guard(), classmethod(find))
    assert "it has no parameter 'x' (its parameters are q)" in complaint(firewall.guard(trusted=["x"]), find)
    assert "trusted must be a list" in complaint(firewall.guard, trusted="q")


def test_a_wrong_call_is_the_functions_own_error():
    """As without a firewall; nobody is asked."""
    firewall, model = make()

    @firewall.guard()
    def find(q: str) -> None:
        """Do nothing."""

    with pytest.raises(TypeError):
        find()
    assert model.requests == []
