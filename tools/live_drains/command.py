"""The command `spillway drains`: its options, and the refreshes."""

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

from cli import Failed, counted
from cli import options as common

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


def parser() -> argparse.ArgumentParser:
    made = common.parser(
        "drains",
        "Shows what drains now, in all EKS clusters of the account and Region: each node that Spillway has claimed, how much time is left, how "
        "many pods are, and what blocks them. On a terminal it refreshes itself. It reads nodes, pods, PodDisruptionBudgets and events with "
        "your own rights, and changes nothing. One cluster that cannot be read makes the exit code 2.",
        "spillway drains --cluster prod --once",
        needs_stack=False,
    )
    made.add_argument("--cluster", action="append", default=[], metavar="NAME", help="only this EKS cluster; may be repeated")
    made.add_argument("--region", action="append", default=[], help="in place of the AWS CLI's own; may be repeated")
    made.add_argument("--context", action="append", default=[], metavar="NAME", help="a context of kubectl's in place of EKS clusters; may be repeated, and needs no AWS CLI")
    made.add_argument("--once", action="store_true", help="print the table once, with all rows: for a ticket")
    made.add_argument("--every", type=int, default=5, metavar="S", help="seconds between two refreshes; default: %(default)s")
    return made


def run(options: argparse.Namespace) -> int:
    if options.context and (options.cluster or options.region):
        raise Failed("--context is in place of --cluster and --region")
    if options.every < 1:
        raise Failed("--every is at least 1")
    clusters = _clusters(options)
    if sys.stderr.isatty():
        print(f"reading {counted(len(clusters), 'cluster')} …", file=sys.stderr)
    for ended_by in (signal.SIGTERM, signal.SIGHUP):  # As Ctrl-C does: kubectl's proxies end with it.
        signal.signal(ended_by, signal.default_int_handler)
    with ExitStack() as at_end, ThreadPoolExecutor(AT_ONCE) as pool:
        fleet = _Fleet(clusters, pool, at_end)
        try:
            return _watch(fleet, options.every) if _is_watched(options) else _once(fleet, options.output == "json")
        except KeyboardInterrupt:
            return 0


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
