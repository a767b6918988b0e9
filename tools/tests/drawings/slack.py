"""Messages in Slack's block format, about as Slack shows them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from receipt_timeline.markup import append, element

from . import drawing

SNAPSHOTS = Path(__file__).parents[3] / "functions/announce/src/snapshots"


def channel(*names: str) -> str:
    """The messages of these tests of functions/announce/src/slack.rs, one after the other."""
    return drawing("slack", *(_message(_snapshot(name)) for name in names))


def _snapshot(name: str) -> Any:
    text = (SNAPSHOTS / f"spillway_announce__slack__tests__{name}.snap").read_text()
    return json.loads(text.split("---\n", 2)[2])


def _message(message: Any) -> Element:
    app = element("p", element("strong", "Spillway"), " ", element("small", "APP"))
    return element("article", element("i", class_="face"), element("div", app, *map(_block, message["blocks"])))


def _block(block: Any) -> Element:
    if block["type"] == "header":
        return element("h2", block["text"]["text"])
    texts = [block["text"]] if block["type"] == "section" else block["elements"]
    return element("p", *(_marked(text["text"]) for text in texts), class_=block["type"])


def _marked(text: str) -> Element:
    """Slack's markup: what stands between asterisks is bold, and three characters are escaped. Of a time only what stands for it
    where the reader's clock is not known."""
    text = re.sub(r"<!date\^[^|>]*\|([^>]+)>", r"\1", text)
    span = element("span")
    for number, part in enumerate(re.split(r"\*([^*\n]+)\*", text)):
        append(span, element("strong", html.unescape(part)) if number % 2 else html.unescape(part))
    return span
