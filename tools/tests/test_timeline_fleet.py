"""Many drains on one page: a row for each node, by cluster and zone, which opens into the node's own picture."""

from __future__ import annotations

import unittest
from collections import Counter
from typing import Any

from receipt_timeline.drain import drains_of
from receipt_timeline.fleet_page import fleet_page
from receipt_timeline.receipt import read

from . import receipts
from .drawn import Node, Page

# A thousandth of a per cent of two minutes is 1 ms.
WITHIN_MS = 5


def html(documents: list[receipts.Json]) -> str:
    return fleet_page(drains_of([read(document) for document in documents]))


def drawn(documents: list[receipts.Json]) -> Page:
    return Page(html(documents))


def headings(page: Page) -> list[str]:
    return [heading.text for heading in page.root.all("h2") if "node" in heading.text.lower()]


class FleetTest(unittest.TestCase):
    def reaches(self, page: Page, node: Node, from_ms: int, to_ms: int) -> None:
        begins, ends = page.stretch(node)
        self.assertAlmostEqual(begins, from_ms, delta=WITHIN_MS)
        self.assertAlmostEqual(ends, to_ms, delta=WITHIN_MS)


class ThreeNodes(FleetTest):
    """Their notices come four seconds apart; the second one's drain fails."""

    def setUp(self) -> None:
        self.documents = receipts.storm(3, apart_ms=4000)
        self.page = drawn(self.documents)

    def test_a_row_shows_the_notice_the_cordon_the_evictions_the_blocked_time_and_the_end(self) -> None:
        row = self.page.row("ip-10-0-0-2.")
        self.reaches(self.page, row.one("line", "waiting"), 8000, 8800)
        self.assertAlmostEqual(self.page.moment(row.one("line", "cordoned")), 8800, delta=WITHIN_MS)
        self.reaches(self.page, row.one("rect", "asked"), 8850, 38_800)
        self.reaches(self.page, row.one("rect", "blocked"), 8900, 38_800)
        self.reaches(self.page, row.one("rect", "leaving done"), 8800, 43_800)
        self.assertAlmostEqual(self.page.moment(row.one("svg", "mark done")), 43_800, delta=WITHIN_MS)
        self.assertIn("cordoned after 0.80 s · pods: 19 clean · blocked 29.9 s by budget web · drained after 35.8 s", row.text)

    def test_a_row_has_the_colour_the_shape_and_the_word_of_its_ending(self) -> None:
        failed = self.page.row("ip-10-0-0-1.")
        self.assertEqual(failed.one("span", "fate").text, "failed")
        failed.one("rect", "leaving lost")
        failed.one("svg", "mark lost")
        self.assertIn("pods: 19 clean, 1 lost · blocked 1 min 59 s by budget web and budget cart", failed.text)

    def test_the_instance_goes_where_the_axis_reaches_so_far(self) -> None:
        self.assertAlmostEqual(
            self.page.moment(self.page.row("ip-10-0-0-0.").one("line", "limit")), 120_000, delta=WITHIN_MS
        )
        self.assertEqual(self.page.row("ip-10-0-0-2.").all("line", "limit"), [])

    def test_they_stand_by_cluster_and_zone(self) -> None:
        self.assertEqual(
            headings(self.page),
            [
                "batch · us-east-1b 1 node: 1 failed, 1 pod lost",
                "prod · us-east-1a 1 node: 1 drained",
                "prod · us-east-1c 1 node: 1 drained",
            ],
        )

    def test_the_head_says_what_it_came_to(self) -> None:
        head = self.page.root.one("header").text
        self.assertIn("1 of 3 drains failed; 1 pod was lost.", head)
        self.assertIn("57 clean, 1 lost", head)
        self.assertIn("0.80 s, ip-10-0-0-2.ec2.internal", head)
        self.assertEqual([count.text for count in self.page.root.all("nav", "counts")[0].all("span")], ["1 failed", "2 drained"])

    def test_a_row_opens_the_nodes_own_picture(self) -> None:
        opened = next(node for node in self.page.root.all("details", "node") if "ip-10-0-0-1." in node.text)
        article = opened.one("article")
        self.assertNotIn("open", opened.attributes)
        self.assertIn("1 of 20 pods was still on the node when the time was up.", article.text)
        self.assertEqual(len(article.all("span", "pod")), 21)

    def test_the_curves_say_the_most_and_the_last(self) -> None:
        self.assertIn("at most 1 at once; the last one cordoned at 8.8 s", self.page.row("Nodes not yet cordoned").text)
        self.assertIn("at most 3 at once; the last one over at 2 min 4 s", self.page.row("Nodes being drained").text)
        self.assertIn("1 lost", self.page.row("Pods still there").text)


class FiveHundredNodes(FleetTest):
    text: str
    page: Page

    @classmethod
    def setUpClass(cls) -> None:
        cls.text = html(receipts.storm(500))
        cls.page = Page(cls.text)

    def test_each_node_has_one_row_and_one_picture(self) -> None:
        names = Counter(row.all("span", "pod")[0].text for row in self.page.root.all("summary", "row") if row.all("span", "pod"))
        self.assertEqual((len(names), set(names.values())), (500, {1}))
        self.assertEqual(len(self.page.root.all("article")), 500)

    def test_the_failed_ones_are_in_sight_and_of_the_others_the_slowest(self) -> None:
        folded = {node for rest in self.page.root.all("details", "rest") for node in map(id, rest.walk())}
        in_sight = [node for node in self.page.root.all("details", "node") if id(node) not in folded]
        words = Counter(node.one("summary", "row").one("span", "fate").text for node in in_sight)
        self.assertEqual(words, {"failed": 10, "drained": 6 * 5})
        self.assertEqual(in_sight[0].one("summary", "row").one("span", "fate").text, "failed")

    def test_no_place_of_the_page_is_named_twice_and_every_way_leads_to_one(self) -> None:
        nodes = list(self.page.root.walk())
        ids = [node.attributes["id"] for node in nodes if "id" in node.attributes]
        self.assertEqual(len(ids), len(set(ids)))
        ways = {node.attributes["href"].lstrip("#") for node in nodes if "href" in node.attributes}
        self.assertLessEqual(ways, set(ids))

    def test_it_can_be_sent_to_somebody(self) -> None:
        self.assertLess(len(self.text.encode()), 12_000_000)


class OddOnes(FleetTest):
    def test_drains_that_are_far_apart_begin_where_each_ones_notice_came(self) -> None:
        page = drawn(receipts.storm(3, apart_ms=3_600_000))
        axis = page.row("since each node's notice")
        self.assertEqual(axis.all("text", "clock"), [], "it is no time of day")
        places = {page.row(f"ip-10-0-0-{n}.").one("line", "waiting").percent("x1") for n in range(3)}
        self.assertEqual(len(places), 1)
        self.assertIn("spot interruption at 2026-11-21 05:12:00 UTC", page.row("ip-10-0-0-2.").text)

    def test_several_notices_of_an_instance_share_its_row_and_the_worst_ending_colours_it(self) -> None:
        failed, later = receipts.storm(2)[1], receipts.storm(1)[0]
        later.update(instance=failed["instance"], node=None, cluster=None, pods=[], steps=receipts.steps(begun=9000), ending="ignored")
        later["notice"].update(event_id="e-later", kind="instance state change")
        page = drawn([later, failed])
        row = page.row("ip-10-0-0-1.")
        self.assertEqual(row.one("span", "fate").text, "failed")
        self.assertIn("instance state change: ignored, then spot interruption: failed", row.text)
        self.assertEqual(len(page.root.all("article")), 2)
        self.assertEqual(headings(page), ["batch · us-east-1a 1 node: 1 failed, 1 pod lost"])

    def test_a_pod_that_a_later_notice_saw_leave_is_not_lost(self) -> None:
        first = receipts.storm(2)[1]
        second: dict[str, Any] = {**first, "ending": "drained", "request_id": "r-later", "notice": {**first["notice"], "event_id": "e-later"}}
        second["pods"] = [{**pod, "fate": "clean", "gone_ms": 90_000} for pod in first["pods"]]
        self.assertIn("no pod was lost", drawn([first, second]).root.one("header").text)

    def test_what_is_no_node_of_a_cluster_comes_last(self) -> None:
        page = drawn([receipts.ignored(), *receipts.storm(1)])
        self.assertEqual(headings(page), ["prod · us-east-1a 1 node: 1 drained", "No node of a cluster 1 node: 1 ignored"])
        self.assertIn("its tags name no cluster", page.row("i-1234567890abcdef0").text)
        self.assertIn("at most 1 at once", page.row("Nodes being drained").text, "of those that were cordoned")

    def test_notices_that_could_not_be_read_have_rows_without_a_picture(self) -> None:
        unread = receipts.receipt(notice={}, instance=None, node=None, steps=[], ending="failed", reason="cannot read the notice")
        page = drawn([{**unread, "request_id": "r-8"}, {**unread, "request_id": "r-9"}])
        rows = [row for row in page.root.all("summary", "row") if "no instance" in row.text]
        self.assertEqual([row.all("svg", "mark") for row in rows], [[], []])

    def test_nothing_in_a_receipt_becomes_markup(self) -> None:
        evil = "</style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
        documents = receipts.storm(2)
        for document in documents:
            document.update(cluster=evil, zone=evil, node=evil, ending=evil, reason=evil)
            document["notice"].update(kind=evil)
            document["pods"][0].update(blocked_by=evil, answers={"blocked-by-budget": 1})
        page = drawn(documents)
        nodes = list(page.root.walk())
        self.assertEqual({node.tag for node in nodes} & {"script", "img", "iframe", "object", "link"}, set())
        self.assertEqual([name for node in nodes for name in node.attributes if name.startswith("on")], [])


if __name__ == "__main__":
    unittest.main()
