"""The command `spillway doctor`: prints the function's report, or what will hold the drain of given nodes."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from pathlib import Path

from cli import FINDING, FINE, Failed, files, stack
from cli import options as common
from cli.aws import Aws
from cluster_enrollment import doctor

from . import forecast
from .page import Page
from .report import Status, read

WIDTH = 80
LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
# A row of a table and the names in its first cell; a section.
ROW = re.compile(r"^\| ([^|]*`[^|]*) \| (.+) \|$", re.MULTILINE)
KEY = re.compile(r"`([A-Za-z-][\w.-]+)`")
SECTION = re.compile(r"^##+ ([^\n]+)\n+(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "doctor",
        "Has the function of a stack check whether the next notice would be handled, and prints its report. With --node or --group: prints "
        "which pods will hold a drain of these nodes, by which budget or annotation, and for how long. Rights: cloudformation:DescribeStacks "
        "and lambda:InvokeFunction; for nodes, those of kubectl.",
        "spillway doctor prod --group workers",
    )
    made.add_argument("cluster", nargs="?", default="", help="only this cluster; default: all. With --node or --group: default is kubectl's context")
    made.add_argument("--file", metavar="FILE", help="print this report, or the log with its line, without a request; - is standard input")
    made.add_argument("--explain", metavar="ID", help="print the meaning of a finding or an error type, from the pages")
    made.add_argument("--node", metavar="NODE", action="append", default=[], help="a node whose drain is to be forecast; may be repeated")
    made.add_argument("--group", metavar="GROUP", help="the nodes of this Auto Scaling group, for example before an instance refresh")
    return made


def run(options: argparse.Namespace) -> int:
    if options.explain:
        print(explained(options.explain))
        return FINE
    if options.node or options.group:
        return forecast.run(options)
    if options.file is None:
        deployed = stack.read(Aws(options.region), options.stack)
        text = json.dumps(doctor.ask(Aws(deployed.region), deployed, options.cluster), indent=2)
    else:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8", errors="replace")
    report = read(text)
    print(text if options.output == "json" else Page(WIDTH, common.colours()).of(report))
    return FINDING if report.status >= Status.UNKNOWN else FINE


def explained(wanted: str) -> str:
    """Rows and sections of the pages for a finding, a check, an error type, an alarm or a section's anchor."""
    docs = files.root() / "docs"
    page = "".join((docs / name).read_text(encoding="utf-8") for name in ("doctor.md", "troubleshooting.md"))
    rows = [(key, meaning) for keys, meaning in ROW.findall(page) for key in KEY.findall(keys)]
    sections = {_anchor(title): text for title, text in SECTION.findall(page)}

    def place(link: re.Match[str]) -> str:
        """A link as a terminal follows it: an address, or a section by another --explain."""
        anchor = link[2].rpartition("#")[2]
        if link[2].startswith("https:"):
            return f"{link[1]} ({link[2]})"
        return f"{link[1]} (--explain {anchor})" if anchor in sections and anchor != _anchor(wanted) else link[1]

    found = [meaning for key, meaning in [*rows, (wanted, sections.get(_anchor(wanted), ""))] if key == wanted and meaning]
    if found:
        return "\n\n".join(f"{wanted}: {LINK.sub(place, meaning.strip())}" for meaning in dict.fromkeys(found))
    near = difflib.get_close_matches(wanted, [*(key for key, _ in rows), *sections], n=1)
    raise Failed(f"the pages have no finding and no error type {wanted}{f'; is it {near[0]}?' if near else ''}")


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
