"""Receipts as the function writes them, for the tests of what is drawn from them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def pod(name: str, fate: str, **more: Any) -> Json:
    """A pod of 30 s of grace; of a fate in which it went, one that was asked and told once."""
    record = {"pod": name, "uid": f"uid-of-{name}", "fate": fate, "grace_s": 30, "evictions": 1}
    if fate == "stayed":
        record.update(evictions=0, why="a DaemonSet's pod")
    return {**record, **more}


def receipt(**fields: Any) -> Json:
    """A spot notice's receipt without pods, drained after 43 s, but for these fields."""
    return {
        "timestamp": "2026-11-21T03:12:43.020218116Z",
        "level": "INFO",
        "message": "drained: …",
        "receipt": 2,
        "request_id": "r-1",
        "notice": {"event_id": "e-1", "kind": "spot interruption", "time": "2026-11-21T03:12:00Z", "deadline": "2026-11-21T03:14:00Z"},
        "instance": "i-1234567890abcdef0",
        "zone": "us-east-1a",
        "instance_type": "m7g.large",
        "auto_scaling_group": "workers",
        "cluster": "prod",
        "node": "ip-10-0-12-34.ec2.internal",
        "managed_by": "self-managed",
        "decision": "drain",
        "window": {"start_ms": 640, "end_ms": 120000, "deadline_ms": 120000, "margin_s": 2},
        "steps": steps(begun=640, described=731, claimed=802, drained=43017),
        "ending": "drained",
        "reason": "all pods that had to leave node ip-10-0-12-34.ec2.internal have gone",
        **fields,
    }


def steps(**at_ms: int) -> list[Json]:
    return [{"step": name.replace("_", "-"), "at_ms": at} for name, at in at_ms.items()]


def drained() -> Json:
    """One pod of each way to go: clean, blocked by a budget, clamped, and one that stays."""
    return receipt(
        pods=[
            pod("kube-system/log-agent-x7k2p", "stayed"),
            pod("shop/web-5d9c7b8f6-qh2vz", "clean", evictions=3, answers={"blocked-by-budget": 2, "evicted": 1},
                blocked_by="web", requested_ms=850, accepted_ms=20000, gone_ms=24000),
            pod("shop/orders-0", "clamped", grace_s=600, given_s=117, answers={"evicted": 1},
                requested_ms=860, accepted_ms=900, gone_ms=41880),
            pod("kube-system/dns-6b8f4c5d7-l9x4m", "clean", answers={"evicted": 1},
                requested_ms=42000, accepted_ms=42100, gone_ms=43012),
        ],
    )  # fmt: skip


def dry_run() -> Json:
    """What a drain would have come to: one pod that may leave, one that a budget holds, one that stays."""
    return receipt(
        request_id="r-dry",
        notice={**receipt()["notice"], "event_id": "e-dry"},
        instance="i-0dddddddddddddddd",
        ending="ignored",
        reason="a dry run: node ip-10-0-12-34.ec2.internal would have been drained",
        steps=steps(begun=640, described=731),
        dry_run=True,
        pods=[
            pod("kube-system/log-agent-x7k2p", "stayed"),
            pod("shop/web-0", "would-leave", answers={"would-leave": 1}),
            pod("shop/db-0", "would-be-blocked", answers={"blocked-by-budget": 1}, blocked_by="db",
                why="PodDisruptionBudget db would block it"),
        ],
    )  # fmt: skip


def lost() -> Json:
    """A drain that failed: a pod with a long grace is lost, a blocked one forced."""
    web, at_once = "shop/web-5d9c7b8f6", {"requested_ms": 850, "accepted_ms": 900, "answers": {"evicted": 1}}
    return receipt(
        level="ERROR", timestamp="2026-11-21T03:14:00.100Z",
        steps=steps(begun=640, described=731, claimed=802, drained=120000),
        pods=[
            pod(f"{web}-qh2vz", "clean", gone_ms=21_000, **at_once),
            pod(f"{web}-7lm2p", "clean", blocked_by="web", requested_ms=850, accepted_ms=52_000, gone_ms=73_000, evictions=2,
                answers={"blocked-by-budget": 1, "evicted": 1}),
            pod("data/kafka-1", "clamped", grace_s=300, given_s=117, gone_ms=88_000, **at_once),
            pod("data/redis-0", "forced", blocked_by="redis", evictions=5, requested_ms=850, accepted_ms=87_000, gone_ms=94_000,
                answers={"blocked-by-budget": 5, "deleted": 1}),
            pod("batch/ghost-2", "unconfirmed", why="its node stopped answering while it shut down", **at_once),
            pod("batch/render-4kq9", "lost", grace_s=600, given_s=117, why="it was still shutting down", **at_once),
            pod("kube-system/log-agent-x7k2p", "stayed"),
        ],
        ending="failed", error="PodsLost",
        reason="1 of 6 pods was still on node ip-10-0-12-34.ec2.internal when the time was up",
    )  # fmt: skip


def ignored() -> Json:
    return receipt(
        notice={**receipt()["notice"], "event_id": "e-2"}, cluster=None, node=None, decision="ignore", window=None,
        steps=steps(begun=640, described=731), ending="ignored",
        reason="instance i-1234567890abcdef0 is not a node: its tags name no cluster",
    )  # fmt: skip


def hook_of_forty_minutes() -> list[Json]:
    """A terminate hook, held over three invocations until the last pod has gone."""
    hook = {"group": "workers", "name": "drain", "state": "held"}
    minute = 60_000

    def one(number: int, *pods: Json, **fields: Any) -> Json:
        begun = 15 * minute * (number - 1) + 1000
        return receipt(**{
            "timestamp": None, "request_id": f"r-{number}", "window": None, "pods": list(pods), "hook": hook,
            "ending": "continued", "notice": {"event_id": "e-3", "kind": "terminate lifecycle action", "time": "2026-11-21T03:00:00Z"},
            "steps": steps(begun=begun, claimed=begun + 200, handed_on=begun + 14 * minute), **fields,
        })  # fmt: skip

    def db(fate: str, requested_ms: int, refused: int, **more: Any) -> Json:
        answers = {"blocked-by-budget": refused}
        return pod("shop/db-0", fate, blocked_by="db", requested_ms=requested_ms, evictions=80, answers=answers, **more)

    return [
        one(1, pod("shop/render-0", "remaining", requested_ms=1300, accepted_ms=1400), db("remaining", 1300, 80)),
        one(2, pod("shop/render-0", "clean", evictions=0, gone_ms=25 * minute), db("remaining", 15 * minute, 80)),
        one(3, db("clean", 30 * minute, 79, accepted_ms=39 * minute, gone_ms=40 * minute),
            steps=steps(begun=30 * minute, drained=40 * minute, completed=40 * minute), ending="drained",
            hook={**hook, "state": "completed", "result": "CONTINUE"}),
    ]  # fmt: skip


def of_300_pods() -> Json:
    """A full node, whose pods shut down one after the other; three are lost."""
    asked = {"requested_ms": 900, "accepted_ms": 950, "answers": {"evicted": 1}}
    pods = [pod(f"batch/worker-{n:03}", "clean", gone_ms=2000 + 100 * n, **asked) for n in range(297)]
    pods += [pod(f"shop/cart-{n}", "lost", why="it was still shutting down", **asked) for n in range(3)]
    return {**lost(), "pods": pods}


def storm(nodes: int) -> list[Json]:
    """Spot notices at once; every fiftieth drain, first the second, fails."""
    return [_of_a_storm(n) for n in range(nodes)]


def _of_a_storm(n: int) -> Json:
    whose = {"request_id": f"r-{n}", "instance": f"i-{n:017x}", "node": f"ip-10-0-{n // 250}-{n % 250}.ec2.internal"}
    one = lost() if n % 50 == 1 else drained()
    return {**one, **whose, "notice": {**one["notice"], "event_id": f"e-{n}"}}
