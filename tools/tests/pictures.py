"""The pictures of docs/, and what each is made from. `scripts/pictures` makes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from receipt_timeline.drain import Drain, drains_of
from receipt_timeline.fleet_page import fleet_page
from receipt_timeline.page import page
from receipt_timeline.receipt import read

from . import receipts
from .drawings.way import way
from .drawn import Page

DOCS = Path(__file__).parents[2] / "docs"
# What the pictures said when they were made.
WORDS = DOCS / "pictures.json"


@dataclass(frozen=True)
class Picture:
    file: str
    html: Callable[[], str]
    width: int = 900
    # What is below is cut off.
    height: int = 1200
    dark: bool = False


def _drains(documents: list[receipts.Json]) -> list[Drain]:
    return drains_of([read(document) for document in documents])


def a_drain(documents: list[receipts.Json]) -> str:
    (drain,) = _drains(documents)
    return page(drain)


def a_storm() -> str:
    return fleet_page(_drains(receipts.storm(500)))


def the_way() -> str:
    (drain,) = _drains(receipts.hook_of_forty_minutes())
    return way(drain)


@cache
def words_of(html: Callable[[], str]) -> str:
    """A sum over what a reader reads in it. Its looks may change without the picture being wrong."""
    body = Page(html()).root.one("body")
    return hashlib.sha256(re.sub(r"\s+", " ", body.text).encode()).hexdigest()


def _light_and_dark(name: str, html: Callable[[], str], **size: int) -> list[Picture]:
    return [Picture(f"{name}-light.png", html, **size), Picture(f"{name}-dark.png", html, dark=True, **size)]


PICTURES = [
    *_light_and_dark("timeline", lambda: a_drain(receipts.in_the_readme()), height=1170),
    Picture("timeline-300-pods.png", lambda: a_drain([receipts.of_300_pods()])),
    Picture("timeline-storm.png", a_storm, height=1300),
    *_light_and_dark("way", the_way),
    Picture("way-phone.png", the_way, width=500),
]
