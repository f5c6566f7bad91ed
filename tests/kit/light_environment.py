"""A pytest plugin that hides the packages which ./scripts/test does not install: ``-p kit.light_environment``."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def list_requirements(group: str, groups: dict[str, Any]) -> Iterator[Requirement]:
    """The requirements of a dependency group, and of those that it includes."""
    for item in groups[group]:
        if isinstance(item, str):
            yield Requirement(item)
        else:
            yield from list_requirements(item["include-group"], groups)


def find_distributions() -> set[str]:
    """The distributions that the light environment has: of the group ``light``, and all that they need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = list(list_requirements("light", project["dependency-groups"]))
    needed += [Requirement(text) for text in project["project"]["dependencies"]]
    seen: set[tuple[str, str]] = set()
    names = {"adjudge", "pip", "setuptools"}
    while needed:
        requirement = needed.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            names.add(name)
            try:
                texts = requires(name) or []
            except PackageNotFoundError:
                continue
            more = [Requirement(text) for text in texts]
            needed += [one for one in more if one.marker is None or one.marker.evaluate({"extra": extra})]
    return names


class Hider:
    """Finds no module of a hidden package, but what the path has of that name besides: a folder of tests is found."""

    def __init__(self, modules: frozenset[str]) -> None:
        self.modules = modules

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise what Python raises where a package is absent; leave every other module to the next finder."""
        if name.partition(".")[0] in self.modules:
            rest = [place for place in (sys.path if path is None else path) if Path(place).name != "site-packages"]
            spec = PathFinder.find_spec(name, rest, target)
            if spec is not None:
                return spec
            raise ModuleNotFoundError(f"No module named {name!r}, which is hidden here", name=name)
        return None


def find_hidden_modules() -> frozenset[str]:
    """The modules of the packages that the light environment lacks."""
    light = find_distributions()
    owners_by_module = packages_distributions().items()
    return frozenset(
        module for module, owners in owners_by_module if not any(canonicalize_name(owner) in light for owner in owners)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Hide them before the first file of tests; by now pytest has loaded the plugins that hidden packages bring."""
    sys.meta_path.insert(0, Hider(find_hidden_modules()))
