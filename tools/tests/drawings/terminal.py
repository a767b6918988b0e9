"""A command and what it prints, as a terminal shows it with its colours."""

from __future__ import annotations

import re

from receipt_timeline.markup import append, element

from . import drawing

PAINTED = re.compile(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m")


def terminal(command: str, printed: str) -> str:
    screen = element("pre", element("span", "$ ", class_="c36"), f"{command}\n")
    at = 0
    for found in PAINTED.finditer(printed):
        append(screen, printed[at : found.start()])
        append(screen, element("span", found[2], class_=" ".join(f"c{code}" for code in found[1].split(";"))))
        at = found.end()
    append(screen, printed[at:])
    return drawing("terminal", screen)
