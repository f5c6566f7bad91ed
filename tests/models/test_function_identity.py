"""Which function it is: what the digest of a judge in code covers, and what it does not."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from adjudge import judge_function
from adjudge.models import FunctionIdentity

HEAD = "import functools, re\n"


def load(source: str, name: str = "judge", module: str = "mine") -> Any:
    """What ``name`` is in a module of this source."""
    space: dict[str, Any] = {"__name__": module}
    exec(compile(HEAD + source, "mine.py", "exec"), space)
    return space[name]


def identify(function: Callable[..., Any]) -> FunctionIdentity:
    identity = judge_function(function).function_identity  # type: ignore[attr-defined]
    assert isinstance(identity, FunctionIdentity)
    return identity


JUDGE = "def judge(content):\n    return 'thank' in content\n"

CLOSED = """
def make(limit):
    def inner(content):
        return len(content) < limit
    return inner
judge = make({})
"""

OBJECT = """
class Length:
    def __init__(self, limit):
        self.limit, self.asked = limit, 0
    def __call__(self, content):
        self.asked += 1
        return len(content) < self.limit
judge = Length({})
"""

HELPING_CLASS = """
class Rule:
    least = 5
    def check(self, content):
        return self.look(content)
    def look(self, content):
        return {} in content
def judge(content):
    return Rule().check(content)
"""

CACHED = "@functools.cache\ndef judge(content): return {} in content\n"

HELPED = "def judge(content): return helper(content)\n"

LISTED = "WORDS = ['{}']\ndef judge(content): return WORDS[0] in content"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(JUDGE, "# why\n\n\n" + JUDGE, id="a comment, another place"),
        pytest.param(JUDGE, JUDGE.replace("'thank' in content", "('thank'  in  content)"), id="spelling"),
        pytest.param(CLOSED.format(5), CLOSED.format(5), id="closure"),
        pytest.param(OBJECT.format(5), OBJECT.format(5), id="object"),
        pytest.param(LISTED.format("a"), LISTED.format("b"), id="a list is not covered"),
    ],
)
def test_the_same_code_is_the_same_function(one: str, other: str):
    """Whatever the comments and places are; a list counts by its type alone."""
    assert identify(load(one)) == identify(load(other))


@pytest.mark.parametrize(
    ("source", "one", "other"),
    [
        pytest.param("def judge(content): return {} in content", "'a'", "'b'", id="constant"),
        pytest.param("def judge(content): return 'a' {} content", "in", "not in", id="code"),
        pytest.param("def judge(content, least={}): return len(content) > least", 3, 4, id="default"),
        pytest.param("def judge(*, content, least={}): return len(content) > least", 3, 4, id="keyword default"),
        pytest.param(CLOSED, 5, 6, id="closure"),
        pytest.param(CLOSED, 1, True, id="type of a value"),
        pytest.param(OBJECT, 5, 6, id="attribute"),
        pytest.param(OBJECT.replace("{}", "5").replace("<", "{}"), "<", "<=", id="code of a class"),
        pytest.param(
            "def helper(t): return {} in t\ndef judge(content): return helper(content)", "'a'", "'b'", id="helper"
        ),
        pytest.param("LIMIT = {}\ndef judge(content): return len(content) < LIMIT", 5, 6, id="constant of the module"),
        pytest.param(HELPING_CLASS, "'a'", "'b'", id="method that is called"),
        pytest.param(HELPING_CLASS.replace("{}", "'a'").replace("5", "{}"), 5, 6, id="class of the module"),
        pytest.param(CACHED, "'a'", "'b'", id="cached"),
        pytest.param(CACHED.replace("judge", "helper") + HELPED, "'a'", "'b'", id="cached helper"),
        pytest.param(
            "P = re.compile({})\ndef judge(content): return bool(P.search(content))", "'a'", "'b'", id="pattern"
        ),
        pytest.param("judge = lambda content: all(it in content for it in ('a', {}))", "'b'", "'c'", id="lambda"),
        pytest.param("judge = lambda content: any(it == {} for it in content)", "'b'", "'c'", id="generator"),
        pytest.param("judge = functools.partial(lambda n, content: len(content) > n, {})", 3, 4, id="partial"),
        pytest.param("def judge(content): return content in {{'a', {}}}", "'b'", "'c'", id="set"),
    ],
)
def test_other_code_is_another_function(source: str, one: object, other: object):
    """Constants, defaults, closures, attributes, and what it names in its own module."""
    assert identify(load(source.format(one))) != identify(load(source.format(other)))


RUNS = "    def __call__(self, content): return self.look(content)\njudge = Rule()\n"

HIDDEN = [
    pytest.param(
        """
class Rule:
    __slots__ = ("__limit",)
    def __init__(self, limit): self.__limit = limit
    def __call__(self, content): return len(content) < self.__limit
judge = Rule(@@)
""",
        "1",
        "9",
        id="a private slot",
    ),
    pytest.param(
        """
class Found: pass
def make(limit):
    def judge(content):
        found = Found()
        found.limit = limit
        return len(content) < limit
    return judge
judge = make(@@)
""",
        "1",
        "9",
        id="an attribute called like what it closes over",
    ),
    pytest.param(
        """
class Found: pass
LIMIT = @@
def judge(content):
    Found().LIMIT = 1
    return len(content) < LIMIT
""",
        "1",
        "9",
        id="an attribute called like a variable of the module",
    ),
    *(
        pytest.param(f"class Rule:\n    {head}\n{RUNS}", one, other, id=name)
        for name, head, one, other in (
            ("a cached method", "@functools.cache\n    def look(self, content): return @@", "True", "False"),
            (
                "a partial method",
                "def read(self, n, content): return n\n    look = functools.partialmethod(read, @@)",
                "1",
                "0",
            ),
            ("a partial of a class", "look = staticmethod(functools.partial(max, @@))", "1", "2"),
            (
                "a class in a class",
                "class Most:\n        n = @@\n    def look(self, content): return self.Most.n",
                "1",
                "2",
            ),
            (
                "a cached property",
                "@functools.cached_property\n    def n(self): return @@\n    def look(self, content): return self.n",
                "1",
                "2",
            ),
        )
    ),
    pytest.param(
        "def check(n, content): return n\nhelper = functools.partial(check, @@)\n" + HELPED, "1", "0", id="a partial"
    ),
    pytest.param(
        """
class Rule:
    def __init__(self, n): self.n = n
    def check(self, content): return self.n
helper = Rule(@@).check
"""
        + HELPED,
        "1",
        "0",
        id="a method",
    ),
    pytest.param("helper = re.compile('@@').search\n" + HELPED, "a", "b", id="a method of a pattern"),
    pytest.param("judge = '@@'.__contains__\n", "a", "b", id="a method of a text"),
    pytest.param("from operator import @@ as helper\n" + HELPED, "not_", "truth", id="another built-in function"),
    pytest.param("from textwrap import @@ as helper\n" + HELPED, "dedent", "shorten", id="another imported function"),
    pytest.param(
        "import @@ as paths\ndef judge(content): return paths.isabs(content)", "posixpath", "ntpath", id="module"
    ),
    pytest.param(
        """
class Rule:
    def __init__(self, check): self.check = check
    def __call__(self, content): return self.check(content)
judge = Rule(Rule(lambda content: @@))
""",
        "True",
        "False",
        id="a function that an object holds",
    ),
    pytest.param(
        """
class Not:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
    def __call__(self, content): return @@ self.function(content)
@Not
def judge(content): return True
""",
        "",
        "not",
        id="what a wrapper does with what it wraps",
    ),
    pytest.param(
        "judge = functools.cache(functools.partial(lambda n, content: n, @@))", "1", "0", id="a cache around a partial"
    ),
    pytest.param(
        "import enum\nclass Most(enum.Enum):\n    A = @@\ndef judge(content): return Most.A.value",
        "1",
        "2",
        id="enumeration",
    ),
    pytest.param(
        """
import enum
class Most(enum.Enum):
    A = 1
    B = 2
def judge(content, most=Most.@@): return most is Most.A
""",
        "A",
        "B",
        id="member of an enumeration",
    ),
    pytest.param("def judge(content, words=('a', @@)): return words", "'b'", "'c'", id="a tuple"),
    pytest.param(
        "def judge(content, checks=(lambda it: @@,)): return checks[0](content)",
        "True",
        "False",
        id="a function in a tuple",
    ),
    pytest.param(
        """
class Rule:
    words = ("a", @@)
    def __call__(self, content): return content in self.words
judge = Rule()
""",
        "'b'",
        "'c'",
        id="a tuple of a class",
    ),
    pytest.param(
        """
class Rule:
    @property
    def most(self): return @@
    def __call__(self, content): return len(content) < self.most
judge = Rule()
""",
        "1",
        "9",
        id="a property",
    ),
    pytest.param("def judge(content): return judge.most\njudge.most = @@", "1", "2", id="attribute of a function"),
    pytest.param("class judge:\n    def __new__(cls, content): return @@", "True", "False", id="class"),
    pytest.param(
        """
class Kind(type):
    def __call__(cls, content): return @@
class judge(metaclass=Kind): pass
""",
        "True",
        "False",
        id="class of a class",
    ),
]


@pytest.mark.parametrize(("source", "one", "other"), HIDDEN)
def test_what_decides_is_not_hidden_by_where_it_stands(source: str, one: str, other: str):
    """Two judges that say different things of one content are two functions."""
    assert identify(load(source.replace("@@", one))) == identify(load(source.replace("@@", one)))
    assert identify(load(source.replace("@@", one))) != identify(load(source.replace("@@", other)))


def test_what_a_try_holds_is_part_of_the_code():
    """The same steps, of which one more is in the try: its exception passes in one, and is an error in the other."""
    head = "def judge(content):\n    try:\n        a = int(content)\n"
    within = "        b = int(a)\n    except ValueError:\n        return True\n    return a and b\n"
    after = "    except ValueError:\n        return True\n    else:\n        b = int(a)\n    return a and b\n"
    assert identify(load(head + within)) != identify(load(head + after))


def test_a_function_in_a_decorator_of_another_module_is_looked_into():
    """With what it names of its own module, though the decorator hides its name."""

    def decorate(function: Callable[[str], bool]) -> Callable[[str], bool]:
        def call(content: str) -> bool:
            return function(content)

        return call

    source = "LIMIT = {}\ndef judge(content): return len(content) < LIMIT"
    assert identify(decorate(load(source.format(1)))) != identify(decorate(load(source.format(9))))


def test_the_code_of_another_module_is_anybodys_to_change():
    """Of what is imported the name counts, so an update of a library does not make it another judge."""

    def use(helper: object, source: str) -> FunctionIdentity:
        space: dict[str, Any] = {"__name__": "mine", "helper": helper}
        exec(source, space)
        return identify(space["judge"])

    for kind in ("def helper(content): return {}", "class helper:\n    most = {}"):
        one, other = (load(kind.format(number), "helper", "theirs") for number in (1, 2))
        assert use(one, HELPED) == use(other, HELPED)


def test_an_object_that_holds_its_own_method_ends():
    """And it is asked nothing."""

    class Loop:
        def __init__(self) -> None:
            self.run, self.__wrapped__ = self.judge, self.judge

        def judge(self, content: str) -> bool:
            return bool(content)

        def __call__(self, content: str) -> bool:
            return self.run(content)

    assert identify(Loop()) == identify(Loop())
    assert identify(Loop().judge) == identify(Loop().judge)


def test_a_name_is_part_of_it():
    """Module and qualified name, whatever the code."""
    assert identify(load(JUDGE)) != identify(load(JUDGE, module="yours"))
    assert identify(load(JUDGE)) != identify(load(JUDGE.replace("judge", "other"), "other"))
    assert identify(load(OBJECT.format(5))).qualname == "Length"
    assert identify(len) == FunctionIdentity(module="builtins", qualname="len", code=identify(len).code)


def test_what_a_function_counts_does_not_make_it_another():
    """A variable or attribute that it sets itself is no part of it; neither is what it is asked in between."""
    head = "seen = 0\nheard = []\ndef judge(content):\n"
    source = f"{head}    global seen\n    seen += 1\n    heard.append(content)\n    return True"
    for function in (load(source), load(OBJECT.format(5))):
        before = identify(function)
        function("x")
        assert identify(function) == before

    total = 0

    def count(content: str) -> bool:
        nonlocal total
        total += 1
        return True

    before = identify(count)
    count("x")
    assert identify(count) == before


def test_functions_that_name_each_other_end():
    """And one that names itself."""
    source = "def judge(content): return content or other(content)\ndef other(content): return judge(content)\n"
    assert identify(load(source)) == identify(load(source))
    chain = "".join(f"def f{n}(content): return f{n + 1}(content)\n" for n in range(3_000))
    assert identify(load(chain, "f0")) == identify(load(chain, "f0"))


@pytest.mark.integration
def test_another_process_finds_the_same_digest():
    """Hashes of texts differ from process to process; the order of a set must not."""
    code = f"""
import functools, re
from adjudge import judge_function
__name__ = "mine"
exec({"def judge(content): return content in {'a', 'b', 'c', 'd', 'e'} or re.match('x', content)"!r})
print(judge_function(judge).function_identity.code)
"""
    output = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**_env(), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(output) == 1


def _env() -> dict[str, str]:
    import os

    return dict(os.environ)


def test_methods_and_what_stands_around_a_function():
    """A method's object counts with its plain attributes, and a wrapper with what it wraps."""

    class Words:
        def __init__(self, word: str) -> None:
            self.word, self.held = word, [word]

        def judge(self, content: str) -> bool:
            return self.word in content

    def loud(function: Callable[[str], bool]) -> Callable[[str], bool]:
        @functools.wraps(function)
        def call(content: str) -> bool:
            return function(content.upper())

        return call

    assert identify(Words("a").judge) == identify(Words("a").judge)
    assert identify(Words("a").judge) != identify(Words("b").judge)
    assert identify(loud(Words("a").judge)) != identify(loud(Words("b").judge))
    assert isinstance(load(JUDGE), types.FunctionType)
    assert identify(loud(load(JUDGE))) != identify(load(JUDGE))
    assert re.fullmatch("[0-9a-f]{64}", identify(load(JUDGE)).code)


class Absent:
    """A proxy for something that is not there: it raises whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("outside of a request")


def test_what_cannot_be_looked_at_counts_by_its_type():
    """Nothing that a function names or holds is asked anything."""
    held = Absent()

    def judge(content: str, other: Any = held) -> bool:
        return content is held or other is held

    assert identify(judge) == identify(judge)
    source = """
class Absent:
    def __getattribute__(self, name):
        raise RuntimeError("outside of a request")
absent = Absent()
def judge(content):
    return content is absent
"""
    assert identify(load(source)) == identify(load(source))
