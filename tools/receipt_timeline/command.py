"""What is typed, read and written."""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path

from .drain import Drain, drains_of
from .fleet_page import fleet_page
from .find import NoReceipt, receipts_in
from .page import page
from .receipt import NotAReceipt, read
from .words import day_and_clock

GZIP = b"\x1f\x8b"
# As many drains as a terminal shows at once.
MOST_LISTED = 20


class Refused(Exception):
    """There is no picture, for the reason stated."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    name = options.file or "the standard input"
    try:
        text = _text(options.file)
        drains = _chosen(drains_of([read(found) for found in receipts_in(text)]), options.of)
        html = page(drains[0]) if len(drains) == 1 else fleet_page(drains)
        Path(options.output).write_text(html, encoding="utf-8", errors="replace")
    except (Refused, NoReceipt, NotAReceipt) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    print(options.output)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="timeline",
        description="Draws receipts as a timeline: one HTML file that needs nothing else. One drain is drawn pod by pod, "
        "several with a row for each node, which opens into the drain's own picture.",
        epilog="The invocations of a drain that took several are drawn as one. tools/receipts fetches the receipts of a "
        "time from the function's log.",
    )
    parser.add_argument(
        "file",
        nargs="?",
        help="a receipt, or a log that has some: what `aws logs tail` or `filter-log-events` printed, an export of "
        "CloudWatch, the function's answer. Without it, the standard input",
    )
    parser.add_argument("-o", "--output", default="timeline.html", metavar="FILE", help="default: %(default)s")
    parser.add_argument(
        "--of", metavar="WHAT", help="only what is of this instance, node, pod, event id or request id"
    )
    options = parser.parse_args(arguments)
    if options.file is None and sys.stdin.isatty():
        parser.error("name a file, or pipe a receipt in")
    return options


def _text(file: str | None) -> str:
    data = Path(file).read_bytes() if file else sys.stdin.buffer.read()
    if data.startswith(GZIP):  # An export to S3 comes so.
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile) as error:
            raise Refused(f"cannot be unpacked: {error}") from error
    return data.decode("utf-8-sig", errors="replace")


def _chosen(drains: list[Drain], of: str | None) -> list[Drain]:
    chosen = [drain for drain in drains if of is None or of in drain.names()]
    if not chosen:
        raise Refused(f"no drain in it is of {of}; there are:\n{_listed(drains)}")
    return chosen


def _listed(drains: list[Drain]) -> str:
    def line(drain: Drain) -> str:
        when = day_and_clock(drain.time) if drain.time else "no time"
        what = f"{drain.instance or 'no instance'}  {drain.node or 'no node'}  {drain.ending}"
        return f"  --of {drain.event_id}  {when}  {what}"

    more = [f"  and {len(drains) - MOST_LISTED} more"] if len(drains) > MOST_LISTED else []
    return "\n".join([*map(line, drains[:MOST_LISTED]), *more])
