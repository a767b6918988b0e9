"""The report as text: what is worst comes first, each finding with what to do; colours only where they can be seen."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from cli import counted

from .report import Check, Finding, Report, Severity, Status

# The words before a check.
WORDS = {Status.FAIL: "FAIL", Status.UNKNOWN: "?", Status.WARN: "warn", Status.SKIPPED: "skip", Status.OK: "ok"}
COLOURS = {Status.FAIL: "31;1", Status.UNKNOWN: "35", Status.WARN: "33", Status.SKIPPED: "36", Status.OK: "32"}
MARKS = {Severity.FAIL: ("✗", "31;1"), Severity.UNKNOWN: ("?", "35"), Severity.WARN: ("!", "33"), Severity.INFO: ("i", "36")}
WORD, CHECK, FINDING = 2, 8, 8
# So many of a finding's nodes are named; the table of nodes has them all.
NODES = 3


@dataclass(frozen=True)
class Page:
    width: int
    colours: bool

    def of(self, report: Report) -> str:
        when = report.time.partition(".")[0].rstrip("Z").replace("T", " ")
        lines = [self.bold(f"Spillway's doctor, {when} UTC, in {report.took_ms / 1000:.1f} s"), ""]
        lines += [self.paint(line, COLOURS[report.status]) for line in self.wrapped(headline(report), 0)]
        for title, checks in _groups(report):
            lines += [*([""] if lines[-1] else []), self.bold(title)]
            for check in sorted(checks, key=lambda check: -check.status):
                lines += self.check(check)
        return "\n".join(lines).rstrip()

    def check(self, check: Check) -> list[str]:
        first, *more = self.wrapped(f"{check.id}: {check.what}", CHECK)
        word = self.paint(f"{WORDS[check.status]:<{CHECK - WORD}}", COLOURS[check.status])
        lines = [f"{' ' * WORD}{word}{first.lstrip()}", *more]
        for finding in check.findings:
            lines += self.finding(finding)
        if check.findings_cut:
            lines += self.wrapped(f"and {check.findings_cut} more, which the report has no room for", CHECK)
        lines += self.held_up(check)
        return [*lines, ""] if len(lines) > 1 + len(more) else lines

    def finding(self, finding: Finding) -> list[str]:
        mark, colour = MARKS[finding.severity]
        first, *more = self.wrapped(finding.object, FINDING + 2)
        lines = ["", f"{' ' * FINDING}{self.paint(mark, colour)} {self.bold(first.lstrip())}", *map(self.bold, more)]
        lines += self.wrapped(finding.what, FINDING + 2)
        if finding.nodes:
            named = ", ".join(finding.nodes[:NODES])
            others = finding.nodes_count - min(NODES, len(finding.nodes))
            lines += self.wrapped(f"On {named}{f' and {others} more' if others else ''}.", FINDING + 2)
        lines += self.wrapped(f"→ {finding.to_do}", FINDING + 2, hanging=2)
        if finding.command:
            # On one line, to be copied.
            lines.append(f"{' ' * (FINDING + 4)}{finding.command}")
        return lines

    def held_up(self, check: Check) -> list[str]:
        """Nodes that are held up; those with the same reasons together."""
        by_reasons: dict[tuple[str, ...], list[str]] = {}
        for node, because in check.nodes:
            by_reasons.setdefault(because, []).append(node)
        lines = ["", f"{' ' * CHECK}Not to be drained in two minutes right now:"] if by_reasons else []
        for because, nodes in by_reasons.items():
            lines += self.wrapped(", ".join(nodes), FINDING + 2)
            lines += [line for reason in because for line in self.wrapped(reason, FINDING + 6, hanging=2)]
        return lines

    def wrapped(self, text: str, indent: int, hanging: int = 0) -> list[str]:
        return textwrap.wrap(
            text, self.width, initial_indent=" " * indent, subsequent_indent=" " * (indent + hanging), break_long_words=False, break_on_hyphens=False
        )

    def bold(self, text: str) -> str:
        return self.paint(text, "1")

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colours else text


def _groups(report: Report) -> list[tuple[str, list[Check]]]:
    by_cluster: dict[str | None, list[Check]] = {}
    for check in report.checks:
        by_cluster.setdefault(check.cluster, []).append(check)
    groups = [("The account" if name is None else f"Cluster {name}", checks) for name, checks in by_cluster.items()]
    return sorted(groups, key=lambda group: -max(check.status for check in group[1]))


def headline(report: Report) -> str:
    """Verdict and counts: *FAIL: 2 failures, 1 warning; 1 of 10 checks incomplete, 1 skipped*."""
    severities = [finding.severity for check in report.checks for finding in check.findings]
    counts = [counted(severities.count(one), name) for one, name in ((Severity.FAIL, "failure"), (Severity.WARN, "warning")) if one in severities]
    statuses = [check.status for check in report.checks]
    of = f"of {counted(len(statuses), 'check')}"
    partly = [(statuses.count(one), name) for one, name in ((Status.UNKNOWN, "incomplete"), (Status.SKIPPED, "skipped")) if one in statuses]
    parts = [f"{number} {of if at == 0 else ''} {name}".replace("  ", " ") for at, (number, name) in enumerate(partly)]
    return f"{report.status.name}: {', '.join(counts) or 'no failure ' + of.replace('of', 'in', 1)}{'; ' if parts else ''}{', '.join(parts)}"
