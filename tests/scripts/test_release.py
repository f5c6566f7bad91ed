"""A release from the commit that is checked out: the same bytes twice, described, and installed from an index."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.house import ROOT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.full,
]


def start(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(name="release", scope="module")
def provide_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release")
    done = start("release", "--rehearse", "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out


def test_the_sums_are_those_of_every_file(release: Path):
    """The sums are those of every file."""
    sums = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text("utf-8").splitlines())

    files = {file.name for file in release.iterdir()} - {"SHA256SUMS"}
    assert len(files) == 4
    assert sums == {name: hashlib.sha256((release / name).read_bytes()).hexdigest() for name in files}


def test_the_provenance_names_the_commit_and_the_files(release: Path):
    """The provenance names the commit and the files by their digests."""
    statement = json.loads(next(release.glob("*.provenance.json")).read_text("utf-8"))

    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    built = statement["predicate"]["buildDefinition"]
    assert built["resolvedDependencies"][0]["digest"] == {"gitCommit": head.stdout.strip()}
    digests = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert len(digests) == 2
    assert all(hashlib.sha256((release / name).read_bytes()).hexdigest() == value for name, value in digests.items())


def test_the_sbom_lists_what_the_wheel_installs_with_digests(release: Path):
    """The SBOM lists what the wheel installs, each with the digest of its files."""
    sbom = json.loads(next(release.glob("*.cdx.json")).read_text("utf-8"))

    names = {component["name"] for component in sbom["components"]}
    assert sbom["bomFormat"] == "CycloneDX"
    assert names >= {"aiohttp", "msgspec", "fastapi", "scipy", "ray"}
    for component in sbom["components"]:
        assert any(reference["hashes"] for reference in component["externalReferences"])


def test_a_release_needs_its_tag_and_a_dated_changelog(tmp_path: Path):
    """Without ``--rehearse`` nothing is built where the tag, or the date in the changelog, is missing."""
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", "--no-tags", str(ROOT), str(copy)], check=True)
    done = subprocess.run(
        [sys.executable, str(copy / "scripts" / "release")], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "the tag v" in done.stderr
    assert not (copy / "dist").exists()


def test_it_installs_from_an_index(release: Path):
    """It installs from an index, with each extra alone, with every Python that is here."""
    done = start("try_release", str(release))

    assert done.returncode in {0, 3}, done.stderr  # 3: a supported Python is not here
    assert "failed" not in done.stdout
