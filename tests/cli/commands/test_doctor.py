"""``adjudge doctor``: which judges are here, whom they can contact, and whether their replies can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.cli import WORDS, Line, serve
from kit.judges import names

pytestmark = pytest.mark.timed


def configure(text: str) -> None:
    Path("adjudge.toml").write_text(text, encoding="utf-8")


def test_nothing_is_configured(line: Line):
    """Nothing here is not a fault: it says what to set, and that no known-bad reply passed."""
    ran = line("doctor")

    assert (ran.status, ran.err) == (0, "")
    configuration, keys, hosts, judges, replies = ran.out.splitlines()[:5]
    assert names(configuration, "configuration: none", "no adjudge.toml")
    assert names(keys, "keys", "none")
    assert names(hosts, "hosts", "none")
    assert names(judges, "judges: none", "a provider's key", "a local server", "adjudge.toml")
    assert names(replies, "known-bad", "23 planted, 0 passed")


def test_it_explains_what_was_planted(line: Line):
    """Which kinds of damage, and what it means that none passed."""
    out = line("doctor").out

    assert "\n  nothing, or cut off: empty, truncated, cut off\n" in out
    assert "\n  without the token, or with a wrong one: prose, wrong token\n" in out
    assert "\n  a refusal: refusal\n" in out
    assert out.endswith(
        "none did, so a reply that is damaged like this, by chance or on purpose, lets nothing through here\n"
    )


def test_a_judge_that_works(line: Line):
    """Four questions with known answers: how many replies could be read, and how many verdicts were right."""
    with serve() as provider:
        ran = line("doctor", "--judge", provider.spec)

        assert len(provider.bodies) == 4
    assert ran.status == 0
    assert f"  {provider.spec}: 4 of 4 replies readable, 2 of 4 verdicts as expected" in ran.out


def test_a_wrong_verdict_is_a_warning_and_no_failed_check(line: Line):
    """The exit status is about who can be asked and read: the help says so, and the warning what to do."""
    with serve() as provider:
        shown, written = line("doctor", "--judge", provider.spec), line("doctor", "--judge", provider.spec, "--json")

    assert (shown.status, written.status) == (0, 0)
    assert "    warning: 2 of 4 verdicts are wrong; take a larger model\n" in shown.out
    assert written.document["judges"][0]["seats"][0]["warnings"] == ["2 of 4 verdicts are wrong; take a larger model"]
    assert "Wrong verdicts of a model, and" in " ".join(line("doctor", "--help").out.split())


def test_hosts_of_rubrics_are_listed(line: Line):
    """A rubric can name a model, so a configuration can contact that model's host as well."""
    configure('[judges.a]\nseats = ["http://one.example:81/v1#m"]\n[rubrics]\nr = "r.yaml"\n')
    Path("r.yaml").write_text(
        "name: R\nmodel: http://two.example/v1#m\ncriteria:\n  - {name: a, description: b}\n", encoding="utf-8"
    )
    ran = line("doctor", "--offline")

    assert "hosts this can contact: one.example:81, two.example" in ran.out


def test_proxies_are_listed_without_their_passwords(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Requests go through them, so they are contacted too; of their addresses only host and port are shown."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128/")
    monkeypatch.setenv("HTTP_PROXY", "proxy.example:3128")
    ran = line("doctor", "--offline")

    assert "through the proxies: proxy.example:3128\n" in ran.out
    assert line("doctor", "--offline", "--json").document["proxies"] == ["proxy.example:3128"]
    assert "secret" not in ran.out + ran.err


@pytest.mark.parametrize(
    "address",
    [
        "http://[half:secret",
        "http://me:secret@proxy.example:port/",
        "http://secret\u2100.example",
        "http://me:secret/half@proxy.example:3128",
        "http://secret:12/half@proxy.example:3128",
        "http://:secret@",
    ],
)
def test_a_proxy_that_cannot_be_taken_apart_is_not_shown(line: Line, monkeypatch: pytest.MonkeyPatch, address: str):
    """Half a bracket, a port that is no number, a slash inside the password: any part of it may be the password."""
    monkeypatch.setenv("HTTPS_PROXY", address)
    ran = line("doctor", "--offline")

    assert ran.status == 0
    assert "through the proxies: (unreadable)\n" in ran.out
    assert line("doctor", "--offline", "--json").document["proxies"] == ["(unreadable)"]
    assert "secret" not in ran.out + ran.err


KEYS = ("OPENAI_API_KEY", "MISTRAL_API_KEY")


def test_a_judge_without_its_key(line: Line):
    """Wrong usage, also offline: the variable is named."""
    configure('[judges.a]\nseats = ["openai:m", "mistral:m"]\n')
    for arguments in (["--offline"], []):
        ran = line("doctor", *arguments)
        assert ran.status == 2
        for message, model, key in zip(ran.err.splitlines(), ("openai:m", "mistral:m"), KEYS, strict=True):
            assert names(message, "judge a", model, f"set {key}")


def test_a_judge_that_cannot_be_opened(line: Line):
    """Wrong usage: the others are asked all the same."""
    with serve() as provider:
        configure(f'[judges.a]\nseats = ["opnai:m"]\n[judges.b]\nseats = ["{provider.spec}"]\n')
        ran = line("doctor")

    assert ran.status == 2
    assert "judge a: cannot be opened\n" in ran.out
    assert "4 of 4 replies readable" in ran.out
    assert ran.err.startswith("adjudge: judge a: adjudge.toml: [judges.a]: 'opnai:m' is not the name of a model")


def test_a_rubric_that_cannot_be_read(line: Line):
    """Wrong usage: rubrics of the file belong to the configuration."""
    configure('[rubrics]\nlogin = "gone.yaml"\n')
    ran = line("doctor")

    assert ran.status == 2
    assert names(ran.err, "rubric login", "gone.yaml does not exist")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("mode", ["500", "401"])
def test_a_judge_that_cannot_be_reached(line: Line, mode: str):
    """The world failed: 3, with what happened."""
    with serve(mode=mode) as provider:
        ran = line("doctor", "--judge", provider.spec)

    assert ran.status == 3
    assert "4 of 4 not answered, 0 of 0 replies readable" in ran.out
    assert ran.err.startswith(f"adjudge: judge {provider.spec}: error: 127.0.0.1:{provider.port} answered {mode}")


def test_a_judge_that_hangs(line: Line):
    """``--timeout`` limits each question."""
    with serve(mode="hang") as provider:
        ran = line("doctor", "--judge", provider.spec, "--timeout", "0.05")

    assert ran.status == 3
    assert "timeout: no answer within 0.05 s" in ran.err


def test_replies_that_cannot_be_read(line: Line):
    """A judge that answers in prose is found: 1, with the share of its replies that can be read."""
    with serve(mode="prose") as provider:
        ran = line("doctor", "--judge", provider.spec)

    assert ran.status == 1
    assert "0 of 4 replies readable" in ran.out
    assert "unparseable: no object in the reply begins with the token" in ran.err
    assert "--no-token" not in ran.err


def test_replies_with_text_after_the_answer_are_counted(line: Line):
    """Those before a re-ask as well, so that it is seen what the rule costs with this model."""
    with serve(mode="chatty") as provider:
        ran = line("doctor", "--judge", provider.spec)
        seat = line("doctor", "--judge", provider.spec, "--json").document["judges"][0]["seats"][0]

    assert ran.status == 1
    assert "0 of 4 replies readable, 8 unparseable because text followed the answer" in ran.out
    assert (seat["readable"], seat["text_after"]) == (0, 8)


def test_a_judge_that_cannot_copy_the_token(line: Line):
    """Asked again without the token it can be read, so that is the advice."""
    with serve(mode="tokenless") as provider:
        ran = line("doctor", "--judge", provider.spec)
        configure(f'[judges.a]\nseats = ["{provider.spec}"]\ntoken = false\n')
        advised = line("doctor")

    assert ran.status == 1
    assert ran.err.endswith(
        "without the token 4 of 4 replies can be read, so it cannot copy eight characters; "
        "set token = false for it in adjudge.toml, or give --no-token\n"
    )
    assert (advised.status, advised.err) == (0, "")


def test_the_gravest_finding_is_the_status(line: Line):
    """Written wrong beats unreadable beats unreachable, as everywhere."""
    with serve(mode="prose") as prose, serve(mode="500") as down, serve() as good:
        arguments = [part for provider in (good, down, prose) for part in ("--judge", provider.spec)]

        assert line("doctor", *arguments).status == 1
        assert line("doctor", *arguments[:4]).status == 3
        assert line("doctor", *arguments[:2]).status == 0
        assert line("doctor", *arguments, "--judge", "nope").status == 2


def test_a_judge_of_rules_is_not_asked(line: Line):
    """It has no model that could answer, and nothing is wrong with that."""
    configure('[judges.a]\nseats = ["rules"]\n')
    ran = line("doctor")

    assert (ran.status, ran.err) == (0, "")
    assert "judge a:\n  a: not asked\n" in ran.out


def test_functions_are_asked_too(line: Line):
    """A function contacts nothing that could be known, and its replies are counted like any other's."""
    ran = line("doctor", "--judge", WORDS, "--json")
    [judge] = ran.document["judges"]

    assert ran.status == 1
    assert judge["seats"][0]["hosts"] == []
    assert judge["seats"][0]["readable"] < judge["seats"][0]["asked"] == 4
    assert ran.document["functions"] == [WORDS]


def test_a_function_behind_a_judges_name_is_no_judge_without_hosts(line: Line):
    """Whatever the judge is called in adjudge.toml, what the function contacts is not known."""
    configure(f'[judges.careful]\nseats = ["{WORDS}"]\n')

    assert f"hosts this can contact: none, and whatever {WORDS} contacts\n" in line("doctor", "--offline").out
