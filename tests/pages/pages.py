"""The pages of the repository, as the tests of this folder read them: their prose, their headings and their links."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("crates/*/README.md")])
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


@cache
def text(page: str | Path) -> str:
    return (ROOT / page).read_text()


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: str | Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    without_code = re.sub(r"`[^`\n]*`", "`", prose(page))
    return [target or source for _, target, source in LINK.findall(without_code)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).strip().replace(" ", "-")
        again = found.count(plain)
        found += [plain, f"{plain}-{again}"] if again else [plain]
    return set(found)


def section(page: str | Path, heading: str) -> str:
    """What stands under a heading, with its subsections."""
    marks, _ = heading.split(" ", 1)
    (body,) = re.findall(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(marks)}}} |\Z)", text(page), re.MULTILINE | re.DOTALL)
    return body


def rows(table: str) -> list[list[str]]:
    """The cells of each row of the tables in a text, without their heads."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    heads = {at - 1 for at, line in enumerate(lines) if re.fullmatch(r"[| :-]+", line)}
    body = [line for at, line in enumerate(lines) if at not in heads and at - 1 not in heads]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in body]


@cache
def code() -> str:
    """All sources that a function is made of, with each text on one line."""
    files = [file for folder in ("crates", "functions") for file in sorted((ROOT / folder).rglob("*.rs"))]
    return re.sub(r"\\\n\s*", "", "\n".join(file.read_text() for file in files))
