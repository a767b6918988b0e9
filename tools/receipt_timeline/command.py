"""The command `spillway show`: receipts from the function's log or a file, as text, as a picture or as JSON."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from programs import Failed

from .drain import Drain, drains_of
from .find import NoReceipt, receipts_in
from .fleet_page import fleet_page
from .log import fetched, log_group
from .page import page
from .receipt import Fate, NotAReceipt, read
from .text import heading, text_of
from .times import NoTime, span

GZIP = b"\x1f\x8b"
# As many drains as a terminal shows at once.
MOST_LISTED = 20
NOTHING, COULD_NOT_LOOK = 1, 2
Json = dict[str, Any]


class Refused(Exception):
    """There is nothing to show, for the reason stated."""


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    try:
        receipts = receipts_in(_text(options))
        drains = _chosen(drains_of([read(found) for found in receipts]), options)
        _show(drains, receipts, options)
    except Refused as error:
        print(f"spillway show: {error}", file=sys.stderr)
        return NOTHING
    except (NoReceipt, NotAReceipt, Failed, NoTime) as error:
        print(f"spillway show: {error}", file=sys.stderr)
        return COULD_NOT_LOOK
    except OSError as error:
        print(f"spillway show: {error.filename}: {error.strerror}", file=sys.stderr)
        return COULD_NOT_LOOK
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spillway show",
        description="Shows what became of drains, by their receipts. The invocations of a drain that took several are shown as one.",
        epilog="example: spillway show --since 3h --failed. A receipt is written when its drain ends: let --until be some minutes later "
        "than what you look for. Rights: logs:FilterLogEvents, and cloudformation:DescribeStacks for --stack. "
        "0: shown; 1: there is no such drain; 2: could not look",
    )
    parser.add_argument("what", nargs="?", metavar="WHAT", help="a node, an instance, a pod or a part of its name, an event id or a request id")
    parser.add_argument("--failed", action="store_true", help="only drains that failed or lost pods")
    parser.add_argument("--since", default="1h", metavar="TIME", help="90m, 3h, 2d ago, or 2026-11-21T03:12 in UTC; default: 1h")
    parser.add_argument("--until", default="0s", metavar="TIME", help="the same; default: now")
    parser.add_argument(
        "--file", metavar="FILE", help="receipts or a log that has some, in place of the function's log: what `aws logs tail` or "
        "filter-log-events printed, an export of CloudWatch, the function's answer; - is standard input",
    )  # fmt: skip
    parser.add_argument("-o", "--output", choices=("text", "html", "json"), default="text", help="default: %(default)s")
    parser.add_argument("--to", default="spillway.html", metavar="FILE", help="where -o html writes its page; default: %(default)s")
    parser.add_argument("--stack", default="spillway", metavar="NAME", help="the stack whose output LogGroupName is read; default: %(default)s")
    parser.add_argument("--log-group", metavar="NAME", help="the log group itself, in place of --stack")
    parser.add_argument("--region", metavar="REGION", help="in place of the AWS CLI's own")
    return parser.parse_args(arguments)


def _text(options: argparse.Namespace) -> str:
    if options.file is None:
        since, until = span(options.since, options.until)
        group = options.log_group or log_group(options.stack, options.region)
        lines = fetched(group, since, until, options.region)
        if not lines:
            raise Refused(f"{group} has no receipt from {since:%Y-%m-%d %H:%M:%S} to {until:%Y-%m-%d %H:%M:%S} UTC")
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
        html = page(drains[0]) if len(drains) == 1 else fleet_page(drains)
        Path(options.to).write_text(html, encoding="utf-8", errors="replace")
        print(options.to)
    else:
        print(text_of(drains))


def _chosen(drains: list[Drain], options: argparse.Namespace) -> list[Drain]:
    if options.failed:
        drains = [drain for drain in drains if drain.ending == "failed" or any(pod.fate is Fate.LOST for pod in drain.pods)]
        if not drains:
            raise Refused("no drain failed")
    of = options.what
    exactly = [drain for drain in drains if of is None or of in drain.names()]
    chosen = exactly or [drain for drain in drains if any(of in pod.name for pod in drain.pods)]
    if not chosen:
        more = [f"  and {len(drains) - MOST_LISTED} more"] if len(drains) > MOST_LISTED else []
        raise Refused("\n".join([f"no drain is of {of}; there are:", *(f"  {drain.event_id}  {heading(drain)}" for drain in drains[:MOST_LISTED]), *more]))
    return chosen
