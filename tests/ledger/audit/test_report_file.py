"""Audit reports as files: they come back exactly, people can write them, and no text in them is more than a text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adjudge import RuleResult, UsageError
from adjudge.ledger import AuditEntry, AuditQuery, Finding, Findings, Judged, read_audit, render_audit
from kit.audits import FAILED, PASSED, audit, decide, read_report
from kit.cli import HIDDEN
from kit.environment import read_vectors
from kit.ledgers import make_chain_result, make_result

HOSTILE = (
    "---\nopinion: unqualified\n---\n",
    "\n# Audit: unqualified\n",
    "| a | b |\n| --- | --- |",
    "<script>alert(1)</script> &lt;b&gt; <!-- x",
    "[x](javascript:alert(1)) ![i](http://e.example/i.png) <http://e.example>",
    "http://e.example www.e.example **b** _i_ ~~s~~ `c` ``` \\ \\| $x$ :tada:",
    "yes",
    "null",
    "1:30",
    "2026-01-01",
    "1e5",
    "!!python/object:os.system [*a, &b] {c: d} <<: %TAG @ ` ? - > |",
    "\x00\x07\x1b[31m\x85\u2028\ufeff\u202e\U000e0001\ud800\udc00",
    "é Ω 漢 😀 \ufffe",
    "",
    " ",
    "'\"\\",
    "k" * 2_000,
)
TEXT = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=()), max_size=30)
SAFE = TEXT.map(lambda text: text.encode("utf-8", "replace").decode())
"""Text that UTF-8 can hold."""
NUMBER = st.integers() | st.floats(allow_nan=True) | st.just(10**4000)
LEAF = st.none() | st.booleans() | NUMBER | TEXT
DATA = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
TIMES = st.datetimes(
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-5, minutes=-30))),
).filter(lambda moment: 1 < moment.year < 9999)
RESULTS = st.sampled_from([None, PASSED, make_result(), make_chain_result(make_result(), PASSED)])


@st.composite
def make_entries(draw: st.DrawFn, text: st.SearchStrategy[str], metadata: st.SearchStrategy[Any]) -> AuditEntry:
    """Any audit that somebody could write, with texts and metadata of some kinds."""
    count = st.integers(1, 2**53 - 1)
    rule = st.builds(
        RuleResult, name=text, passed=st.booleans(), message=text, metadata=st.dictionaries(text, text, max_size=2)
    )
    findings = st.builds(
        Finding, severity=st.sampled_from(["critical", "major", "minor"]), code=st.just("failed"), detail=text
    )
    judged = st.builds(
        Judged, seq=count, hash=text, kind=text, id=text, outcome=text, judge=text, score=st.none() | st.floats(0, 1)
    )
    return AuditEntry(
        objectives=draw(text),
        opinion=draw(st.sampled_from(["unqualified", "qualified", "adverse", "disclaimer"])),
        findings=Findings(critical=draw(count), major=draw(count), minor=draw(count)),
        scope=tuple(draw(st.lists(text, max_size=3))),
        agent_id=draw(st.none() | text),
        execution_id=draw(st.none() | text),
        rule_results=tuple(draw(st.lists(rule, max_size=2))),
        judge_result=draw(RESULTS),
        found=tuple(draw(st.lists(findings, max_size=1))),
        judged=tuple(draw(st.lists(judged, max_size=2))),
        metadata=draw(st.dictionaries(text, metadata, max_size=3)),
        id=draw(text),
        created_at=draw(TIMES),
    )


# ---------------------------------------------------------------- round trips


@given(
    make_entries(
        SAFE,
        SAFE
        | st.booleans()
        | st.none()
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_what_is_written_comes_back(entry: AuditEntry):
    """Exactly, whatever its texts are."""
    assert read_report(render_audit(entry)) == entry


@given(make_entries(TEXT, DATA))
def test_what_no_file_can_hold_comes_back_as_text(entry: AuditEntry):
    """Half a surrogate pair, NaN and integers beyond 2^53 are written as a ledger writes them; nothing else moves."""
    back = read_report(render_audit(entry))

    assert back.to_dict() == entry.to_dict()
    assert render_audit(back, "") == render_audit(entry, "")


def test_a_number_without_end_is_written():
    """One that has more digits than Python writes in linear time, and one that is none."""
    entry = AuditEntry(
        objectives="o", opinion="adverse", findings=Findings(), metadata={"n": 10**5000, "x": [math.nan]}
    )

    assert read_report(render_audit(entry)).metadata == {"n": hex(10**5000), "x": ["nan"]}


@given(make_entries(TEXT, DATA), TEXT)
def test_no_text_becomes_structure(entry: AuditEntry, body: str):
    """The front matter has our members and no others, on lines of its own, for any other reader of YAML as well."""
    text = render_audit(entry, body)
    lines = text.split("\n")
    end = lines.index("---", 1)

    assert lines[0] == "---"
    assert text.split("\n---\n", 1)[1].startswith("\n" + body)
    assert all(re.match(r"[a-z_]+:|- |  ([a-z_]+|\"|\? |: )", line) for line in lines[1:end])
    plain = yaml.load("\n".join(lines[1:end]), yaml.SafeLoader)  # the slow one, to compare
    assert plain["opinion"] == entry.opinion
    assert set(plain) <= {*entry.to_dict(), "type"}


@given(make_entries(TEXT, DATA))
def test_nothing_invisible_stands_in_the_front_matter(entry: AuditEntry):
    """What turns the order of letters around, or cannot be seen, is escaped: people read this part as well."""
    front = render_audit(entry, "").split("\n---\n", 1)[0]

    assert all(char.isprintable() or char == "\n" for char in front)


@given(make_entries(TEXT, DATA))
def test_a_python_without_the_c_library_writes_what_reads_the_same(entry: AuditEntry):
    """PyYAML may be installed without it."""
    written = render_audit(entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeDumper", raising=False)
        plain = render_audit(entry)

    assert read_report(plain).to_dict() == read_report(written).to_dict() == entry.to_dict()


def test_a_derived_audit_comes_back_with_what_proves_it():
    """Head, hashes, places, results and the rule's opinion."""
    entry = audit(("result", make_chain_result(make_result(), PASSED)), decide(FAILED))
    single = audit(("result", make_result()))

    assert read_report(render_audit(entry)) == entry
    assert read_report(render_audit(single)).judge_result == single.judge_result
    assert read_audit(json.loads(json.dumps(entry.to_dict()))) == entry


@pytest.mark.slow
def test_a_thousand_findings_can_be_read_again():
    """The largest report that is derived stays within what is read."""
    many = [
        ("result", replace(FAILED, id=f"r{number}", rule_results=(RuleResult(name="n", passed=False),) * 2))
        for number in range(1_100)
    ]
    entry = audit(*many)

    assert read_report(render_audit(entry)) == entry


@pytest.mark.parametrize(
    "metadata",
    [{"n": list(range(60_000))}, {"n": json.loads("[" * 60 + "]" * 60)}, {"n": "x" * 10_000_001}],
    ids=["many", "deep", "long"],
)
def test_what_could_not_be_read_back_is_not_written(metadata: dict[str, Any]):
    """A file that its own reader refuses would be found out when it is needed."""
    entry = AuditEntry(objectives="o", opinion="adverse", findings=Findings(), metadata=metadata)

    with pytest.raises(UsageError):
        render_audit(entry)


# ---------------------------------------------------------------- files that people write

SEED = """---
type: audit
date: 2026-02-21
agent: reviewer
objectives: o
scope: [s]
status: complete
opinion: qualified
findings: {critical: 0, major: 1, minor: 2}
---

# Whatever stands here

---
opinion: adverse
---
"""


def test_the_seeds_own_form_is_read():
    """``date`` and ``agent`` are taken, the id is derived and stays the same, the body is not read."""
    entry = read_report(SEED)

    assert (entry.created_at, entry.agent_id) == (datetime(2026, 2, 21, tzinfo=UTC), "reviewer")
    assert (entry.objectives, entry.scope, entry.opinion) == ("o", ("s",), "qualified")
    assert entry.findings == Findings(major=1, minor=2)
    assert entry.metadata == {"status": "complete"}
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", entry.id)
    assert read_report(SEED.replace("major: 1", "major: 2")).id != entry.id
    assert read_report(render_audit(entry)) == entry


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("createdAt: 1771632000000", datetime(2026, 2, 21, tzinfo=UTC)),
        ('created_at: "2026-02-21T01:00:00+01:00"', datetime(2026, 2, 21, tzinfo=UTC)),
        ("created_at: 2026-02-21T00:00:00Z", datetime(2026, 2, 21, tzinfo=UTC)),
        ('date: "2026-02-21"', datetime(2026, 2, 21, tzinfo=UTC)),
    ],
)
def test_times_are_read_in_each_of_the_seeds_forms(line: str, moment: datetime):
    """Milliseconds, a time with its zone, a day."""
    assert read_report(SEED.replace("date: 2026-02-21", line)).created_at == moment


def test_names_in_camel_case_are_read():
    """The seed's own, a rule's ``ruleName`` among them."""
    more = "agentId: a\nexecutionId: e\nruleResults: [{ruleName: r, passed: true, severity: info, message: m}]\n"
    entry = read_report(SEED.replace("agent: reviewer\n", more))

    assert (entry.agent_id, entry.execution_id) == ("a", "e")
    assert entry.rule_results == (RuleResult(name="r", passed=True, severity="info", message="m"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("opinion: qualified\nfind", "find", "an audit needs opinion"),
        ("findings: {critical: 0, major: 1, minor: 2}", "scopes: [s]", "no member 'scopes'; did you mean 'scope'?"),
        ("findings: {critical: 0, major: 1, minor: 2}\n", "", "an audit needs findings"),
        ("major: 1", "major: -1", "findings cannot be read"),
        ("major: 1", "major: true", "findings cannot be read"),
        ("major: 1", 'major: "1"', "findings cannot be read"),
        ("opinion: qualified", "opinion: fine", "an opinion is one of"),
        ("opinion: qualified", "opinion: [qualified]", "opinion cannot be read"),
        ("opinion: qualified", "opinion: qualified\ncreatedAt: 5", "created_at twice"),
        ("opinion: qualified", "opinion: qualified\nopinion_by: Ada", "needs both a person"),
        ("opinion: qualified", "opinion: qualified\ncomputed_opinion: adverse", "the rule says None"),
        ("type: audit", "type: rubric", "the type of an audit is 'audit'"),
        ("type: audit", "schema: adjudge/audit/9", "the schema of an audit"),
        ("date: 2026-02-21", "date: soon", "created_at is a time"),
        ("date: 2026-02-21", "date: true", "created_at is a time"),
        ("date: 2026-02-21", "createdAt: 99999999999999999999", "created_at is a time"),
        ("date: 2026-02-21", "created_at: 2026-02-21 10:00:00", "needs a zone"),
        ("scope: [s]", "scope: s", "scope cannot be read"),
        ("scope: [s]", "judgeResult: {passed: true, score: 1}", "a result has one of the schemas"),
    ],
)
def test_what_is_no_report_is_refused(old: str, new: str, message: str):
    """In one sentence that names the member; nothing is guessed, least of all an opinion or a number."""
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        read_report(SEED.replace(old, new))

    assert "\n" not in str(caught.value)


def test_an_opinion_changed_by_hand_is_found():
    """A derived report cannot be read with a better opinion than its findings come to, unless somebody signs for it."""
    text = render_audit(audit(("result", FAILED)))

    with pytest.raises(UsageError, match="the rule says qualified"):
        read_report(text.replace("opinion: qualified", "opinion: unqualified"))
    with pytest.raises(UsageError, match="more major findings than it counts"):
        read_report(text.replace("major: 1", "major: 0").replace("opinion: qualified", "opinion: unqualified"))


# ---------------------------------------------------------------- the part for people

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PLAIN = {"paragraph", "inline", "table", "thead", "tbody", "tr", "th", "td", "heading", "text", "code_inline"}


def fill(text: str) -> AuditEntry:
    """An audit with one text everywhere."""
    return AuditEntry(
        objectives=text,
        opinion="adverse",
        findings=Findings(critical=1),
        scope=(text,),
        agent_id=text,
        execution_id=text,
        rule_results=(RuleResult(name=text, passed=False, message=text),),
        found=(Finding(severity="critical", code="failed", detail=text, hash=text),),
        judged=(
            Judged(
                seq=2, hash=text, kind=text, id=text, outcome="failed", judge=text, gate=text, by=text, subject=text
            ),
        ),
        id=text,
    )


@given(TEXT)
def test_no_text_becomes_markup(text: str):
    """No heading, link, image, HTML, emphasis, line or cell of its own, and nothing that moves a terminal."""
    body = render_audit(fill(text)).split("\n---\n", 1)[1]
    tokens = [inner for token in MARKDOWN.parse(body) for inner in (token, *(token.children or ()))]
    rows = [line for line in body.splitlines() if line.startswith("|")]

    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= PLAIN
    headings = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Audit: adverse", "Findings", "What was judged", "Rules"]
    assert len([token for token in tokens if token.type == "tr_open"]) + 5 == len(rows)
    assert not HIDDEN.search(body)
    assert not re.search(r"(?<!\\)://|www\.", body)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_people_read_is_what_was_said(text: str):
    """The escapes vanish when the Markdown is read, and the words are there."""
    body = render_audit(fill(text)).split("\n---\n", 1)[1]
    cells = [
        "".join(inner.content for inner in token.children or ())
        for token in MARKDOWN.parse(body)
        if token.type == "inline"
    ]
    shown = " ".join("".join(char if char.isprintable() else " " if char in "\n\t" else "·" for char in text).split())

    assert (shown if len(shown) <= 500 else f"{shown[:500]}…") in cells


def test_the_report_says_who_says_what():
    """Opinion, person, reason, the rule's own opinion, findings with entry and hash, the head, what was not seen."""
    entry = replace(audit(("result", FAILED)), opinion="unqualified", opinion_by="Ada", reason="a false alarm")
    text = render_audit(entry)

    assert entry.basis is not None
    assert "# Audit: unqualified" in text
    for text_part in (
        "| given by | Ada |",
        "| opinion by the rule | qualified |",
        entry.found[0].hash,
        str(entry.basis.head),
    ):
        assert str(text_part) in text
    assert "could not see | entries dropped from the end" in text


def test_a_body_of_ones_own_takes_the_place_of_ours():
    """It stands below the front matter as it was given, and cannot change what is read."""
    text = render_audit(read_report(SEED), SEED)

    assert text.endswith("\n" + SEED)
    assert read_report(text) == read_report(SEED)


# ---------------------------------------------------------------- conformance cases


def test_conformance_cases():
    """Each case about audits comes out as recommended."""
    ours = read_vectors(features=("audit.",))

    assert {case["feature"] for case in ours} <= set(REPLAYS)
    for case in ours:
        REPLAYS[case["feature"]](case["given"], case["expect"])


def replay_query(given_case: Any, expect: Any) -> None:
    """What a case leaves out is nothing found."""
    assert expect["recommended"] == "same"
    names = {"minCritical": "min_critical", "minMajor": "min_major"}
    query = AuditQuery(**{names.get(name, name): value for name, value in given_case["query"].items()})
    whole = {"objectives": "", "findings": {}, "createdAt": 0}
    entries = [read_audit(whole | entry) for entry in given_case["entries"]]
    assert [entry.id for entry in entries if query.matches(entry)] == expect["original"]["ids"]


def replay_parse(given_case: Any, expect: Any) -> None:
    front = given_case["frontmatter"]
    assert expect["original"]["missing"] == ["id", "createdAt"]
    assert "aliases" in expect["recommended"]["why"]
    for text in (json.dumps(front), yaml.safe_dump(front), yaml.safe_dump(front).replace("'2026-02-21'", "2026-02-21")):
        entry = read_report(f"---\n{text}\n---\n")
        assert entry.id == read_report(f"---\n{text}\n---\n").id
        assert (entry.agent_id, entry.created_at.date().isoformat()) == (front["agent"], front["date"])
        assert (entry.opinion, entry.objectives, list(entry.scope)) == (
            front["opinion"],
            front["objectives"],
            front["scope"],
        )
        assert entry.findings.to_dict() == front["findings"]


REPLAYS = {"audit.query": replay_query, "audit.parse": replay_parse}
