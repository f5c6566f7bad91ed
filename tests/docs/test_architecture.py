"""The page on architecture speaks of the code as it is."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from kit import house
from kit.layers import LAYERS

PAGE = (house.ROOT / "docs" / "architecture.md").read_text("utf-8")
PATHS = sorted(set(re.findall(r"`((?:\w+/)+[\w.]*|\w+\.py)`", PAGE)))
OUTSIDE = ("docs/", "src/", "scripts/", "tests/")


@pytest.mark.parametrize("path", PATHS)
def test_every_path_that_is_named_exists(path: str):
    """A file or folder of the package, or of the repository where the path says so."""
    base = house.ROOT if path.startswith(OUTSIDE) else house.PACKAGE

    assert (base / path).is_dir() if path.endswith("/") else (base / path).is_file()


def test_the_picture_has_every_package_in_its_place():
    """Each package once, modules on their own or not; none is drawn in a band above one that it is below."""
    root = ET.parse(house.ROOT / "docs" / "images" / "layers.svg").getroot()
    texts = [item for item in root.iter() if item.get("class") == "layer"]
    bands = [item for item in root.iter() if item.tag.endswith("rect") and item.get("x") == "10"]
    tops = [float(band.get("y", "")) for band in bands]
    place = {text.text: sum(top < float(text.get("y", "")) for top in tops) for text in texts}

    assert len(texts) == len(place)
    assert {layer for layer in LAYERS if (house.PACKAGE / layer).is_dir()} <= set(place) <= set(LAYERS)
    assert len(tops) > 1
    drawn = [place[layer] for layer in LAYERS if layer in place]
    assert drawn == sorted(drawn, reverse=True)
