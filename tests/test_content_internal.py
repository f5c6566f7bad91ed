"""What may be judged, as the text a judge sees, and the fences around it."""

from __future__ import annotations

import dataclasses
import json
import sys

import msgspec
import pydantic
import pytest

from adjudge import UsageError
from adjudge.content import check_size, content_text, digest_text


@dataclasses.dataclass
class Point:
    x: int
    tags: list[str]


class Pixel(msgspec.Struct):
    x: int
    tags: list[str]


class Place(pydantic.BaseModel):
    x: int
    tags: list[str]


class Response:
    output: object = {"answer": 42}


@pytest.mark.parametrize("text", ["", "plain", "üñí 你好 👍\n", "  \t", "\u202eevil\u200b", '{"json": true}'])
def test_text_stays_as_it_is(text):
    """Nothing is trimmed, escaped or normalised."""
    assert content_text(text) == text


@pytest.mark.parametrize(
    ("content", "plain"),
    [
        ({"b": 1, "a": [True, None, 1.5, "ü"]}, {"b": 1, "a": [True, None, 1.5, "ü"]}),
        ([1, (2, 3)], [1, [2, 3]]),
        (Point(x=1, tags=["a"]), {"x": 1, "tags": ["a"]}),
        (Pixel(x=1, tags=["a"]), {"x": 1, "tags": ["a"]}),
        (Place(x=1, tags=["a"]), {"x": 1, "tags": ["a"]}),
        ({"point": Point(x=1, tags=[])}, {"point": {"x": 1, "tags": []}}),
        (Response(), {"answer": 42}),
        ([{"role": "user", "content": "Hi"}], [{"role": "user", "content": "Hi"}]),
        ([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],) * 2,
        (7, 7),
        (None, None),
        (False, False),
    ],
)
def test_values_are_shown_as_json(content, plain):
    """Any JSON value, dataclass, Struct, pydantic model, list of messages, or an object's output; order is kept."""
    text = content_text(content)

    assert json.loads(text) == plain
    assert text == json.dumps(plain, ensure_ascii=False, indent=2)


def test_an_output_that_is_text_is_that_text():
    """An object with ``.output`` stands for it."""

    class Said:
        output = "just text"

    assert content_text(Said()) == "just text"


@pytest.mark.parametrize("content", [Point(x=1, tags=[b"x"]), Pixel(x=1, tags=[memoryview(b"x")]), {"a": (b"x",)}])  # type: ignore[list-item]
def test_binary_is_refused_at_any_depth(content):
    """As base64 it would be judged as if it were text."""
    with pytest.raises(UsageError, match="holds binary data"):
        content_text(content)


def test_a_model_with_bytes_that_are_not_text_is_refused():
    """A pydantic model writes bytes as UTF-8, and these are none."""

    class File(pydantic.BaseModel):
        data: bytes

    with pytest.raises(UsageError, match="the content is a File that cannot be written as JSON"):
        content_text(File(data=b"\xff\xfe"))


@pytest.mark.parametrize("kind", ["image", "image_url", "input_image", "audio", "input_audio", "file", "document"])
def test_parts_that_are_not_text_are_refused(kind):
    """In any message of a conversation."""
    with pytest.raises(UsageError, match=f"message part of type '{kind}'"):
        content_text([{"role": "user", "content": "Hi"}, {"role": "user", "content": [{"type": kind}]}])


def test_data_that_only_looks_like_a_part_is_judged():
    """A list of objects with a type is no conversation."""
    assert content_text([{"type": "image", "size": 3}]) == json.dumps([{"type": "image", "size": 3}], indent=2)


@pytest.mark.slow
def test_deep_nesting_is_a_usage_error():
    """And never a crash."""
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(UsageError, match="nests too deeply"):
        content_text(deep)


@dataclasses.dataclass
class Node:
    below: object
    beside: object = None


def nest(depth: int, wrap) -> object:
    made: object = 1
    for _ in range(depth):
        made = wrap(made)
    return made


WRAPS = [lambda x: [x], lambda x: {"a": x}, lambda x: (x,), lambda x: Node(below=x)]


@pytest.mark.parametrize("wrap", WRAPS[:3], ids=["list", "object", "tuple"])
def test_nesting_has_one_limit(wrap):
    """200 levels are shown and 201 are not."""
    assert content_text(nest(200, wrap)).count("1") == 1
    with pytest.raises(UsageError, match="nests too deeply"):
        content_text(nest(201, wrap))


@pytest.mark.parametrize("wrap", WRAPS, ids=["list", "object", "tuple", "dataclass"])
def test_nesting_is_bounded_whatever_the_recursion_limit(wrap):
    """What recurses in C would end a program that raised it, so depth is counted before."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        for content in (nest(100_000, wrap), Node(below=nest(100_000, wrap))):
            with pytest.raises(UsageError, match="nests too deeply"):
                content_text(content)
    finally:
        sys.setrecursionlimit(limit)


def test_what_holds_itself_twice_is_refused_at_once():
    """Not after looking at every way through it."""
    node = Node(below=None)
    node.below = node.beside = node
    twice: list[object] = []
    twice += [twice, twice]
    for content in (node, twice, {"a": node}):
        with pytest.raises(UsageError, match="holds itself"):
            content_text(content)


def test_an_output_that_stands_for_itself_is_refused():
    """However it goes on."""

    class Endless:
        @property
        def output(self) -> object:
            return self

    with pytest.raises(UsageError, match="holds itself"):
        content_text(Endless())


def test_a_digest_is_the_sha256_of_the_text():
    """In hexadecimal, of its UTF-8 bytes."""
    assert digest_text("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_largest_question_is_allowed():
    """The limit itself fits; one more does not."""
    check_size(10, 10, model="m")
    with pytest.raises(UsageError, match="the question is 1,001 characters long and 'm' takes 1,000"):
        check_size(1001, 1000, model="m")
