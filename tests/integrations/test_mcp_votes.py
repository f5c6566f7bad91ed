"""What the user of an MCP client answers in its form: a vote of an approver who signed in, and otherwise nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pytest

from kit.mcp import (
    Shop,
    User,
    make_server,
    open_client,
    open_http,
    read_text,
    require_sign_in,
    serve_http_here,
    use,
)

pytestmark = [pytest.mark.integration, pytest.mark.timed, pytest.mark.slow]

MODES = ["auto", "legacy"]

YES = {"decision": "approve", "reason": "it is a copy"}


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


def find_person(_: Any) -> str | None:
    """The subject of the token, which the server's sign-in has verified."""
    from mcp.server.auth.middleware.auth_context import get_access_token

    token = get_access_token()
    return None if token is None else token.subject


async def delete(
    shop: Shop, user: User, *, token: str = "token-of-ana", mode: str = "auto", path: str = "x", **options: Any
) -> Any:
    """The result of deleting a file over HTTP, by a client that has signed in."""
    terms = {"principal": find_person, **require_sign_in(), **options}
    async with (
        serve_http_here(make_server(shop, **terms).streamable_http_app()) as url,
        open_client(open_http(url, token), user, mode=mode) as client,
    ):
        return await client.call_tool("delete_file", {"path": path})


async def list_votes(shop: Shop) -> list[Mapping[str, Any]]:
    """The votes that the ledger has."""
    return [entry.payload or {} async for entry in shop.ledger.query(kind="approval.voted")]


def test_an_approver_who_signed_in_approves_in_the_form():
    """The tool runs once, the form shows the call, and the ledger names the person and the way."""

    async def work(shop: Shop) -> None:
        user = User(content=YES)
        result = await delete(shop, user)
        [vote] = await list_votes(shop)

        assert (result.is_error, shop.ran) == (False, ["delete x"])
        assert len(user.questions) == 1
        assert '"path":"x"' in user.questions[0].replace(" ", "")
        assert (vote["by"], vote["approved"], vote["channel"]) == ("ana", True, "MCP elicitation")
        assert vote["reason"] == "it is a copy"

    use(work)


def test_the_form_says_that_a_call_was_approved_before_and_may_have_run():
    """The same call again is a new question, about which nobody decides without knowing that."""

    async def work(shop: Shop) -> None:
        user = User(content=YES)
        await delete(shop, user)
        await delete(shop, user)
        first, second = user.questions

        assert shop.ran == ["delete x", "delete x"]
        assert "asked about this very call before" not in first
        assert "People were asked about this very call before: " in second
        assert "this call was approved before, and may have run" in second

    use(work, match="content")


def test_a_client_of_an_older_protocol_is_not_asked_for_a_vote():
    """Its answer comes in a request of its own, and another sign-in than that of the call may have brought it."""

    async def work(shop: Shop) -> None:
        user = User(content=YES)
        result = await delete(shop, user, mode="legacy")

        assert (result.is_error, shop.ran, user.questions) == (True, [], [])
        assert await list_votes(shop) == []
        assert len(await shop.approvals.list()) == 1

    use(work)


def test_an_approver_denies_in_the_form():
    """The tool does not run, and nobody is asked about this call again."""

    async def work(shop: Shop) -> None:
        result = await delete(shop, User(content={"decision": "deny"}))

        assert (result.is_error, shop.ran) == (True, [])
        assert "a person said no" in read_text(result)

    use(work)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("token", "options"),
    [
        ("token-of-eve", {}),
        ("token-of-ana", {"principal": None}),
        ("token-of-ana", {"principal": lambda _: None}),
        ("token-of-ana", {"principal": lambda _: 1 / 0}),
        ("token-of-ana", {"principal": lambda _: True}),
        ("token-of-ana", {"principal": lambda _: "Ana"}),
    ],
)
def test_nobody_else_approves_in_a_form(mode: str, token: str, options: dict[str, Any]):
    """Somebody who signed in and is no approver, and everybody where the program does not know who that is."""

    async def work(shop: Shop) -> None:
        claims = {**YES, "by": "ana", "principal": "ana", "approve": True}
        result = await delete(shop, User(content=claims), token=token, mode=mode, **options)

        assert (result.is_error, shop.ran) == (True, [])
        assert await list_votes(shop) == []

    use(work)


@pytest.mark.parametrize(
    "claims", [None, {}, {"auth_time": None}, {"auth_time": True}, {"auth_time": "now"}, {"iat": 1_764_460_800}]
)
def test_a_token_that_does_not_say_when_a_person_signed_in_casts_no_vote(claims: Mapping[str, Any] | None):
    """It may be one that an agent got for itself: it is not asked, and the call waits for people elsewhere."""

    async def work(shop: Shop) -> None:
        user = User(content=YES)
        result = await delete(shop, user, **require_sign_in(claims))

        assert (result.is_error, shop.ran) == (True, [])
        assert await list_votes(shop) == []
        assert len(await shop.approvals.list()) == 1

    use(work)


def test_a_name_without_a_sign_in_casts_no_vote():
    """As that of a proxy's header: no token says that a person signed in, so the call waits for people elsewhere."""

    async def work(shop: Shop) -> None:
        unsigned = {"auth": None, "token_verifier": None, "identify": lambda _: "one", "principal": lambda _: "ana"}
        result = await delete(shop, User(content=YES), **unsigned)

        assert (result.is_error, shop.ran) == (True, [])
        assert await list_votes(shop) == []
        assert len(await shop.approvals.list()) == 1

    use(work)


@pytest.mark.parametrize(
    "content",
    [
        {"approve": True},
        {"decision": "approve"},
        {"decision": "approve", "reason": "  "},
        {"decision": "later", "reason": "x"},
        {"decision": ["approve"], "reason": "x"},
        {"decision": "approve", "reason": 1},
        {"decision": "Approve", "reason": "x"},
    ],
)
def test_an_answer_that_is_no_vote_leaves_the_call_held(content: dict[str, Any]):
    """What was refused can be approved only with a reason."""

    async def work(shop: Shop) -> None:
        result = await delete(shop, User(content=content))

        assert (result.is_error, shop.ran) == (True, [])
        assert [vote for vote in await list_votes(shop) if vote["accepted"]] == []

    use(work)


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("mode", MODES)
def test_a_form_that_is_closed_is_no_vote(action: str, mode: str):
    """The request stays open, for people elsewhere."""

    async def work(shop: Shop) -> None:
        result = await delete(shop, User(action, content=YES), mode=mode)

        assert (result.is_error, shop.ran) == (True, [])
        assert len(await shop.approvals.list()) == 1

    use(work)


def test_without_http_nobody_is_known():
    """In this process, and over standard input and output, whoever answers may be the agent."""

    async def work(shop: Shop) -> None:
        server = make_server(shop, principal=lambda _: "ana")
        async with open_client(server, User(content=YES)) as client:
            result = await client.call_tool("delete_file", {"path": "x"})

        assert (result.is_error, shop.ran) == (True, [])
        assert await list_votes(shop) == []

    use(work)


@pytest.mark.parametrize("path", ["x" * 5_000, "a\u202eb", "a\u200bb", "a" + " " * 200 + "b"])
def test_what_a_form_cannot_show_is_decided_elsewhere(path: str):
    """Too long for it, or with characters that nobody sees."""

    async def work(shop: Shop) -> None:
        result = await delete(shop, User(content=YES), path=path)

        assert (result.is_error, shop.ran) == (True, [])
        assert await list_votes(shop) == []

    use(work)


def test_one_of_two_approvers_is_not_enough():
    """The vote counts, and the call waits for the other."""

    async def work(shop: Shop) -> None:
        user = User(content=YES)
        result = await delete(shop, user)
        [request] = await shop.approvals.list()

        assert (result.is_error, shop.ran, request.missing) == (True, [], 1)
        assert [vote["accepted"] for vote in await list_votes(shop)] == [True]

    use(work, gates={"people": {"required": 2}})


def test_the_middleware_takes_votes_too():
    """As the extension does."""
    from adjudge.integrations.mcp import GateMiddleware

    async def work(shop: Shop) -> None:
        gate = GateMiddleware(shop.guard, principal=find_person)
        result = await delete(shop, User(content=YES), extensions=[], middleware=[gate])

        assert (result.is_error, shop.ran) == (False, ["delete x"])

    use(work)
