"""One drain, from the node's claim, its pods, its cluster's budgets and our events. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cli import printable
from cli.times import parsed

from .blockers import blocker
from .claim import Claim, claim_on

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
PODS = "spillway/pods"
MOST = 253
# What our events on a node say of the drain.
STATES = {
    "Draining": "draining",
    "DrainContinues": "draining",
    "Drained": "drained",
    "DrainFailed": "failed",
    "DrainStopped": "stopped",
    "Cordoned": "cordoned",
}
# As many blocked pods as a reader takes in.
MOST_PODS = 20


@dataclass(frozen=True)
class Drain:
    cluster: str
    node: str
    zone: str
    claim: Claim
    state: str
    # How many pods had to leave; None if nobody has said so.
    pods: int | None
    # How many of them are there, and how many of these are shutting down.
    left: int
    leaving: int
    # Pods that are not shutting down, with what blocks them.
    blocked: list[tuple[str, str]]

    @property
    def gone(self) -> int | None:
        return None if self.pods is None else max(0, self.pods - self.left)

    def seconds_left(self, now: datetime) -> int | None:
        return self.claim.until and round((self.claim.until - now).total_seconds())

    def blockers(self) -> list[tuple[str, int]]:
        return Counter(by for _, by in self.blocked).most_common()

    def as_json(self, now: datetime) -> Json:
        until, since = self.claim.until, self.claim.since
        return {
            "cluster": self.cluster,
            "node": self.node,
            "zone": self.zone,
            "notice": self.claim.notice,
            "event_id": self.claim.event,
            "state": self.state,
            "since": since and since.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "until": until and until.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds_left": self.seconds_left(now),
            "pods": {"gone": self.gone, "left": self.left, "leaving": self.leaving, "blocked": len(self.blocked)},
            "blocked": [{"pod": pod, "by": by} for pod, by in self.blocked[:MOST_PODS]],
        }


def drain_of(cluster: str, node: Json, pods: list[Json], budgets: list[Json], events: list[Json]) -> Drain | None:
    """The drain of a node; None if nobody has claimed it. Of node and pods the metadata is enough."""
    metadata = node["metadata"]
    claim = claim_on(metadata)
    if claim is None:
        return None
    here = [pod["metadata"] for pod in pods if has_to_leave(pod["metadata"])]
    waiting = [pod for pod in here if not pod.get("deletionTimestamp")]
    found = ((_name(pod), blocker(pod, budgets)) for pod in waiting)
    blocked = [(pod, printable(by, MOST)) for pod, by in found if by is not None]
    ours = _of_this_drain(events, metadata["name"], claim)
    latest = max(ours, key=lambda event: event.get("eventTime") or "", default=None)
    return Drain(
        cluster=printable(cluster, MOST),
        node=printable(metadata["name"], MOST),
        zone=printable((metadata.get("labels") or {}).get(ZONE, ""), MOST),
        claim=claim,
        state=STATES[latest["reason"]] if latest else "draining" if here else "empty",
        pods=_said_to_leave(ours),
        left=len(here),
        leaving=len(here) - len(waiting),
        blocked=sorted(blocked),
    )


def has_to_leave(pod: Json) -> bool:
    """Static pods, DaemonSets' pods and mount pods stay on the node."""
    owners, labels, annotations = (pod.get(key) or {} for key in ("ownerReferences", "labels", "annotations"))
    stays = (
        any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)
        or annotations.get("cluster-autoscaler.kubernetes.io/daemonset-pod") == "true"
        or "s3.csi.aws.com/mountpoint-version" in labels
        or labels.get("app.kubernetes.io/name") == "juicefs-mount"
        or "kubernetes.io/config.mirror" in annotations
        or annotations.get("spillway/drain") == "skip"
    )
    return not stays


def _of_this_drain(events: list[Json], node: str, claim: Claim) -> list[Json]:
    """Our events on the node; not those on one that had its name before."""

    def is_of_this_one(event: Json) -> bool:
        at = parsed(event.get("eventTime"))
        return at is not None and (claim.since is None or at >= claim.since)

    named = (event for event in events if event["involvedObject"].get("name") == node)
    return [event for event in named if event.get("reason") in STATES and is_of_this_one(event)]


def _said_to_leave(events: list[Json]) -> int | None:
    said = [(event["metadata"].get("annotations") or {}).get(PODS, "") for event in events]
    return max((int(number) for number in said if number.isascii() and number.isdigit() and len(number) < 7), default=None)


def _name(pod: Json) -> str:
    return printable(f"{pod.get('namespace', '')}/{pod['name']}", MOST)
