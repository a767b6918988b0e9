"""The command `spillway show`: receipts from the function's log or a file, as text, as a page or as JSON."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from cli import Failed, Found, stack
from cli import options as common
from cli.aws import Aws
from cli.times import span

from .drain import Drain, drains_of
from .find import receipts_in
from .log import fetched
from .page import page
from .receipt import Fate, read
from .text import heading, text_of

GZIP = b"\x1f\x8b"
# As many drains as a terminal shows at once.
MOST_LISTED = 20
Json = dict[str, Any]


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "show",
        "Shows past drains by their receipts. The invocations of a drain that took several are shown as one. A receipt is written when its "
        "drain ends: let --until be some minutes later than the drain. Rights: logs:FilterLogEvents, and cloudformation:DescribeStacks for "
        "--stack.",
        "spillway show --since 3h --failed",
        ("text", "html", "json"),
    )
    made.add_argument("what", nargs="?", metavar="WHAT", help="a node, an instance, a pod or a part of its name, an event id or a request id")
    made.add_argument("--failed", action="store_true", help="only drains that failed or lost pods")
    made.add_argument("--since", default="1h", metavar="TIME", help="90m, 3h, 2d ago, or 2026-11-21T03:12 in UTC; default: 1h")
    made.add_argument("--until", default="0s", metavar="TIME", help="the same; default: now")
    made.add_argument(
        "--file", metavar="FILE", help="receipts or a log that has some, in place of the function's log: what `aws logs tail` or "
        "filter-log-events printed, an export of CloudWatch, the function's answer; - is standard input",
    )  # fmt: skip
    made.add_argument("--to", default="spillway.html", metavar="FILE", help="the page that -o html writes; default: %(default)s")
    made.add_argument("--log-group", metavar="NAME", help="the log group itself, in place of --stack")
    return made


def run(options: argparse.Namespace) -> None:
    receipts = receipts_in(_text(options))
    _show(_chosen(drains_of([read(found) for found in receipts]), options), receipts, options)


def _text(options: argparse.Namespace) -> str:
    if options.file is None:
        since, until = span(options.since, options.until)
        aws = Aws(options.region)
        group = options.log_group or stack.read(aws, options.stack).output("LogGroupName")
        lines = fetched(aws, group, since, until)
        if not lines:
            raise Found(f"{group} has no receipt from {since:%Y-%m-%d %H:%M:%S} to {until:%Y-%m-%d %H:%M:%S} UTC")
        return "\n".join(lines)
    data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    if data.startswith(GZIP):  # An export to S3 comes so.
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile) as error:
            raise Failed(f"{options.file}: cannot be unpacked: {error}") from error
    return data.decode("utf-8-sig", errors="replace")


def _show(drains: list[Drain], receipts: list[Json], options: argparse.Namespace) -> None:
    if options.output == "json":
        whose = {(drain.event_id, drain.instance) for drain in drains}
        print(json.dumps([one for one in receipts if (one["notice"].get("event_id"), one.get("instance")) in whose], indent=2))
    elif options.output == "html":
        Path(options.to).write_text(page(drains), encoding="utf-8", errors="replace")
        print(options.to)
    else:
        print(text_of(drains))


def _chosen(drains: list[Drain], options: argparse.Namespace) -> list[Drain]:
    if options.failed:
        drains = [drain for drain in drains if drain.ending == "failed" or any(pod.fate is Fate.LOST for pod in drain.pods)]
        if not drains:
            raise Found("no drain failed")
    of = options.what
    exactly = [drain for drain in drains if of is None or of in drain.names()]
    chosen = exactly or [drain for drain in drains if any(of in pod.name for pod in drain.pods)]
    if not chosen:
        more = [f"  and {len(drains) - MOST_LISTED} more"] if len(drains) > MOST_LISTED else []
        raise Found("\n".join([f"no drain is of {of}; there are:", *(f"  {drain.event_id}  {heading(drain)}" for drain in drains[:MOST_LISTED]), *more]))
    return chosen
