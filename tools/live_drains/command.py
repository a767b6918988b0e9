"""What is typed, and how often it is looked."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

from programs import Failed

from .api_server import ApiServer
from .clusters import Cluster, Context, EksCluster, of_account
from .drains import Drain
from .look import Watched
from .table import by_urgency, table

AT_ONCE = 8
# A cluster that cannot be reached takes seconds to say so, for which the others' rows would wait at each look.
REST_S = 60
# The terminal's upper left corner, and nothing below it.
CLEARED = "\x1b[H\x1b[J"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    try:
        clusters = _clusters(options)
    except Failed as error:
        print(f"spillway drains: {error}", file=sys.stderr)
        return 2
    if sys.stderr.isatty():
        print(f"reading {len(clusters)} cluster(s) …", file=sys.stderr)
    for ended_by in (signal.SIGTERM, signal.SIGHUP):  # As Ctrl-C does: kubectl's proxies end with it.
        signal.signal(ended_by, signal.default_int_handler)
    with ExitStack() as at_end, ThreadPoolExecutor(AT_ONCE) as pool:
        fleet = _Fleet(clusters, pool, at_end)
        try:
            return _watch(fleet, options.every) if _is_watched(options) else _once(fleet, options.output == "json")
        except KeyboardInterrupt:
            return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="spillway drains",
        description="Shows what drains now, in all EKS clusters of the account and Region: each node that Spillway has claimed, "
        "how much time is left, how many pods are, and what blocks them. On a terminal it looks again and again.",
        epilog="It reads nodes, pods, PodDisruptionBudgets and events with your own rights, and changes nothing. "
        "0: all clusters were read; 2: one was not.",
    )
    parser.add_argument("--cluster", action="append", default=[], metavar="NAME", help="only this EKS cluster; may be repeated")
    parser.add_argument("--region", action="append", default=[], help="in place of the AWS CLI's own; may be repeated")
    parser.add_argument(
        "--context", action="append", default=[], metavar="NAME",
        help="a context of kubectl's in place of EKS clusters; may be repeated, and needs no AWS CLI",
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help="look once, and print all of it: for a ticket")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json looks once, for a program; default: %(default)s")
    parser.add_argument("--every", type=int, default=5, metavar="S", help="seconds between two looks; default: %(default)s")
    options = parser.parse_args(arguments)
    if options.context and (options.cluster or options.region):
        parser.error("--context is in place of --cluster and --region")
    if options.every < 1:
        parser.error("--every is at least 1")
    return options


def _is_watched(options: argparse.Namespace) -> bool:
    return sys.stdout.isatty() and not (options.once or options.output == "json")


def _clusters(options: argparse.Namespace) -> list[Cluster]:
    if options.context:
        return [Context(name) for name in options.context]
    if options.cluster:
        return [EksCluster(name, region) for name in options.cluster for region in options.region or [None]]
    return of_account(options.region)


def _watch(fleet: _Fleet, every_s: int) -> int:
    while True:
        drains, not_read = fleet.look()
        width, height = shutil.get_terminal_size()
        print(CLEARED + table(drains, not_read, _now(), fleet.size, width, height), end="", flush=True)
        time.sleep(every_s)


def _once(fleet: _Fleet, as_json: bool) -> int:
    drains, not_read = fleet.look()
    now = _now()
    if as_json:
        document = {
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "drains": [drain.as_json(now) for drain in by_urgency(drains)],
            "not_read": [{"cluster": cluster, "why": why} for cluster, why in not_read],
        }
        print(json.dumps(document, indent=2))
    else:
        print(table(drains, not_read, now, fleet.size))
    return 2 if not_read else 0


def _now() -> datetime:
    return datetime.now(timezone.utc)


class _Fleet:
    """The clusters, looked at beside each other. One that cannot be read does not keep the others from being shown."""

    def __init__(self, clusters: list[Cluster], pool: ThreadPoolExecutor, at_end: ExitStack) -> None:
        self._clusters, self._pool, self._at_end = clusters, pool, at_end
        self._watched: dict[Cluster, Watched] = {}
        self._failed: dict[Cluster, tuple[float, Failed]] = {}

    @property
    def size(self) -> int:
        return len(self._clusters)

    def look(self) -> tuple[list[Drain], list[tuple[str, str]]]:
        looks = list(self._pool.map(self._look_at, self._clusters))
        read = [drain for drains in looks if not isinstance(drains, Failed) for drain in drains]
        failed = zip(self._clusters, looks)
        return read, [(cluster.name, str(error)) for cluster, error in failed if isinstance(error, Failed)]

    def _look_at(self, cluster: Cluster) -> list[Drain] | Failed:
        failed_at, failure = self._failed.get(cluster, (0.0, None))
        if failure and time.monotonic() < failed_at + REST_S:
            return failure
        try:
            if cluster not in self._watched:
                self._watched[cluster] = self._begun(cluster)
            return self._watched[cluster].look()
        except Failed as error:
            self._failed[cluster] = (time.monotonic(), error)
            return error

    def _begun(self, cluster: Cluster) -> Watched:
        # A Unix socket's path may have about a hundred characters.
        folder = Path(self._at_end.enter_context(tempfile.TemporaryDirectory(prefix="drains-")))
        api_server = ApiServer(cluster.kubectl(folder), folder)
        self._at_end.callback(api_server.close)
        return Watched(cluster.name, api_server)
