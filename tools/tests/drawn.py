"""A page read back: its elements and the names of its pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
    def __init__(self, html: str) -> None:
        reader = _Reader()
        reader.feed(html)
        assert reader.open == [reader.root], "every element is closed"
        self.root = reader.root

    def pods(self) -> list[str]:
        """The pods' names, in the order in which they are read."""
        return [pod.text for pod in self.root.all(class_="pod")]


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
