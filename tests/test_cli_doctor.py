"""``adjudge doctor``: which judges are here, whom they can contact, and whether their replies can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import cli_support
from adjudge.config import judges as _local
from cli_support import WORDS, Line, serve


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli_support.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def configure(text: str) -> None:
    Path("adjudge.toml").write_text(text, encoding="utf-8")


def test_nothing_is_configured(line: Line):
    """Nothing here is not a fault: it says what to set, and that no known-bad reply passed."""
    ran = line("doctor")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "configuration: none (no adjudge.toml here)",
        "keys set: none",
        "hosts this can contact: none",
        "judges: none; set a provider's key, start a local server, or write adjudge.toml",
        "known-bad replies: 21 planted, 0 passed",
    ]


def test_a_judge_that_works(line: Line):
    """Four questions with known answers: how many replies could be read, and how many verdicts were right."""
    with serve() as provider:
        ran = line("doctor", "--judge", provider.spec)

        assert len(provider.bodies) == 4
    assert ran.status == 0
    assert f"  {provider.spec}: 4 of 4 replies readable, 2 of 4 verdicts as expected" in ran.out


def test_everything_that_is_configured_is_asked(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Judges of the file, seats at any depth, providers with a key and local servers; and whom all this can contact."""
    with serve() as one, serve() as two, serve() as local:
        configure(f'[judges.outer]\nseats = ["inner", "{one.spec}"]\n[judges.inner]\nseats = ["{two.spec}"]\n')
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        monkeypatch.setattr(_local, "LOCAL_PORTS", ((local.port, "Ollama"),))
        ran = line("doctor", "--json")
        asked = [len(provider.bodies) for provider in (one, two, local)]
        hosts = sorted(f"127.0.0.1:{provider.port}" for provider in (one, two, local))

    document = ran.document
    assert ran.status == 0
    assert [item["judge"] for item in document["judges"]] == ["outer", "inner", "openai:gpt-6.1-terra", local.spec]
    assert [seat["name"] for seat in document["judges"][0]["seats"]] == ["inner", one.spec]
    assert document["hosts"] == hosts
    assert asked == [8, 8, 4]
    assert document["keys"] == ["OPENAI_API_KEY"]
    assert document["config"] == "adjudge.toml"
    assert len(document["config_digest"]) == 64
    assert document["known_bad_replies"] == {"planted": 21, "passed": []}
    assert "sk-secret" not in ran.out + ran.err


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


def test_offline_asks_nobody(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Neither judges nor local ports: what can be found out without a connection, and no more."""
    with serve() as provider:
        monkeypatch.setattr(_local, "LOCAL_PORTS", ((provider.port, "Ollama"),))
        configure(f'[judges.a]\nseats = ["{provider.spec}"]\n')
        ran = line("doctor", "--offline")

        assert provider.bodies == []
    assert ran.status == 0
    assert "judge a:\n  a: not asked\n" in ran.out
    assert line("doctor", "--offline", "--json").document["offline"] is True


def test_a_judge_without_its_key(line: Line):
    """Wrong usage, also offline: the variable is named."""
    configure('[judges.a]\nseats = ["openai:m", "mistral:m"]\n')
    for arguments in (["--offline"], []):
        ran = line("doctor", *arguments)
        assert ran.status == 2
        assert ran.err == (
            "adjudge: judge a, openai:m: openai:m needs a key: set OPENAI_API_KEY\n"
            "adjudge: judge a, mistral:m: mistral:m needs a key: set MISTRAL_API_KEY\n"
        )


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

    assert (ran.status, ran.err) == (
        2,
        "adjudge: rubric login: gone.yaml does not exist, so no rubric can be read from it\n",
    )


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


def test_a_known_bad_reply_that_passes_is_the_worst_news(line: Line, monkeypatch: pytest.MonkeyPatch):
    """If a reader ever took one, the doctor would say which and exit with 1."""
    from adjudge.cli.commands import doctor as _planted
    from adjudge.testing import ScriptedModel

    good = {"criteria": [{"name": "true", "reasoning": "", "score": 1.0}]}
    monkeypatch.setattr(_planted, "FaultyModel", lambda model, faults: ScriptedModel(good))
    monkeypatch.setattr(_planted, "FAULTS", ("prose",))
    ran = line("doctor")

    assert ran.status == 1
    assert "adjudge: a known-bad reply passed: prose through one judge\n" in ran.err
    assert "known-bad replies: 1 planted, 8 passed" in ran.out
