"""The pictures of docs/, and what each is made from. `scripts/pictures` makes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from receipt_timeline.drain import drains_of
from receipt_timeline.fleet_page import fleet_page
from receipt_timeline.page import page
from receipt_timeline.receipt import read

from . import receipts
from .drawn import Page

DOCS = Path(__file__).parents[2] / "docs"
# What the pictures said when they were made.
WORDS = DOCS / "pictures.json"


@dataclass(frozen=True)
class Picture:
    file: str
    receipts: Callable[[], list[receipts.Json]]
    width: int = 900
    # What is below is cut off.
    height: int = 1200
    dark: bool = False

    def html(self) -> str:
        drains = drains_of([read(document) for document in self.receipts()])
        return page(drains[0]) if len(drains) == 1 else fleet_page(drains)


def words_of(picture: Picture) -> str:
    """A sum over what a reader reads in it. Its looks may change without the picture being wrong."""
    body = Page(picture.html()).root.one("body")
    return hashlib.sha256(re.sub(r"\s+", " ", body.text).encode()).hexdigest()


PICTURES = [
    Picture("timeline-light.png", receipts.in_the_readme, height=1170),
    Picture("timeline-dark.png", receipts.in_the_readme, height=1170, dark=True),
    Picture("timeline-phone.png", receipts.in_the_readme, width=500),
    Picture("timeline-300-pods.png", lambda: [receipts.of_300_pods()]),
    Picture("timeline-storm.png", lambda: receipts.storm(500), height=1300),
    Picture("timeline-storm-dark.png", lambda: receipts.storm(500), height=1300, dark=True),
]
