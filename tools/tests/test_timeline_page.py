"""What is drawn stands where the receipt says, and reads without colours, scripts or a network."""

from __future__ import annotations

import re
import unittest
from pathlib import Path
from typing import Any

from receipt_timeline.drain import drains_of
from receipt_timeline.find import receipts_in
from receipt_timeline.page import page
from receipt_timeline.receipt import read

from . import receipts
from .drawn import Node, Page

Json = dict[str, Any]
# A thousandth of a per cent of two minutes is 1 ms, of an hour 36 ms.
OF_TWO_MINUTES, OF_AN_HOUR = 3, 80


def html(*documents: Json) -> str:
    (drain,) = drains_of([read(document) for document in documents])
    return page(drain)


def drawn(*documents: Json) -> Page:
    return Page(html(*documents), documents[-1]["notice"]["time"].rstrip("Z"))


class PageTest(unittest.TestCase):
    def reaches(self, page: Page, node: Node, from_ms: int, to_ms: int, within: int = OF_TWO_MINUTES) -> None:
        begins, ends = page.stretch(node)
        self.assertAlmostEqual(begins, from_ms, delta=within)
        self.assertAlmostEqual(ends, to_ms, delta=within)

    def stands(self, page: Page, node: Node, at_ms: int, within: int = OF_TWO_MINUTES) -> None:
        self.assertAlmostEqual(page.moment(node), at_ms, delta=within)


class ADrainedNode(PageTest):
    def setUp(self) -> None:
        self.page = drawn(receipts.drained())

    def test_each_pod_waits_from_the_claim_and_leaves_from_when_it_was_told_until_it_has_gone(self) -> None:
        for pod in receipts.drained()["pods"]:
            if pod["fate"] == "stayed":
                continue
            with self.subTest(pod["pod"]):
                row = self.page.row(pod["pod"])
                self.reaches(self.page, row.one("line", "waiting"), 802, pod["requested_ms"])
                self.reaches(self.page, row.one("rect", f"leaving {pod['fate']}"), pod["accepted_ms"], pod["gone_ms"])
                self.stands(self.page, row.one("svg", f"mark {pod['fate']}"), pod["gone_ms"])

    def test_a_blocked_pod_is_marked_from_its_first_refusal_on_with_its_budgets_name(self) -> None:
        row = self.page.row("shop/web-5d9c7b8f6-qh2vz")
        self.reaches(self.page, row.one("rect", "blocked"), 850, 20000)
        self.assertEqual(row.one("text", "budget").text, "PDB web")
        self.assertIn("blocked 19.1 s by budget web, refused 2×", row.text)

    def test_a_pods_grace_is_shown_and_for_a_clamped_one_what_is_missing_of_it(self) -> None:
        row = self.page.row("shop/orders-0")
        self.reaches(self.page, row.one("rect", "grace"), 900, 900 + 117_000)
        self.reaches(self.page, row.one("rect", "missing"), 900 + 117_000, 900 + 600_000)
        self.assertIn("gone at 41.9 s, after 41.0 s of 117 s of grace; it asks for 600 s", row.text)
        clean = self.page.row("shop/web-5d9c7b8f6-qh2vz")
        self.reaches(self.page, clean.one("rect", "grace"), 20000, 20000 + 30_000)
        self.assertEqual(clean.all("rect", "missing"), [])

    def test_the_legend_explains_what_is_drawn_and_nothing_else(self) -> None:
        keys = [key.text for key in self.page.root.one("ul", "legend").all("li")]
        self.assertIn("blocked by a budget (PDB)", keys)
        self.assertNotIn("until its end: no more is known", keys)
        only_clean = receipts.receipt(pods=[receipts.pod("shop/a", "clean", requested_ms=900, accepted_ms=950, gone_ms=2000)])
        keys = [key.text for key in drawn(only_clean).root.one("ul", "legend").all("li")]
        self.assertNotIn("blocked by a budget (PDB)", keys)

    def test_a_pod_that_stays_says_why(self) -> None:
        row = self.page.row("kube-system/log-agent-x7k2p")
        self.assertIn("a DaemonSet's pod", row.text)
        self.assertEqual(row.all("rect"), [])


class TheWindow(PageTest):
    def test_a_drain_that_took_a_good_part_of_it_is_drawn_up_to_the_deadline(self) -> None:
        page = drawn(receipts.lost())
        lines = page.root.one("svg", "lines")
        self.stands(page, lines.one("line", "limit"), 120_000)
        self.reaches(page, lines.one("rect", "margin"), 118_000, 120_000)
        self.stands(page, lines.one("line", "claimed"), 802)

    def test_a_short_drain_is_enlarged_and_the_window_above_it_is_whole(self) -> None:
        page = drawn(receipts.drained())
        lines = page.root.one("svg", "lines")
        self.assertEqual(lines.all("line", "limit"), [], "the deadline is beyond what is drawn")
        self.stands(page, lines.one("line", "drained"), 43_017)
        window = page.row("Window")
        share = window.one("rect", "used").percent("width") / window.one("rect", "window").percent("width")
        self.assertAlmostEqual(share, (43_020 - 640) / 120_000, places=4)
        self.assertIn("the instance goes 2 min after the notice; 77.0 s of it were left", window.text)

    def test_what_came_before_the_notices_time_is_drawn_too(self) -> None:
        page = drawn(receipts.receipt(steps=receipts.steps(begun=-900, claimed=200, drained=60_000)))
        bar = page.row("Invocation").one("rect", "invocation")
        self.reaches(page, bar, -900, 60_000)
        self.assertGreater(bar.percent("x"), 0)

    def test_maintenance_that_was_announced_weeks_before_is_drawn_from_where_the_work_begins(self) -> None:
        documents = receipts.maintenance_two_weeks_ahead()
        page = Page(html(*documents), "2026-11-21T02:12:00")
        row = page.row("shop/web-0")
        self.reaches(page, row.one("rect", "leaving clean"), 400, 30_000)
        self.assertIn("accepted at 0.40 s · gone at 30.0 s, after 29.6 s", row.text)
        self.assertIn("the instance goes 1 h after the start of the drain; 59 min 20 s", page.row("Window").text)
        self.assertIn("since the start of the drain", page.row("since").text)
        page.row("Invocation")  # One row: the invocation that only made the schedule is none of the drain's.
        self.assertIn("2026-11-07 03:12:00 UTC, 13 days 23 h before the drain began", page.root.one("header").text)
        self.assertIn("r-1, r-2", page.root.one("footer").text)

    def test_the_last_receipt_of_a_long_hook_does_not_make_the_drain_begin_with_it(self) -> None:
        for document in (documents := receipts.hook_of_forty_minutes()):
            document["notice"]["time"] = "2026-11-21T01:00:00Z"
            for step in document["steps"]:
                step["at_ms"] += 7_200_000
        self.assertIn("after 39 min 59 s", drawn(documents[-1]).root.one("header").text)

    def test_no_mark_is_beyond_the_edge(self) -> None:
        for documents in ([receipts.lost()], receipts.hook_of_forty_minutes(), [receipts.of_300_pods()]):
            for mark in drawn(*documents).root.all("svg", "mark"):
                self.assertTrue(1 < mark.percent("x") < 99, mark)


class AHookOfFortyMinutes(PageTest):
    def setUp(self) -> None:
        self.documents = receipts.hook_of_forty_minutes()
        self.page = drawn(*self.documents)

    def test_its_three_invocations_are_one_picture_with_a_bar_for_each(self) -> None:
        for number, (from_ms, to_ms) in enumerate([(1000, 895900), (897000, 1792500), (1793000, 2400500)], 1):
            bar = self.page.row(f"Invocation {number}").one("rect", "invocation")
            self.reaches(self.page, bar, from_ms, to_ms, OF_AN_HOUR)

    def test_its_heartbeats_stand_where_they_were_sent(self) -> None:
        beats = sorted(at for document in self.documents for at in document["hook"]["heartbeats_ms"])
        row = self.page.row("Hook drain")
        marks = row.all("line", "heartbeat")
        self.assertEqual(len(marks), len(beats))
        for mark, beat in zip(marks, beats):
            self.stands(self.page, mark, beat, OF_AN_HOUR)
        self.stands(self.page, row.one("svg", "mark done"), 2_400_000, OF_AN_HOUR)
        self.assertIn("group workers: completed with CONTINUE · 17 heartbeats", row.text)

    def test_a_pod_that_left_over_two_invocations_is_one_bar(self) -> None:
        row = self.page.row("shop/render-0")
        self.reaches(self.page, row.one("rect", "leaving clean"), 1400, 1_500_000, OF_AN_HOUR)
        self.reaches(self.page, self.page.row("shop/db-0").one("rect", "blocked"), 1300, 2_380_000, OF_AN_HOUR)
        self.assertEqual(sorted(self.page.pods()), ["shop/db-0", "shop/render-0", "shop/web-0"])

    def test_its_window_has_no_end_while_the_hook_holds_the_instance(self) -> None:
        self.assertEqual(self.page.root.one("svg", "lines").all("line", "limit"), [])
        window = self.page.row("Window")
        self.reaches(self.page, window.one("rect", "window"), 0, 2_688_000, OF_AN_HOUR)
        said = window.text
        self.assertIn("a hook holds the instance; the last invocation could work until 44 min 48 s", said)

    def test_the_longest_wait_is_the_end_of_its_window_if_blocked_pods_are_deleted_before_that(self) -> None:
        for document in self.documents:
            document["window"]["deadline_ms"] = 3_600_000
        page = drawn(*self.documents)
        self.stands(page, page.root.one("svg", "lines").one("line", "limit"), 3_600_000, OF_AN_HOUR)
        said = page.row("Window").text
        self.assertIn("the longest wait is over 1 h after the notice; 20 min of it were left", said)

    def test_the_last_receipt_alone_shows_that_there_were_others(self) -> None:
        page = drawn(self.documents[-1])
        first = page.row("Invocation 1")
        self.reaches(page, first.one("rect", "invocation"), 1000, 896_000, OF_AN_HOUR)
        self.assertIn("pods: 1 clean, 2 remaining · its own receipt is not in the file: request id r-1", first.text)

    def test_a_drain_that_is_not_over_has_pods_that_remain_and_are_not_lost(self) -> None:
        page = drawn(self.documents[0])
        fates = [fate.text for fate in page.root.all("span", "fate")]
        self.assertEqual(fates, ["remaining", "remaining", "clean"])


class LostPods(PageTest):
    def setUp(self) -> None:
        self.page = drawn(receipts.lost())

    def test_they_come_first_then_the_forced_one_then_the_clean_one(self) -> None:
        self.assertEqual(self.page.pods(), ["shop/cart-0", "shop/stuck-1", "shop/ghost-2", "shop/db-0", "shop/web-1"])

    def test_a_lost_pods_bar_reaches_to_the_end_of_the_drain_and_ends_in_a_cross(self) -> None:
        row = self.page.row("shop/cart-0")
        self.reaches(self.page, row.one("rect", "leaving lost"), 900, 120_000)
        self.stands(self.page, row.one("svg", "mark lost"), 120_000)
        self.assertIn("it was still shutting down", row.text)

    def test_a_pod_that_was_never_told_to_leave_is_blocked_to_the_end(self) -> None:
        row = self.page.row("shop/stuck-1")
        self.reaches(self.page, row.one("rect", "blocked"), 845, 120_000)
        self.assertEqual(row.all("rect", "leaving"), [])
        self.assertIn("PodDisruptionBudget stuck blocked it", row.text)

    def test_an_unconfirmed_pods_bar_ends_with_its_grace_and_what_nobody_knows_is_dotted(self) -> None:
        row = self.page.row("shop/ghost-2")
        self.reaches(self.page, row.one("rect", "leaving unconfirmed"), 910, 30_910)
        self.reaches(self.page, row.one("line", "unsure"), 30_910, 120_000)
        self.assertIn("nobody knows", self.page.root.one("ul", "legend").text)
        self.assertEqual(self.page.row("shop/cart-0").all("line", "unsure"), [])

    def test_an_unconfirmed_pod_without_times_is_dotted_from_the_claim_on(self) -> None:
        page = drawn({**receipts.lost(), "pods": [receipts.pod("shop/ghost", "unconfirmed")]})
        row = page.row("shop/ghost")
        self.reaches(page, row.one("line", "unsure"), 802, 120_000)
        self.assertEqual(row.all("rect"), [])

    def test_every_end_has_a_shape_and_a_word_of_its_own(self) -> None:
        shapes: dict[str, str] = {}
        for name, word in [
            ("shop/cart-0", "lost"),
            ("shop/ghost-2", "unconfirmed"),
            ("shop/db-0", "forced"),
            ("shop/web-1", "clean"),
        ]:
            row = self.page.row(name)
            self.assertEqual(row.one("span", "fate").text, word)
            shapes[word] = row.one("svg", "mark").one("use").attributes["href"]
        drawings = {node.attributes["id"]: node.one("path").attributes["d"] for node in self.page.root.all("g")}
        self.assertEqual(len({drawings[shape.lstrip("#")] for shape in shapes.values()}), len(shapes))


class AnIgnoredNotice(PageTest):
    def test_it_says_why_and_that_no_pod_was_touched(self) -> None:
        page = drawn(receipts.ignored())
        self.assertIn("ignored", page.root.one("h1").text)
        self.assertIn("is not a node: its tags name no cluster.", page.root.one("header").text)
        self.assertIn("No pod was touched.", page.root.one("nav").text)
        self.assertEqual(page.pods(), [])

    def test_a_notice_that_could_not_be_read_has_a_page_without_a_picture(self) -> None:
        page = drawn_without_time()
        self.assertIn("nothing can be drawn", page.root.one("main").text)
        self.assertIn("Cannot read the notice.", page.root.one("header").text)


def drawn_without_time() -> Page:
    return Page(html(receipts.receipt(notice={}, steps=[], ending="failed", reason="cannot read the notice")))


class ThreeHundredPods(PageTest):
    def setUp(self) -> None:
        self.documents = receipts.of_300_pods()
        self.page = drawn(self.documents)

    def test_every_pod_is_in_it_once(self) -> None:
        self.assertEqual(len(self.documents["pods"]), 300)
        self.assertEqual(sorted(self.page.pods()), sorted(pod["pod"] for pod in self.documents["pods"]))

    def test_what_was_lost_comes_first_and_what_says_nothing_new_is_folded(self) -> None:
        self.assertEqual(self.page.pods()[:4], ["shop/cart-0", "shop/cart-1", "shop/cart-2", "data/redis-0"])
        (folded,) = list(self.page.root.all("details", "group"))
        self.assertNotIn("open", folded.attributes)
        of_folded = {pod.text for pod in folded.all("span", "pod")}
        self.assertEqual({name.split("-")[0] for name in of_folded}, {"batch/worker"})
        self.assertIn("clean, gone at 29.4 s", folded.all(class_="row")[1].text)

    def test_of_the_clean_ones_the_blocked_and_the_last_to_go_are_shown_the_slowest_first(self) -> None:
        group = next(node for node in self.page.root.all("section", "group") if "blocked or last" in node.text)
        shown = [pod.text for pod in group.all("span", "pod")]
        self.assertEqual(shown, [f"shop/web-5d9c7b8f6-{n:02}" for n in reversed(range(24))])

    def test_pods_that_one_budget_blocked_share_a_row_that_opens(self) -> None:
        (queue,) = self.page.root.all("details", "queue")
        self.assertNotIn("open", queue.attributes)
        self.assertEqual(len(queue.all("span", "pod")), 24)
        row = self.page.row("24 pods of budget shop/web")
        self.reaches(self.page, row.one("rect", "blocked"), 900, 70_000)
        self.stands(self.page, row.one("svg", "mark clean"), 74_000)
        self.assertIn("the last of them was blocked for 69.1 s · the last gone at 74.0 s", row.text)

    def test_a_budget_is_its_namespaces(self) -> None:
        for place, pod in enumerate(self.documents["pods"]):
            if pod.get("blocked_by") == "web" and place % 2:
                pod["pod"] = pod["pod"].replace("shop/", "till/")
        rows = [row.text for row in drawn(self.documents).root.all("summary", "row")]
        self.assertEqual(len(rows), 2)

    def test_the_count_of_each_end_leads_to_its_pods(self) -> None:
        ids = {node.attributes.get("id") for node in self.page.root.walk()}
        ways = self.page.root.one("nav").all("a")
        self.assertIn("3 lost", [way.text for way in ways])
        self.assertTrue({way.attributes["href"].lstrip("#") for way in ways} <= ids)

    def test_the_curve_falls_with_each_pod_that_goes(self) -> None:
        curve = self.page.row("Pods still there").one("polygon").attributes["points"]
        heights = [float(point.split(",")[1]) for point in curve.split()]
        self.assertEqual(heights[1], 0, "all of them are there")
        self.assertAlmostEqual(heights[-3], 1000 * (1 - 3 / 292), delta=0.1, msg="three are lost")


class OlderReceipts(PageTest):
    def test_without_the_times_of_the_requests_a_bar_reaches_from_the_claim_to_the_end(self) -> None:
        document = receipts.lost()
        for name in ("managed_by", "decision", "window"):
            del document[name]
        for pod in document["pods"]:
            for name in ("requested_ms", "accepted_ms"):
                pod.pop(name, None)
        page = drawn(document)
        row = page.row("shop/db-0")
        self.reaches(page, row.one("rect", "unknown forced"), 802, 95_000)
        self.assertIn("refused 4× by budget db · gone at 95.0 s, given 28 of 30 s of grace", row.text)
        self.assertEqual(row.all("rect", "grace"), [], "nobody knows where it begins")
        self.assertIn("until its end: no more is known", page.root.one("ul", "legend").text)


class WhatTheFunctionWrites(PageTest):
    ROOT = Path(__file__).parents[2]

    def test_the_log_line_of_its_snapshot_is_drawn(self) -> None:
        (snapshot,) = self.ROOT.glob("crates/drainer/src/**/*the_receipt_of_a_drain_as_the_log_has_it.snap")
        page = drawn(*receipts_in(snapshot.read_text()))
        self.assertIn("shop/forced", page.pods())

    def test_the_sample_in_the_docs_is_drawn(self) -> None:
        page = drawn(*receipts_in((self.ROOT / "docs/receipt.md").read_text()))
        self.assertIn("shop/orders-0", page.pods())


class TheHeader(PageTest):
    def test_it_tells_in_words_what_happened_to_what_and_when(self) -> None:
        page = drawn(receipts.drained())
        facts = {fact.one("dt").text: fact.one("dd").text for fact in page.root.one("dl").all("div")}
        self.assertEqual(
            facts,
            {
                "Notice": "spot interruption, 2026-11-21 03:12:00 UTC",
                "Instance goes": "03:14:00 UTC, after 2 min",
                "Node claimed": "03:12:00.8 UTC, after 0.80 s",
                "Drain over": "03:12:43.0 UTC, after 43.0 s",
                "Cluster": "prod",
                "Group": "workers",
                "Instance": "m7g.large in us-east-1a",
                "Instance id": "i-1234567890abcdef0",
                "Managed by": "self-managed",
                "Decision": "drain",
            },
        )
        self.assertIn("drained", page.root.one("h1").text)
        self.assertIn("All pods that had to leave the node have gone.", page.root.one("header").text)

    def test_the_node_is_named_once(self) -> None:
        page = drawn(receipts.drained())
        text = page.root.one("header").text + page.root.one("div", "chart").text
        self.assertEqual(text.count("ip-10-0-12-34.ec2.internal"), 1)
        self.assertEqual(drawn(receipts.ignored()).root.one("header").text.count("i-1234567890abcdef0"), 1)

    def test_a_dry_run_says_which_pods_would_leave_and_what_would_hold_the_others(self) -> None:
        page = drawn(receipts.dry_run())
        self.assertIn("PodDisruptionBudget db would block it", page.row("shop/db-0").text)
        self.assertIn("would-leave", page.row("shop/web-0").text)
        for pod in ("shop/db-0", "shop/web-0"):
            self.assertEqual(page.row(pod).all("svg", "bar"), [], "nothing was done to it")

    def test_a_dry_run_says_so(self) -> None:
        self.assertIn("A dry run", drawn(receipts.receipt(dry_run=True)).root.one("header").text)
        self.assertNotIn("dry run", drawn(receipts.receipt()).root.one("header").text)


class Safety(unittest.TestCase):
    EVIL = "</style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"

    def test_nothing_in_a_receipt_becomes_markup(self) -> None:
        document = receipts.drained()
        document.update(reason=self.EVIL, node=self.EVIL, cluster=self.EVIL, instance=self.EVIL, ending=self.EVIL)
        document["notice"].update(kind=self.EVIL, event_id=self.EVIL)
        document["hook"] = {"group": self.EVIL, "name": self.EVIL, "state": self.EVIL, "result": self.EVIL}
        document["steps"].append({"step": self.EVIL, "at_ms": 5})
        for pod in document["pods"]:
            pod.update(
                pod=pod["uid"] + self.EVIL, blocked_by=self.EVIL, why=self.EVIL, answers={self.EVIL: 1, "blocked-by-budget": 1}
            )
        page = drawn(document)
        nodes = list(page.root.walk())
        self.assertEqual({node.tag for node in nodes} & {"script", "img", "iframe", "object", "link", "a:href"}, set())
        self.assertEqual([name for node in nodes for name in node.attributes if name.startswith("on")], [])
        self.assertEqual(page.root.one("span", "subject").text, self.EVIL)
        self.assertEqual(len([pod for pod in page.pods() if self.EVIL in pod]), 4)

    def test_a_page_loads_nothing_and_may_run_nothing(self) -> None:
        text = html(receipts.of_300_pods())
        self.assertEqual(set(re.findall(r"(?:src|href)=\"([^#][^\"]*)\"", text)), set())
        self.assertEqual(set(re.findall(r"url\(([^)]*)\)", text)), {"#hatch"})
        self.assertNotIn("@import", text)
        policies = [meta for meta in Page(text).root.all("meta") if "http-equiv" in meta.attributes]
        self.assertEqual(
            [meta.attributes["content"] for meta in policies], ["default-src 'none'; style-src 'unsafe-inline'"]
        )

    def test_a_page_of_300_pods_can_be_sent_to_somebody(self) -> None:
        self.assertLess(len(html(receipts.of_300_pods()).encode()), 400_000)


if __name__ == "__main__":
    unittest.main()
