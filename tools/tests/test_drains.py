"""tools/spillway drains: what is read of claims, budgets and events, and what is shown; with a stand-in for kubectl and the AWS CLI.

That a real API server answers so, an end-to-end test shows (`tests/e2e/tests/scenarios/drains_tool.rs`).
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unittest
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from live_drains.blockers import blocker
from live_drains.claim import claim_on
from live_drains.drains import Drain, drain_of
from live_drains.look import Watched
from live_drains.table import table

from .standin import StandIn

TOOLS = Path(__file__).parents[1]
NOW = datetime(2026, 11, 21, 3, 13, tzinfo=timezone.utc)
Json = dict[str, Any]


def claim(**more: Any) -> str:
    return json.dumps({"event": "e-1", "request": "r-1", "notice": "spot interruption", "since": "2026-11-21T03:12:00Z",
                       "until": "2026-11-21T03:14:00Z", "cordoned": True, **more})  # fmt: skip


def node(name: str = "n-1", **claimed: Any) -> Json:
    return {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "us-east-1a"},
                         "annotations": {"spillway/claim": claim(**claimed)}}}  # fmt: skip


def pod(name: str, app: str = "web", **metadata: Any) -> Json:
    return {"metadata": {"namespace": "shop", "name": name, "labels": {"app": app}, **metadata}}


def budget(name: str, allowed: int | None, **selector: Any) -> Json:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return {"metadata": {"namespace": "shop", "name": name}, "spec": {"selector": selector}, "status": status}


def event(reason: str, at: str = "2026-11-21T03:12:01.000000Z", pods: str | None = None, name: str = "n-1") -> Json:
    annotations = {} if pods is None else {"spillway/pods": pods}
    return {"metadata": {"annotations": annotations}, "involvedObject": {"name": name}, "reason": reason, "eventTime": at}


def drain(pods: list[Json], budgets: list[Json] = [], events: list[Json] = []) -> Drain:
    found = drain_of("prod", node(), pods, budgets, events)
    assert found is not None
    return found


class Claims(unittest.TestCase):
    def test_what_cannot_be_read_is_no_claim(self) -> None:
        for annotation in (None, 7, "", "{", "[]", "null", "{}", claim(event=7), "[" * 100_000):
            with self.subTest(str(annotation)[:20]):
                self.assertIsNone(claim_on({"annotations": {"spillway/claim": annotation}}))
        self.assertIsNone(claim_on({"annotations": None}))

    def test_foreign_text_and_wrong_times_are_made_harmless(self) -> None:
        times = {"until": "2026-11-21T03:14:00.123456789Z", "since": "2026-99-21T03:14:00Z"}
        foreign = claim(notice="\x1b]0;evil\x07" + "x" * 999, event="a\nb\u202ec", **times)
        found = claim_on({"annotations": {"spillway/claim": foreign}})
        assert found
        self.assertTrue(found.notice.isprintable() and len(found.notice) == 80)
        self.assertEqual((found.event, found.until, found.since), ("a b c", datetime(2026, 11, 21, 3, 14, 0, 123456, timezone.utc), None))


class Blockers(unittest.TestCase):
    WEB = pod("web-0")["metadata"]

    def test_budget_without_disruptions_blocks_its_pods(self) -> None:
        self.assertEqual(blocker(self.WEB, [budget("web", 0, matchLabels={"app": "web"})]), "budget shop/web")
        self.assertEqual(blocker(self.WEB, [budget("new", None, matchLabels={"app": "web"})]), "budget shop/new")
        self.assertIsNone(blocker(self.WEB, [budget("web", 1, matchLabels={"app": "web"})]))
        self.assertIsNone(blocker(self.WEB, [budget("db", 0, matchLabels={"app": "db"})]))
        elsewhere = budget("web", 0, matchLabels={"app": "web"})
        elsewhere["metadata"]["namespace"] = "till"
        self.assertIsNone(blocker(self.WEB, [elsewhere]))

    def test_several_budgets_always_block(self) -> None:
        both = [budget("b", 1), budget("a", 9, matchLabels={"app": "web"})]
        self.assertEqual(blocker(self.WEB, both), "several budgets (shop/a, shop/b)")

    def test_a_selectors_expressions_are_those_of_kubernetes(self) -> None:
        def blocks(operator: str, key: str, *values: str) -> bool:
            expression = {"key": key, "operator": operator, "values": list(values)}
            return blocker(self.WEB, [budget("b", 0, matchExpressions=[expression])]) is not None

        for blocked, *expression in (
            *((True, "In", "app", "db", "web"), (False, "In", "app", "db"), (True, "NotIn", "app", "db"), (False, "NotIn", "app", "web")),
            *((True, "NotIn", "tier", "db"), (True, "Exists", "app"), (False, "Exists", "tier")),
            *((True, "DoesNotExist", "tier"), (False, "DoesNotExist", "app")),
        ):
            self.assertEqual(blocks(*expression), blocked, expression)
        none = budget("b", 0)
        none["spec"]["selector"] = None
        self.assertIsNone(blocker(self.WEB, [none]), "no selector selects nothing")

    def test_annotations_block(self) -> None:
        for annotations, by in (
            ({"karpenter.sh/do-not-disrupt": "true"}, "annotation karpenter.sh/do-not-disrupt"),
            ({"karpenter.sh/do-not-disrupt": "1h30m"}, "annotation karpenter.sh/do-not-disrupt"),
            ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, "annotation safe-to-evict"),
            ({"karpenter.sh/do-not-disrupt": "false", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, None),
        ):
            self.assertEqual(blocker({**self.WEB, "annotations": annotations}, []), by)


class Drains(unittest.TestCase):
    def test_terminating_pods_are_left_and_not_blocked(self) -> None:
        daemon = {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}
        pods = [
            pod("web-0"),
            pod("web-1", deletionTimestamp="2026-11-21T03:12:09Z"),
            pod("api-0", "api"),
            pod("agent", **daemon),
            pod("static", annotations={"kubernetes.io/config.mirror": "x"}),
            pod("kruise", annotations={"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}),
            pod("mp-1", labels={"s3.csi.aws.com/mountpoint-version": "1.20.0"}),
            pod("juicefs", labels={"app.kubernetes.io/name": "juicefs-mount"}),
        ]
        found = drain(pods, [budget("web", 0, matchLabels={"app": "web"})], [event("Draining", pods="20")])
        self.assertEqual((found.gone, found.left, found.leaving), (17, 3, 1))
        self.assertEqual(found.blocked, [("shop/web-0", "budget shop/web")])

    def test_latest_event_decides_the_state(self) -> None:
        later = "2026-11-21T03:12:50Z"
        for reason, state in (("DrainContinues", "draining"), ("Drained", "drained"), ("DrainFailed", "failed"), ("Cordoned", "cordoned")):
            self.assertEqual(drain([], [], [event(reason, later), event("Draining")]).state, state)
            self.assertEqual(drain([], [], [event("Draining"), event(reason, later)]).state, state)
        self.assertEqual(drain([], [], [event("Draining"), event("NodeReady", later)]).state, "draining")

    def test_state_without_events_comes_from_the_pods(self) -> None:
        self.assertEqual((drain([pod("web-0")]).state, drain([]).state, drain([]).gone), ("draining", "empty", None))
        self.assertIsNone(drain_of("prod", {"metadata": {"name": "n-1"}}, [], [], []), "no claim, no drain")

    def test_events_of_other_drains_and_nodes_are_ignored(self) -> None:
        earlier, other = event("Drained", "2026-11-21T03:11:59Z", "7"), event("DrainFailed", pods="8", name="n-2")
        found = drain([pod("web-0")], [], [earlier, other])
        self.assertEqual((found.state, found.pods), ("draining", None))
        self.assertIsNone(drain([], [], [event("Draining", pods="9" * 99)]).pods)


class Text(unittest.TestCase):
    def test_rows_are_sorted_by_time_left(self) -> None:
        def of(name: str, left: int, **claimed: Any) -> Drain:
            found = drain_of("prod", node(name, **claimed), [pod("p")] * left, [], [])
            assert found
            return found

        drains = [of("empty", 0), of("held", 1, until=None), of("late", 1, until="2026-11-21T05:13:00Z"), of("soon", 1),
                  of("over", 1, until="2026-11-21T03:12:59Z")]  # fmt: skip
        rows = table(drains, [], NOW, 1).splitlines()[2:]
        self.assertEqual([row.split()[1] for row in rows], ["over", "soon", "late", "held", "empty"])
        self.assertIn(" over ", rows[0])
        self.assertIn("2:00:00", rows[2])
        self.assertIn("a hook's", rows[3])

    def test_table_is_cut_to_the_terminal_but_not_read_stays(self) -> None:
        text = table([drain([pod("p")])] * 30, [("dark", "401")], NOW, 2, width=40, height=10)
        lines = text.splitlines()
        self.assertEqual((len(lines), max(map(len, lines))), (9, 40))
        self.assertEqual(lines[-2:], ["and 25 more", "not read: dark: 401"])

    def test_the_page_shows_what_is_printed(self) -> None:
        def of(cluster: str, name: str, zone: str, state: str, pods: int, left: int, leaving: int, *by: str, **claimed: Any) -> Drain:
            found = claim_on(node(**claimed)["metadata"])
            assert found
            return Drain(cluster, name, zone, found, state, pods, left, leaving, [("shop/a", why) for why in by])

        hook = {"notice": "terminate lifecycle action", "until": None, "since": "2026-11-21T03:00:30Z"}
        drains = [
            of("prod", "ip-10-0-12-34.ec2.internal", "us-east-1a", "draining", 20, 3, 1, *["budget shop/db"] * 2,
               since="2026-11-21T03:12:16Z", until="2026-11-21T03:14:16Z"),
            of("prod", "ip-10-0-40-7.ec2.internal", "us-east-1b", "draining", 11, 3, 2, "annotation karpenter.sh/do-not-disrupt", **hook),
            of("batch", "ip-10-1-3-99.ec2.internal", "us-east-1a", "drained", 20, 0, 0,
               since="2026-11-21T03:12:02Z", until="2026-11-21T03:14:02Z"),
        ]  # fmt: skip
        page = (TOOLS.parent / "docs/drains.md").read_text()
        self.assertIn(f"$ tools/spillway drains\n{table(drains, [], NOW, 1)}\n```", page)

    def test_unread_clusters_stand_in_the_first_line(self) -> None:
        for clusters, wanted in ((1, "0 of 1 cluster read"), (12, "11 of 12 clusters read, 0 claimed nodes")):
            head, trouble = table([], [("dark", "401")], NOW, clusters).splitlines()
            self.assertEqual((head, trouble), (f"2026-11-21 03:13:00 UTC: {wanted}", "not read: dark: 401"))


class OneClaimedNode:
    """An API server whose node has fewer pods at each look."""

    def __init__(self) -> None:
        self.pods = 3

    def list(self, path: str, **_: object) -> list[Json]:
        return {"/api/v1/nodes": [node()], "/api/v1/pods": [pod(f"web-{n}") for n in range(self.pods)]}.get(path, [])


class Remembered(unittest.TestCase):
    def test_gone_without_events_counts_from_the_first_look(self) -> None:
        api_server: Any = OneClaimedNode()
        watched = Watched("prod", api_server)
        self.assertIsNone(watched.look()[0].gone, "a first look cannot know")
        api_server.pods = 1
        self.assertEqual(watched.look()[0].gone, 2)


# kubectl as far as it is used: `proxy` answers from the file that the context names.
KUBECTL = """#!{python}
import http.server, json, os, pathlib, socketserver, sys, urllib.parse
of = dict(word.lstrip("-").split("=", 1) for word in sys.argv if word.startswith("--") and "=" in word)
named = sys.argv[sys.argv.index("--context") + 1] if "--context" in sys.argv else pathlib.Path(sys.argv[2]).read_text()
file = pathlib.Path(__file__).parent / named
if not file.exists():
    sys.exit('error: context "' + named + '" does not exist \x1b[31m')
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def address_string(self):
        return ""
    def log_message(self, *_):
        pass
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        answers = json.loads(file.read_text())
        answer = answers.get(url.path + "#" + query.get("continue", ""), answers.get(url.path, dict(items=[], metadata=dict())))
        body = json.dumps(answer).encode()
        self.send_response(answer.get("code", 200))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
(file.parent / f"{named}.pid").write_text(str(os.getpid()))
(file.parent / f"{named}.rejects").write_text(of["reject-methods"])
server = Server(of["unix-socket"], Answer)
print("Starting to serve on", of["unix-socket"], flush=True)
server.serve_forever()
"""


class Typed(StandIn):
    def setUp(self) -> None:
        super().setUp()
        self.program("kubectl", KUBECTL.replace("{python}", sys.executable))

    def drains(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.spillway("drains", *arguments)

    def cluster(self, name: str, *nodes: Json, **more: Any) -> None:
        def of(*items: Any) -> Json:
            return {"items": list(items), "metadata": {}}

        lists = {"/api/v1/nodes": of(*nodes), "/api/v1/pods": of(pod("web-0"))}
        lists["/apis/policy/v1/poddisruptionbudgets"] = of(budget("web", 0, matchLabels={"app": "web"}))
        lists["/api/v1/namespaces/default/events"] = of(event("Draining", pods="4"))
        (self.folder / name).write_text(json.dumps({**lists, **more}))

    def test_all_clusters_of_the_account_are_looked_at(self) -> None:
        self.cluster("one", node("n-1"), {"metadata": {"name": "cordoned-by-a-person"}})
        self.cluster("two", node("n-2"))
        self.answers("list-clusters", {"clusters": ["one", "two"]})
        done = self.drains("--once")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, _, *rows = done.stdout.splitlines()
        self.assertIn("2 claimed nodes, 2 pods left, 2 of them blocked", head)
        self.assertEqual([row.split()[:2] for row in rows], [["one", "n-1"], ["two", "n-2"]])
        self.assertEqual([left.name for left in self.folder.glob("drains-*")], [], "nothing is left behind")
        rejects = (self.folder / "one.rejects").read_text()
        methods = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "CONNECT")
        self.assertEqual([method for method in methods if not re.search(rejects, method)], ["GET", "HEAD", "OPTIONS"])
        for proxy in self.folder.glob("*.pid"):
            with self.assertRaises(ProcessLookupError):
                os.kill(int(proxy.read_text()), 0)

    def test_signal_ends_the_proxies_too(self) -> None:
        self.cluster("mine", node())
        command = [sys.executable, str(TOOLS / "spillway"), "drains", "--context", "mine"]
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "TMPDIR": str(self.folder)}
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            ours, its = pty.openpty()
            # Whoever runs the tests in the background has it ignored, and children inherit that.
            heeded = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
            watching = subprocess.Popen(command, env=environment, stdin=its, stdout=its, stderr=its, preexec_fn=heeded)
            os.close(its)
            seen = b""
            while b"n-1" not in seen:
                seen += os.read(ours, 1000)
            watching.send_signal(number)
            self.assertEqual(watching.wait(timeout=60), 0)
            os.close(ours)
            with self.assertRaises(ProcessLookupError):
                os.kill(int((self.folder / "mine.pid").read_text()), 0)

    def test_forecast_reads_the_node_through_the_same_proxy(self) -> None:
        self.cluster("one", node("n-1"))
        done = self.spillway("doctor", "one", "--node", "n-1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("spillway doctor: HookMaxWaitS=3600 is assumed: Some: ", done.stderr)
        self.assertIn("n-1: 1 pod can hold a drain, for up to 60 min", done.stdout)
        self.assertRegex(done.stdout, r"shop/web-0 +budget shop/web +60 min")
        self.assertEqual(list(self.folder.glob("spillway-*")), [], "nothing is left behind")

    def test_json_is_for_programs(self) -> None:
        self.cluster("mine", node())
        document = json.loads(self.drains("-o", "json", "--context", "mine").stdout)
        (found,) = document["drains"]
        del found["seconds_left"]
        self.assertEqual(
            found,
            {
                "cluster": "mine", "node": "n-1", "zone": "us-east-1a", "notice": "spot interruption", "event_id": "e-1",
                "state": "draining", "since": "2026-11-21T03:12:00Z", "until": "2026-11-21T03:14:00Z",
                "pods": {"gone": 3, "left": 1, "leaving": 0, "blocked": 1},
                "blocked": [{"pod": "shop/web-0", "by": "budget shop/web"}],
            },
        )  # fmt: skip

    def test_unreadable_cluster_does_not_hide_the_others(self) -> None:
        self.cluster("one", node())
        self.cluster("two", **{"/api/v1/nodes": {"code": 403, "message": "nodes is forbidden \x1b[2J"}})
        done = self.drains("--once", "--cluster", "one", "--cluster", "two", "--cluster", "three")
        self.assertEqual(done.returncode, 2)
        lines = done.stdout.splitlines()
        self.assertIn("n-1", lines[2])
        self.assertEqual(lines[3], "not read: two: GET /api/v1/nodes: 403 nodes is forbidden [2J")
        self.assertEqual(lines[4], 'not read: three: kubectl proxy: error: context "three" does not exist [31m')

    def test_every_page_of_a_list_is_read(self) -> None:
        first = {"items": [node("n-1")], "metadata": {"continue": "more"}}
        second = {"items": [node("n-2")], "metadata": {}}
        self.cluster("big", **{"/api/v1/nodes#": first, "/api/v1/nodes#more": second})
        self.assertEqual(len(json.loads(self.drains("-o", "json", "--context", "big").stdout)["drains"]), 2)


if __name__ == "__main__":
    unittest.main()
