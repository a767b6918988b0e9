"""What is drawn for a page and by no tool: the way of a notice."""

from __future__ import annotations

from pathlib import Path

from receipt_timeline.markup import Child, element
from receipt_timeline.sheet import sheet

STYLE = (Path(__file__).parent / "drawings.css").read_text()


def drawing(name: str, *parts: Child) -> str:
    """A document with a drawing of this kind."""
    return sheet(name, element("style", STYLE), element("main", *parts, class_=name))
