"""A ledger in a file: complete, exact, and checked without the ledger."""

from __future__ import annotations

import asyncio
import json
import stat
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
import rfc8785

from adjudge import Ledger, UsageError
from adjudge.ledger import Head, create_signing_key, verify_export
from kit.ledgers import make_chain_result, make_result


async def write(folder: Path, **options) -> Head:
    """A ledger with all sorts of entries, one of them erased, exported to ``out.jsonl``."""
    async with Ledger(f"sqlite:///{folder / 'a.db'}", **options) as ledger:
        result = make_result()
        for value in (result, make_chain_result(result), result):
            await ledger.append(value, gate='é\u2028"\\')
        await ledger.append({"n": 2**60, "x": 1e21, "text": "\x00\u202e"}, kind="run", subject="\x7f\u2028é")
        await ledger.erase(4, "asked for", "me")
        return await ledger.export(folder / "out.jsonl")


@pytest.fixture(name="head")
def export(tmp_path: Path) -> Head:
    return asyncio.run(write(tmp_path, store_content="full"))


def test_an_export_verifies_without_the_ledger(head: Head, tmp_path: Path):
    """The file alone is enough, also for entries that were erased; its head is what ``export`` returned."""
    (tmp_path / "a.db").unlink()
    verification = verify_export(tmp_path / "out.jsonl", head=head)

    assert verification
    assert (verification.entries, verification.head, verification.erased) == (6, head, {4: 6})
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600


def test_an_export_is_checked_by_anybody(head: Head, tmp_path: Path):
    """A reader of JSON, RFC 8785 and SHA-256 are all that is needed."""
    prev = "0" * 64
    for line in (tmp_path / "out.jsonl").read_bytes().splitlines():
        entry = json.loads(line)
        members = {name: entry[name] for name in entry if name not in ("payload", "hash", "signature")}
        assert entry["hash"] == sha256(rfc8785.dumps(members)).hexdigest()
        assert entry["prev"] == prev
        if entry["payload"] is not None:
            assert entry["payload_hash"] == sha256(rfc8785.dumps(entry["payload"])).hexdigest()
        prev = entry["hash"]

    assert prev == head.hash


def test_every_changed_byte_of_an_export_is_found(head: Head, tmp_path: Path):
    """Replaced, removed or added, in a value or between values: nothing in the file goes unchecked."""
    raw = (tmp_path / "out.jsonl").read_bytes()
    random = Random(5)
    path = tmp_path / "changed.jsonl"
    for _ in range(1_500):
        place = random.randrange(len(raw))
        other = bytes([random.choice([raw[place] ^ 1 << random.randrange(8), 32, 48])])
        if other == raw[place : place + 1]:
            other += other
        path.write_bytes(random.choice([raw[:place] + other + raw[place + 1 :], raw[:place] + raw[place + 1 :]]))
        # The head stands beside the file: a newline lost at the end would else be all there is to see.
        if not path.read_bytes().startswith(raw):
            assert not verify_export(path, head=head), (place, other)


def test_lines_dropped_swapped_or_repeated_are_found(head: Head, tmp_path: Path):
    """The first line out of place is named; a dropped tail is found with the head."""
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "changed.jsonl"
    for changed, seq in (
        (lines[:2] + lines[3:], 3),
        ([lines[1], lines[0], *lines[2:]], 1),
        ([*lines[:2], lines[1], *lines[2:]], 3),
        (lines[:-1], 6 - 2),  # with its record the erasure is a loss
        (lines[:3], 4),
        ([], 1),
    ):
        path.write_bytes(b"".join(changed))
        assert verify_export(path, head=head).seq == seq
    path.write_bytes(b"".join(lines[:3]))
    assert verify_export(path).valid
    path.write_bytes(b"".join(lines) + b"\n")
    end = verify_export(path)
    assert (end.code, end.seq, end.entries) == ("unreadable", len(lines) + 1, len(lines))


@pytest.mark.parametrize(
    "text", [b"{}\n", b"[" * 100_000, b"\xff\n", b"null\n", b"x" * 100, b'{"seq":1e400}\n'], ids=range(6)
)
def test_a_file_that_is_no_export_is_a_finding(text: bytes, tmp_path: Path):
    """Whatever stands in it, the answer is a verdict and no traceback."""
    (tmp_path / "x.jsonl").write_bytes(text)

    assert verify_export(tmp_path / "x.jsonl").code == "unreadable"


def test_exports_do_not_write_over_anything(head: Head, tmp_path: Path):
    """A file that is there stays as it is, and one that cannot be read is said."""
    with pytest.raises(UsageError, match="File exists"):
        asyncio.run(Ledger(f"sqlite:///{tmp_path / 'a.db'}").export(tmp_path / "out.jsonl"))
    with pytest.raises(UsageError, match="cannot read"):
        verify_export(tmp_path / "none.jsonl")


def test_a_failed_export_leaves_no_file(tmp_path: Path):
    """Half an export would verify without a head."""
    with pytest.raises(UsageError, match="no ledger"):
        asyncio.run(Ledger(f"sqlite:///{tmp_path / 'none.db'}").export(tmp_path / "out.jsonl"))

    assert not (tmp_path / "out.jsonl").exists()


def test_an_export_to_a_full_disk_is_said(tmp_path: Path):
    """It is the file's trouble and not a crash, and half of it is gone."""
    resource = pytest.importorskip("resource")

    async def go() -> None:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
            await ledger.append({"long": "x" * 300_000}, kind="run")
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # what a full disk does, for one process
            try:
                await ledger.export(tmp_path / "out.jsonl")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with pytest.raises(UsageError, match=r"cannot export to .*: File too large; name a new file"):
        asyncio.run(go())

    assert not (tmp_path / "out.jsonl").exists()


def test_signed_exports_are_checked_with_the_key(tmp_path: Path, require):
    """The signatures stand in the file; another key's do not count."""
    from importlib.util import find_spec

    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    public, other = create_signing_key(tmp_path / "key.pem"), create_signing_key(tmp_path / "other.pem")
    asyncio.run(write(tmp_path, key=tmp_path / "key.pem"))

    assert verify_export(tmp_path / "out.jsonl", public_key=public).signatures == "pinned"
    assert verify_export(tmp_path / "out.jsonl").signatures == "own"
    assert verify_export(tmp_path / "out.jsonl", public_key=other).code == "signature_invalid"
