"""Receipts as the function writes them, for the tests of what is drawn from them."""

from __future__ import annotations

from datetime import datetime, timedelta
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
    """A drain that failed: two pods left, one unconfirmed, one forced."""
    return receipt(
        level="ERROR",
        timestamp="2026-11-21T03:14:00.100Z",
        steps=steps(begun=640, described=731, claimed=802, drained=120000),
        pods=[
            pod("shop/cart-0", "lost", grace_s=300, given_s=117, answers={"evicted": 1}, requested_ms=840, accepted_ms=900,
                why="it was still shutting down"),
            pod("shop/stuck-1", "lost", evictions=9, answers={"blocked-by-budget": 9}, blocked_by="stuck", requested_ms=845,
                why="PodDisruptionBudget stuck blocked it"),
            pod("shop/ghost-2", "unconfirmed", answers={"evicted": 1}, requested_ms=850, accepted_ms=910,
                why="its node stopped answering while it shut down"),
            pod("shop/db-0", "forced", given_s=28, evictions=4, answers={"blocked-by-budget": 4, "deleted": 1},
                blocked_by="db", requested_ms=860, accepted_ms=90000, gone_ms=95000, why="PodDisruptionBudget db blocked it"),
            pod("shop/web-1", "clean", answers={"evicted": 1}, requested_ms=870, accepted_ms=930, gone_ms=3000),
        ],
        ending="failed",
        reason="2 of 5 pods were still on node ip-10-0-12-34.ec2.internal when the time was up",
    )  # fmt: skip


def in_the_readme() -> list[Json]:
    """A spot interruption that nobody would want: a budget, a pod with a long grace, a forced one, a lost one."""
    web = "shop/web-5d9c7b8f6"
    blocked = {"requested_ms": 850, "evictions": 2, "answers": {"blocked-by-budget": 1, "evicted": 1}}
    at_once = {"requested_ms": 850, "accepted_ms": 900, "answers": {"evicted": 1}}
    return [receipt(
        level="ERROR", timestamp="2026-11-21T03:14:00.100Z",
        steps=steps(begun=640, described=731, claimed=802, drained=120000),
        pods=[
            pod(f"{web}-qh2vz", "clean", gone_ms=21_000, **at_once),
            pod(f"{web}-x8k4d", "clean", blocked_by="web", accepted_ms=26_000, gone_ms=47_000, **blocked),
            pod(f"{web}-7lm2p", "clean", blocked_by="web", accepted_ms=52_000, gone_ms=73_000, **blocked),
            pod("data/kafka-1", "clamped", grace_s=300, given_s=117, gone_ms=88_000, **at_once),
            pod("data/redis-0", "forced", blocked_by="redis", evictions=5, requested_ms=850, accepted_ms=87_000, gone_ms=94_000,
                answers={"blocked-by-budget": 5, "deleted": 1}, why="PodDisruptionBudget redis blocked it"),
            pod("batch/render-4kq9", "lost", grace_s=600, given_s=117, why="it was still shutting down", **at_once),
            pod("kube-system/log-agent-x7k2p", "stayed"),
        ],
        ending="failed", reason="1 of 6 pods was still on node ip-10-0-12-34.ec2.internal when the time was up",
    )]  # fmt: skip


def ignored() -> Json:
    return receipt(
        timestamp="2026-11-21T03:12:00.760Z",
        notice={"event_id": "e-2", "kind": "spot interruption", "time": "2026-11-21T03:12:00Z",
                "deadline": "2026-11-21T03:14:00Z"},
        cluster=None, node=None, managed_by=None, decision="ignore", window=None,
        steps=steps(begun=640, described=731), ending="ignored",
        reason="instance i-1234567890abcdef0 is not a node: its tags name no cluster",
    )  # fmt: skip


def hook_of_forty_minutes() -> list[Json]:
    """A terminate hook, held over three invocations until the last pod has gone."""
    notice = {"event_id": "e-3", "kind": "terminate lifecycle action", "time": "2026-11-21T03:00:00Z"}
    hook = {"group": "workers", "name": "drain"}

    def minutes(number: float) -> int:
        return int(number * 60000)

    def one(number: int, from_ms: int, to_ms: int, **fields: Any) -> Json:
        at = to_ms // 1000
        beats = list(range(from_ms + 200, to_ms, minutes(2.5)))
        return receipt(
            timestamp=f"2026-11-21T03:{at // 60:02}:{at % 60:02}.500Z", request_id=f"r-{number}", notice=notice,
            window={"start_ms": 1000, "end_ms": from_ms + 895000, "margin_s": 2},
            **{"hook": {**hook, "state": "held", "heartbeats_ms": beats}, "ending": "continued",
               "reason": "handed on to a later invocation", **fields},
        )  # fmt: skip

    def earlier(number: int, begun: str, ended: str, **pods: int) -> Json:
        at = "2026-11-21T03:{}Z"
        return {"request_id": f"r-{number}", "from": at.format(begun), "to": at.format(ended), "pods": pods}

    told = {"requested_ms": 1300, "accepted_ms": 1400, "grace_s": 1800, "answers": {"evicted": 1}}
    first = earlier(1, "00:01", "14:56", clean=1, remaining=2)
    second = earlier(2, "14:57", "29:52", clean=1, remaining=1)
    return [
        one(1, 1000, 895900, steps=steps(begun=1000, described=1100, claimed=1200, handed_on=895900), pods=[
            pod("shop/web-0", "clean", requested_ms=1250, accepted_ms=1350, gone_ms=9000, answers={"evicted": 1}),
            pod("shop/render-0", "remaining", why="it was still shutting down", **told),
            pod("shop/db-0", "remaining", why="PodDisruptionBudget db blocked it", blocked_by="db", requested_ms=1300, evictions=80,
                answers={"blocked-by-budget": 80}),
        ]),
        one(2, 897000, 1792000, steps=steps(begun=897000, described=897100, claimed=897200, handed_on=1792000),
            earlier=[first], pods=[
            pod("shop/render-0", "clean", grace_s=1800, evictions=0, gone_ms=1500000),
            pod("shop/db-0", "remaining", why="PodDisruptionBudget db blocked it", blocked_by="db", requested_ms=897300, evictions=80,
                answers={"blocked-by-budget": 80}),
        ]),
        one(3, 1793000, 2400000,
            steps=steps(begun=1793000, described=1793100, claimed=1793200, drained=2399800, completed=2400000),
            earlier=[first, second],
            pods=[pod("shop/db-0", "clean", blocked_by="db", requested_ms=1793300, accepted_ms=2380000, gone_ms=2399700,
                      evictions=60, answers={"blocked-by-budget": 59, "evicted": 1})],
            ending="drained", reason="all 3 pods that had to leave node ip-10-0-12-34.ec2.internal have gone",
            hook={**hook, "state": "completed", "result": "CONTINUE",
                  "heartbeats_ms": list(range(1793200, 2400000, 150000))}),
    ]  # fmt: skip


def of_300_pods() -> Json:
    """A full node: most leave at once, some are blocked, one is forced, three are lost."""
    pods = [pod(f"kube-system/agent-{n}", "stayed") for n in range(8)]
    for n in range(260):
        told = 900 + 5 * n
        pods.append(pod(f"batch/worker-7c9d8b6f5-{n:03}", "clean", requested_ms=told - 30, accepted_ms=told,
                        gone_ms=told + 2000 + (n * 7919) % 26000, answers={"evicted": 1}))  # fmt: skip
    for n in range(24):
        pods.append(pod(f"shop/web-5d9c7b8f6-{n:02}", "clean", requested_ms=900 + n, accepted_ms=1000 + 3000 * n, blocked_by="web",
                        gone_ms=5000 + 3000 * n, answers={"blocked-by-budget": 1, "evicted": 1}))  # fmt: skip
    for n in range(4):
        pods.append(pod(f"data/kafka-{n}", "clamped", grace_s=300, given_s=117, requested_ms=900, accepted_ms=950,
                        gone_ms=60000 + 9000 * n, answers={"evicted": 1}))  # fmt: skip
    pods.append(pod("data/redis-0", "forced", given_s=30, requested_ms=900, accepted_ms=87000, gone_ms=88000, blocked_by="redis",
                    answers={"blocked-by-budget": 17, "deleted": 1}, why="PodDisruptionBudget redis blocked it"))  # fmt: skip
    for n in range(3):
        pods.append(pod(f"shop/cart-{n}", "lost", grace_s=600, given_s=117, requested_ms=900, accepted_ms=1000,
                        answers={"evicted": 1}, why="it was still shutting down"))  # fmt: skip
    return receipt(
        level="ERROR", pods=pods, timestamp="2026-11-21T03:14:00.100Z", ending="failed",
        steps=steps(begun=640, described=731, claimed=802, drained=120000),
        reason="3 of 292 pods were still on node ip-10-0-12-34.ec2.internal when the time was up",
    )  # fmt: skip


def maintenance_two_weeks_ahead() -> list[Json]:
    """Scheduled maintenance: handed to a schedule at the notice, drained an hour before it starts."""
    begun = 14 * 86_400_000 - 3_600_000
    notice = {"event_id": "e-4", "kind": "scheduled maintenance", "time": "2026-11-07T03:12:00Z",
              "deadline": "2026-11-21T03:12:00Z"}  # fmt: skip
    at_the_notice = receipt(
        request_id="r-1", timestamp="2026-11-07T03:12:00.900Z", notice=notice, decision="postpone", window=None,
        steps=steps(begun=500, described=700, handed_on=800), ending="continued",
        reason="handed to a schedule",
    )  # fmt: skip
    in_time = receipt(
        request_id="r-2", timestamp="2026-11-21T02:12:41Z", notice=notice,
        window={"start_ms": begun, "end_ms": begun + 895_000, "deadline_ms": 14 * 86_400_000, "margin_s": 2},
        steps=steps(begun=begun, described=begun + 100, claimed=begun + 200, drained=begun + 40_000),
        pods=[pod("shop/web-0", "clean", requested_ms=begun + 300, accepted_ms=begun + 400, gone_ms=begun + 30_000)],
    )  # fmt: skip
    return [at_the_notice, in_time]


def storm(nodes: int, apart_ms: int = 20) -> list[Json]:
    """Spot notices one after the other, in two clusters and three zones. On each node web's budget blocks one of 20
    pods for 10 to 40 s; on every fiftieth, the second of them first, cart's blocks another to the end."""
    first = datetime(2026, 11, 21, 3, 12)
    return [_of_a_storm(n, first + timedelta(milliseconds=n * apart_ms)) for n in range(nodes)]


def _of_a_storm(n: int, at: datetime) -> Json:
    def clock(seconds: int) -> str:
        return (at + timedelta(seconds=seconds)).isoformat(timespec="milliseconds") + "Z"

    node, claimed, is_failed = f"ip-10-0-{n // 250}-{n % 250}.ec2.internal", 600 + n % 9 * 100, n % 50 == 1
    accepted = claimed + 10_000 + n % 4 * 10_000
    blocked = {"evictions": 3, "requested_ms": claimed + 100}
    pods = [
        pod(f"shop/web-{n}-{p}", "clean", requested_ms=claimed + 50 + p, accepted_ms=claimed + 100 + p,
            gone_ms=claimed + 1000 * (p + 2), answers={"evicted": 1})
        for p in range(18)
    ]  # fmt: skip
    pods.append(pod(f"shop/web-{n}-18", "clean", blocked_by="web", accepted_ms=accepted, gone_ms=accepted + 5000,
                    answers={"blocked-by-budget": 2, "evicted": 1}, **blocked))  # fmt: skip
    pods.append(pod(f"kube-system/log-agent-{n}", "stayed"))
    if is_failed:
        pods.append(pod(f"shop/cart-{n}", "lost", blocked_by="cart", answers={"blocked-by-budget": 3},
                        why="PodDisruptionBudget cart blocked it", **blocked))  # fmt: skip
    over = 120_000 if is_failed else accepted + 5000
    return receipt(
        timestamp=None, request_id=f"r-{n}", instance=f"i-{n:017x}", zone=f"us-east-1{'abc'[n % 3]}", node=node,
        cluster=("prod", "batch")[n % 2], pods=pods, ending="failed" if is_failed else "drained",
        notice={"event_id": f"e-{n}", "kind": "spot interruption", "time": clock(0), "deadline": clock(120)},
        steps=steps(begun=claimed - 160, described=claimed - 70, claimed=claimed, drained=over),
        reason=f"1 of 20 pods was still on node {node} when the time was up" if is_failed
        else f"all 19 pods that had to leave node {node} have gone",
    )  # fmt: skip
