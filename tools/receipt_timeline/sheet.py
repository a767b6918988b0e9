"""Parts of every page: title, style, shapes, and a policy by which it loads nothing and runs nothing."""

from __future__ import annotations

import pkgutil
from xml.etree.ElementTree import Element

from .marks import shapes, symbol
from .markup import Child, document, element

STYLE = (pkgutil.get_data("receipt_timeline", "page.css") or b"").decode()
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

# How an ending looks; every other one is good.
ENDINGS = {"failed": "lost", "continued": "handed-on", "ignored": "stayed"}


def sheet(title: str, *parts: Child) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", STYLE),
    )
    return document(element("html", head, element("body", shapes(), *parts), lang="en"))


def shape_of(ending: str) -> str:
    return ENDINGS.get(ending, "done")


def badge(ending: str) -> Element:
    return element("span", symbol(shape_of(ending)), ending, class_=f"ending {shape_of(ending)}")


def legend(keys: list[tuple[bool, Element, str]]) -> Element:
    entries = (element("li", drawn, meaning) for is_used, drawn, meaning in keys if is_used)
    return element("ul", *entries, class_="legend")
