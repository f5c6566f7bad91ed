"""Rules on the calls of a conversation: what was called, what was not, and in which order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, Rules, UsageError
from adjudge.rules import rule_from_spec
from adjudge.testing import ScriptedModel


def chat(*turns):
    """Chat completions: each turn is the names of the calls made at once, with their results after them."""
    messages = [{"role": "user", "content": "Please."}]
    for names in turns:
        calls = [
            {
                "id": f"c{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps({"path": "/tmp/a"})},
            }
            for at, name in enumerate(names)
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": f"c{at}", "content": "ok"} for at in range(len(names))]
    return [*messages, {"role": "assistant", "content": "Done."}]


def legacy(*turns):
    """Chat completions before ``tool_calls``: one call a message."""
    messages = [{"role": "user", "content": "Please."}]
    for (name,) in turns:
        call = {"name": name, "arguments": '{"path": "/tmp/a"}'}
        messages.append({"role": "assistant", "content": None, "function_call": call})
        messages.append({"role": "function", "name": name, "content": "ok"})
    return messages


def responses(*turns):
    """The items of the responses interface."""
    items = [{"type": "message", "role": "user", "content": "Please."}]
    for names in turns:
        items += [
            {"type": "function_call", "call_id": name, "name": name, "arguments": '{"path": "/tmp/a"}'}
            for name in names
        ]
        items += [{"type": "function_call_output", "call_id": name, "output": "ok"} for name in names]
    return {"output": items}


def anthropic(*turns):
    """Anthropic's messages."""
    messages = [{"role": "user", "content": "Please."}]
    for names in turns:
        uses = [{"type": "tool_use", "id": name, "name": name, "input": {"path": "/tmp/a"}} for name in names]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]})
        results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in names]
        messages.append({"role": "user", "content": results})
    return {"messages": messages, "usage": {"server_tool_use": {"web_search_requests": 0}}}


def mcp(*turns):
    """JSON-RPC messages between an MCP client and a server."""
    messages = []
    for names in turns:
        for name in names:
            params = {"name": name, "arguments": {"path": "/tmp/a"}}
            messages.append({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params})
        messages += [{"jsonrpc": "2.0", "id": name, "result": {"content": []}} for name in names]
    return messages


SHAPES = (chat, legacy, responses, anthropic, mcp)


def passes(spec, content):
    """Whether one rule passes."""
    return Rules([spec]).evaluate_sync(content)[0].passed


def say(spec, content):
    """What one rule says."""
    return Rules([spec]).evaluate_sync(content)[0].message


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("written", [False, True])
def test_calls_are_read_in_every_shape(shape, written):
    """OpenAI's three, Anthropic's and MCP's, as values and as JSON text, say which tools were called, and when."""
    made = shape(["search"], ["fetch"])
    content = json.dumps(made) if written else made

    assert passes({"called": ["search", "fetch"]}, content)
    assert not passes({"called": "delete"}, content)
    assert passes({"not_called": "delete"}, content)
    assert not passes({"not-called": "fetch"}, content)
    assert passes({"call_order": ["search", "fetch"]}, content)
    assert not passes({"call_order": ["fetch", "search"]}, content)
    assert passes({"called": "search", "arguments": {"path": "/tmp/a"}}, content)
    assert not passes({"called": "search", "arguments": {"path": "/etc"}}, content)
    assert passes({"not_called": "search", "arguments": {"path": "/etc"}}, content)


@pytest.mark.parametrize("shape", [chat, responses, anthropic, mcp])
def test_calls_of_one_turn_are_in_no_order(shape):
    """A check that is called together with what it should allow cannot stop it."""
    assert not passes({"call_order": ["verify", "delete"]}, shape(["verify", "delete"]))
    assert passes({"call_order": ["verify", "delete"]}, shape(["verify"], ["delete"]))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_later_repetition_does_not_put_calls_in_order(shape):
    """The first call of each counts: verifying after the first deletion is too late."""
    assert not passes({"call_order": ["verify", "delete"]}, shape(["delete"], ["verify"], ["delete"]))


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_order_allows_no_other_call(shape):
    """With ``exact`` nothing else is called, before, between or after."""
    rule = {"name": "call_order", "tools": ["search", "fetch"], "exact": True}

    assert passes(rule, shape(["search"], ["fetch"]))
    assert not passes(rule, shape(["search"], ["other"], ["fetch"]))
    assert not passes(rule, shape(["search"], ["fetch"], ["fetch"]))
    assert not passes(rule, shape(["fetch"], ["search"]))


def test_calls_are_counted():
    """``min`` and ``max`` are how often each of the tools is called with the arguments asked for."""
    content = chat(["search"], ["search"], ["fetch"])

    assert passes({"called": "search", "min": 2, "max": 2}, content)
    assert not passes({"called": "search", "min": 3}, content)
    assert not passes({"called": "search", "max": 1}, content)
    assert "maximum of 1" in say({"called": "search", "max": 1}, content)


def test_everything_but_an_allowed_list_can_be_forbidden():
    """``*`` is any text, and ``allow`` names exceptions, to the letter."""
    rule = {"not_called": "*", "allow": ["search", "read_*"]}

    assert passes(rule, chat(["search"], ["read_file"]))
    assert not passes(rule, chat(["search"], ["write_file"]))
    assert not passes(rule, chat(["Search"]))
    assert passes({"called": "mcp__*__search"}, chat(["mcp__web__search"]))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("multi_tool_use.parallel", {"tool_uses": [{"recipient_name": "functions.delete", "parameters": {}}]}),
        ("python", {"code": "tools.delete('/')"}),
    ],
)
def test_a_call_inside_the_text_of_an_argument_is_not_seen(name, arguments):
    """As the page says; so the tool that makes it has to be forbidden, and is by a list of what is allowed."""
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    content = [{"role": "assistant", "tool_calls": [call]}]

    assert passes({"not_called": "delete"}, content)
    assert not passes({"not_called": ["delete", name]}, content)
    assert not passes({"not_called": "*", "allow": ["search"]}, content)


CLAIMS = {
    "a text that claims it": "I called search and got the result.",
    "a text that shows the call": 'I ran {"type": "tool_use", "name": "search", "input": {}}.',
    "a call in the user's message": [
        {"role": "user", "content": [{"type": "tool_use", "name": "search", "input": {"path": "/tmp/a"}}]},
        {"role": "assistant", "content": "Done."},
    ],
    "a call in a tool's result": [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": json.dumps(chat(["search"])), "tool_calls": [{"function": {"name": "search"}}]},
    ],
    "another tool of a longer name": chat(["search_all"]),
    "another tool in capitals": chat(["SEARCH"]),
    "messages beside something that is none": [*chat(["search"]), "and so on"],
    "an empty list": [],
    "a number": 3,
    "an object that is no message": {"search": {"tool_calls": 1}},
}


@pytest.mark.parametrize("name", CLAIMS)
def test_only_a_call_of_the_assistant_s_own_is_believed(name):
    """Who is judged may write anything into text, results and other people's messages; no call was made there."""
    assert not passes({"called": "search"}, CLAIMS[name])
    assert not passes({"call_order": ["search", "search"]}, CLAIMS[name])


HIDDEN = {
    "capitals": chat(["Delete"]),
    "a space": chat(["delete "]),
    "a character nobody sees": chat(["de\u200blete"]),
    "a server's name before it": chat(["mcp__files__delete"]),
    "a module before it": chat(["files.delete"]),
    "the user's message": [{"role": "user", "content": [{"type": "tool_use", "name": "delete", "input": {}}]}],
    "an unknown role": [{"role": "agent", "tool_calls": [{"function": {"name": "delete", "arguments": "{}"}}]}],
    "another provider's form": [{"role": "model", "parts": [{"functionCall": {"name": "delete", "args": {}}}]}],
    "a framework's form": [{"role": "assistant", "content": "", "tool_calls": [{"name": "delete", "args": {}}]}],
    "a third form": [{"role": "assistant", "content": [{"toolUse": {"name": "delete", "input": {}}}]}],
    "deep inside": [
        {"role": "assistant", "content": [{"type": "x", "more": [{"type": "tool_use", "name": "delete"}]}]}
    ],
    "letters that look like its own": chat(["dеlеte"]),
    "letters of another width": chat(["ｄelete"]),
    "a second name": [
        {"role": "assistant", "tool_calls": [{"name": "search", "function": {"name": "delete", "arguments": "{}"}}]}
    ],
    "a third name": [{"role": "assistant", "tool_calls": [{"name": "search", "tool_name": "delete", "args": {}}]}],
    "a function beside it": [
        {"role": "assistant", "content": [{"type": "tool_use", "name": "search", "function": {"name": "delete"}}]}
    ],
    "the cost of a response": [
        {"role": "assistant", "content": "Done.", "usage": {"tool_calls": [{"function": {"name": "delete"}}]}}
    ],
    "the cost of a response, as a list": [
        {"role": "assistant", "content": "Done.", "usage": [{"type": "function_call", "name": "delete"}]}
    ],
    "capitals in the method": [{"jsonrpc": "2.0", "method": "Tools/Call", "params": {"name": "delete"}}],
    "letters of another width in a member": [{"role": "assistant", "ｔool_calls": [{"function": {"name": "delete"}}]}],
    "a call that was not well-formed": [{"type": "ai", "invalid_tool_calls": [{"name": "delete", "args": "{"}]}],
    "pieces of a call": [{"type": "ai", "tool_call_chunks": [{"name": "delete", "args": ""}]}],
    "pieces of a stream": [
        {"type": "x", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "del"}}]}}]},
        {"type": "x", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "ete"}}]}}]},
    ],
    "the name in the type": [{"role": "assistant", "parts": [{"type": "tool-delete", "input": {}}]}],
    "a part of another kind": [{"role": "assistant", "parts": [{"type": "dynamic-tool", "toolName": "delete"}]}],
    "an invocation": [{"role": "assistant", "toolInvocations": [{"toolName": "delete", "args": {}}]}],
    "the name in the place of the function": [{"role": "assistant", "tool_calls": [{"function": "delete"}]}],
    "only its result": [{"role": "tool", "name": "delete", "content": "done"}],
    "a call without a name": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}],
    "a call that is a text": [{"role": "assistant", "tool_calls": ["delete"]}],
    "no conversation at all": "Nothing was deleted.",
    "a text that is cut off": json.dumps(chat(["search"]))[:-2],
    "no message": [],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_whatever_resembles_a_forbidden_call_is_one(name):
    """A rule that forbids a call fails where it cannot be ruled out."""
    assert not passes({"not_called": "delete"}, HIDDEN[name])


@pytest.mark.parametrize("kind", ["computer_call", "local_shell_call", "web_search_call", "code_interpreter_call"])
def test_a_provider_s_own_tools_are_tools(kind):
    """They have no name but their kind, which can be forbidden, and allowed, like any other."""
    content = [{"role": "user", "content": "Please."}, {"type": kind, "action": {"command": ["rm"]}}]
    name = kind.removesuffix("_call")

    assert not passes({"not_called": "*", "allow": ["search"]}, content)
    assert not passes({"not_called": name}, content)
    assert passes({"not_called": "*", "allow": [name]}, content)


@pytest.mark.parametrize(
    "call",
    [
        {"arguments": {"path": "/"}, "function": {"name": "delete", "arguments": "{}"}},
        {"function": {"name": "delete", "arguments": "{}", "params": {"path": "/"}}},
        {"function": {"name": "delete", "arguments": "{}", "Arguments": {"path": "/"}}},
        {"name": "delete", "output": "gone"},
    ],
    ids=["outside", "another name", "capitals", "only what came of it"],
)
def test_a_second_set_of_arguments_excuses_nothing(call):
    """Which of the two a client goes by is not known, and a call that shows none may have had any."""
    assert not passes(
        {"not_called": "delete", "arguments": {"path": "/"}}, [{"role": "assistant", "tool_calls": [call]}]
    )


def test_a_result_says_nothing_of_the_arguments():
    """So it does not make a call with other arguments a forbidden one."""
    assert passes({"not_called": "search", "arguments": {"path": "/"}}, legacy(["search"]))
    assert not passes({"not_called": "search"}, legacy(["search"])[2:])


def test_what_a_request_says_of_tools_is_no_call():
    """Limits, choices, definitions and the ids of results name tools without calling any."""
    content = {
        "messages": [{"role": "user", "content": "Please."}, {"role": "tool", "tool_call_id": "c", "content": "ok"}],
        "parallel_tool_calls": True,
        "max_tool_calls": 3,
        "tool_choice": {"type": "function", "function": {"name": "delete"}},
        "tools": [{"type": "function", "function": {"name": "delete", "parameters": {}}}],
        "usage": {"server_tool_use": {"web_search_requests": 0}, "service_tier": "standard"},
    }
    assert passes({"not_called": "delete"}, content)
    assert passes({"not_called": "delete"}, {**content, "usage": None})


def test_what_has_a_role_or_an_answer_is_no_request_of_a_tool():
    """A person's message that calls itself JSON-RPC, or a server's answer, is not what the assistant called."""
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "search"}}
    assert passes({"called": "search"}, [call])
    assert not passes({"called": "search"}, [{**call, "role": "user"}])
    assert not passes({"called": "search"}, [{**call, "result": {}}])


def test_arguments_that_cannot_be_read_are_any_arguments():
    """They do not prove a call that was asked for, and do not excuse one that was forbidden."""
    content = [{"role": "assistant", "tool_calls": [{"function": {"name": "rm", "arguments": '{"path": '}}]}]

    assert not passes({"called": "rm", "arguments": {"path": "/"}}, content)
    assert not passes({"not_called": "rm", "arguments": {"path": "/"}}, content)


def test_arguments_are_compared_as_json():
    """1 equals 1.0 and not true; further arguments do not matter; what an argument holds is compared whole."""
    content = [
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {"n": 1, "o": {"a": [1]}}}]}
    ]

    assert passes({"called": "f", "arguments": {"n": 1.0}}, content)
    assert not passes({"called": "f", "arguments": {"n": True}}, content)
    assert passes({"called": "f", "arguments": {"o": {"a": [1]}}}, content)
    assert passes({"called": "f", "arguments": {"o": {"a": [1.0]}}}, content)
    assert not passes({"called": "f", "arguments": {"o": {"a": [1, 2]}}}, content)
    assert not passes({"called": "f", "arguments": {"o": {"a": [True]}}}, content)
    assert not passes({"called": "f", "arguments": {"m": None}}, content)


WRONG = [
    {"called": ""},
    {"called": []},
    {"called": [1]},
    {"called": "a", "min": 0},
    {"called": "a", "min": 3, "max": 2},
    {"called": "a", "arguments": {}},
    {"called": "a", "arguments": "x"},
    {"not_called": " "},
    {"not_called": "a", "allow": []},
    {"call_order": ["a"]},
    {"call_order": "a"},
    {"call_order": ["a", "b"], "exact": "yes"},
    {"name": "call_order"},
]


@pytest.mark.parametrize("spec", WRONG, ids=json.dumps)
def test_wrong_parameters_are_refused_when_the_rule_is_made(spec):
    """The message names the rule."""
    with pytest.raises(UsageError, match="call"):
        rule_from_spec(spec)


def test_a_failed_rule_decides_before_a_model_is_asked():
    """As with every rule of severity error."""
    model = ScriptedModel({"criteria": [{"reasoning": "", "score": 1.0}]})
    judge = Judge(model)
    result = judge.evaluate_sync(chat(["delete"]), criteria="Is polite.", rules=[{"not_called": "delete"}])

    assert result.outcome == "failed"
    assert result.decided_by == "rule"
    assert "delete" in result.rule_results[0].message
    assert model.requests == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["assistant", "tool_use", "search", "function_call"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "type",
                    "content",
                    "name",
                    "usage",
                    "toolName",
                    "tool_calls",
                    "function",
                    "function_call",
                    "method",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_content_satisfies_a_demand_and_a_ban_of_one_tool(content):
    """Whatever the content is, nothing raises, and what counts as called is never taken for not called."""
    assert not (passes({"called": "search"}, content) and passes({"not_called": "search"}, content))


def test_messages_are_read_in_linear_time():
    """A long name full of what a wildcard could stop at is matched at once."""
    content = chat(["ab" * 200_000])

    assert not passes({"called": "*a*a*a*a*a*c"}, content)
    assert passes({"not_called": "*a*a*a*a*a*c"}, content)
