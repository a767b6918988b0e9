"""Elements of HTML and SVG.

Text goes in as text and is escaped when the document is written, so that nothing in a receipt can become markup.
"""

from __future__ import annotations

from typing import Union
from xml.etree.ElementTree import Element, tostring

Child = Union[Element, str, None]


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """An element; `class_` and `stroke_width` are the attributes `class` and `stroke-width`."""
    made = Element(tag, {name.strip("_").replace("_", "-"): str(value) for name, value in attributes.items()})
    for child in children:
        append(made, child)
    return made


def append(parent: Element, child: Child) -> None:
    """Puts a text or an element behind what is there; nothing for None."""
    if isinstance(child, str):
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + child
        else:
            parent.text = (parent.text or "") + child
    elif child is not None:
        parent.append(child)


def percent(value: float) -> str:
    return f"{value:.3f}%"


def document(root: Element) -> str:
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"
