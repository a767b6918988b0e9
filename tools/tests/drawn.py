"""A page as a reader sees it: its rows by name, and what is drawn read back as times, by the labels of its axis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser

VOID = {"meta", "br"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def all(self, tag: str = "", class_: str = "") -> list[Node]:
        """The elements below it of a tag and with these classes, in their order."""
        return [node for node in self.walk() if tag in ("", node.tag) and set(class_.split()) <= node.classes]

    def one(self, tag: str = "", class_: str = "") -> Node:
        (found,) = self.all(tag, class_)
        return found

    def walk(self) -> Iterator[Node]:
        for child in self.children:
            if isinstance(child, Node):
                yield child
                yield from child.walk()

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def percent(self, name: str) -> float:
        place = self.attributes[name]
        assert place.endswith("%"), place
        return float(place[:-1])


class Page:
    """A page of a drain whose notice came at this time."""

    def __init__(self, html: str, notice: str = "2026-11-21T03:12:00") -> None:
        reader = _Reader()
        reader.feed(html)
        assert reader.open == [reader.root], "every element is closed"
        self.root = reader.root
        self._notice = datetime.fromisoformat(notice)

    def row(self, name: str) -> Node:
        """The row that has this name."""
        rows = [row for row in self.root.all(class_="row") if row.all(class_="name")[0].text.startswith(name)]
        assert len(rows) == 1, f"{len(rows)} rows of {name}"
        return rows[0]

    def pods(self) -> list[str]:
        """The pods' names, in the order in which they are read."""
        return [pod.text for pod in self.root.all(class_="pod")]

    def stretch(self, node: Node) -> tuple[int, int]:
        """From when until when a drawn element reaches, in milliseconds from the notice."""
        if node.tag == "line":
            return self._ms(node.percent("x1")), self._ms(node.percent("x2"))
        return self._ms(node.percent("x")), self._ms(node.percent("x") + node.percent("width"))

    def moment(self, node: Node) -> int:
        """At which millisecond from the notice a mark or an upright line stands."""
        return self._ms(node.percent("x" if "x" in node.attributes else "x1"))

    def _ms(self, place: float) -> int:
        """By the times of day that the axis is labelled with."""
        axis = self.root.all("svg", "axis")[0]  # A node that is open has one of its own.
        first, *_, last = axis.all("text", "clock")
        at_first, at_last = self._since_notice(first.text), self._since_notice(last.text)
        share = (place - first.percent("x")) / (last.percent("x") - first.percent("x"))
        return round(at_first + share * (at_last - at_first))

    def _since_notice(self, clock: str) -> float:
        at = datetime.combine(self._notice.date(), datetime.strptime(clock, "%H:%M:%S").time())
        return (at - self._notice).total_seconds() * 1000


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> where nothing of it is open"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def words(text: str) -> str:
    """Without the breaks between elements."""
    return re.sub(r"\s+", " ", text)
