"""Pages of drains as they were reviewed: a snapshot of each, a row of the page in a line. UPDATE=1 writes them anew."""

from __future__ import annotations

import os
import re
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from receipt_timeline.drain import drains_of
from receipt_timeline.find import receipts_in
from receipt_timeline.fleet_page import fleet_page
from receipt_timeline.page import page
from receipt_timeline.receipt import read

from . import receipts
from .drawn import Page

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SNAPSHOTS = Path(__file__).parent / "pages"
EVIL = "</style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def html(*documents: Json) -> str:
    drains = drains_of([read(document) for document in documents])
    return page(drains[0]) if len(drains) == 1 else fleet_page(drains)


def as_reviewed(text: str) -> str:
    """The body without the shapes that all pages have."""
    body = text.partition("</defs></svg>")[2].partition("</body>")[0]
    return re.sub(r"(?=<(?:header|nav|main|ul|section|article|details|footer)\b|<(?:div|summary) class=\"row)", "\n", body).strip() + "\n"


def unread(request_id: str) -> Json:
    return receipts.receipt(notice={}, instance=None, node=None, steps=[], ending="failed", reason="cannot read the notice", request_id=request_id)


def without_times() -> Json:
    document = receipts.lost()
    for name in ("managed_by", "decision", "window"):
        del document[name]
    for pod in document["pods"]:
        for name in ("requested_ms", "accepted_ms"):
            pod.pop(name, None)
    return document


def several_notices() -> list[Json]:
    """Of one instance, of which the second changes nothing; and what is no node of a cluster."""
    failed, later = receipts.storm(2)[1], receipts.storm(1)[0]
    later.update(instance=failed["instance"], node=None, cluster=None, pods=[], steps=receipts.steps(begun=9000), ending="ignored")
    later["notice"].update(event_id="e-later", kind="instance state change")
    return [later, failed, receipts.ignored(), unread("r-8"), unread("r-9")]


# Between them they have every shape, lane and fate; the others are drawn and checked for their marks only.
REVIEWED = ("lost", "hook-of-forty-minutes", "maintenance", "several-notices")
PAGES: dict[str, list[Json]] = {
    "lost": [receipts.lost()],
    "hook-of-forty-minutes": receipts.hook_of_forty_minutes(),
    "maintenance": receipts.maintenance_two_weeks_ahead(),
    "several-notices": several_notices(),
    "drained": [receipts.drained()],
    "without-times": [without_times()],
    "dry-run": [receipts.dry_run()],
    "ignored": [receipts.ignored()],
    "unread": [unread("r-8")],
    "its-last-invocation": receipts.hook_of_forty_minutes()[-1:],
    "far-apart": receipts.storm(2, apart_ms=3_600_000),
}


class APage(unittest.TestCase):
    def test_page_is_as_reviewed(self) -> None:
        for name in REVIEWED:
            documents = PAGES[name]
            file, now = SNAPSHOTS / f"{name}.html", as_reviewed(html(*documents))
            if os.environ.get("UPDATE"):
                file.write_text(now)
            with self.subTest(name):
                self.assertEqual(file.read_text(), now, "if it is right: UPDATE=1, and review the difference")

    def test_written_receipts_are_drawn(self) -> None:
        (log,) = ROOT.glob("crates/drainer/src/**/*the_receipt_of_a_drain_as_the_log_has_it.snap")
        for file, pod in ((log, "shop/forced"), (ROOT / "docs/receipt.md", "shop/orders-0")):
            self.assertIn(pod, Page(html(*receipts_in(file.read_text()))).pods())

    def test_marks_stay_within_the_edges(self) -> None:
        for documents in PAGES.values():
            for mark in Page(html(*documents)).root.all("svg", "mark"):
                self.assertTrue(1 < mark.percent("x") < 99, mark)

    def test_pod_gone_by_a_later_notice_is_not_lost(self) -> None:
        first = receipts.storm(2)[1]
        second: Json = {**first, "ending": "drained", "request_id": "r-later", "notice": {**first["notice"], "event_id": "e-later"}}
        second["pods"] = [{**pod, "fate": "clean", "gone_ms": 90_000} for pod in first["pods"]]
        self.assertIn("no pod was lost", Page(html(first, second)).root.one("header").text)


class AHostileReceipt(unittest.TestCase):
    def hostile(self) -> Iterator[list[Json]]:
        drain, fleet = receipts.drained(), receipts.storm(2)
        drain["hook"] = {"group": EVIL, "name": EVIL, "state": EVIL, "result": EVIL}
        drain["steps"].append({"step": EVIL, "at_ms": 5})
        for document in (drain, *fleet):
            document.update(reason=EVIL, node=EVIL, cluster=EVIL, zone=EVIL, ending=EVIL)
            document["notice"].update(kind=EVIL)
            for pod in document["pods"]:
                pod.update(pod=pod["uid"] + EVIL, blocked_by=EVIL, why=EVIL, answers={EVIL: 1, "blocked-by-budget": 1})
        yield [drain]
        yield fleet

    def test_receipt_never_becomes_markup(self) -> None:
        for documents in self.hostile():
            nodes = list(Page(html(*documents)).root.walk())
            self.assertEqual({node.tag for node in nodes} & {"script", "img", "iframe", "object", "link"}, set())
            self.assertEqual([name for node in nodes for name in node.attributes if name.startswith("on")], [])
            self.assertIn(EVIL, {node.text for node in nodes})

    def test_page_loads_and_runs_nothing(self) -> None:
        text = html(receipts.of_300_pods())
        self.assertEqual(set(re.findall(r"(?:src|href)=\"([^#][^\"]*)\"", text)), set())
        self.assertEqual(set(re.findall(r"url\(([^)]*)\)", text)), {"#hatch"})
        self.assertNotIn("@import", text)
        self.assertIn("content=\"default-src 'none'; style-src 'unsafe-inline'\"", text)


class LargePages(unittest.TestCase):
    def test_300_pods_are_in_it_once_the_lost_first(self) -> None:
        document = receipts.of_300_pods()
        found = Page(text := html(document))
        self.assertEqual(sorted(found.pods()), sorted(pod["pod"] for pod in document["pods"]))
        self.assertEqual(found.pods()[:4], ["shop/cart-0", "shop/cart-1", "shop/cart-2", "data/redis-0"])
        self.assertEqual(len(found.root.all("details", "group")), 1, "those that say nothing new are folded")
        (queue,) = found.root.all("details", "queue")
        self.assertEqual(len(queue.all("span", "pod")), 24, "one budget blocked them")
        self.assertLess(len(text.encode()), 400_000)

    def test_budgets_of_two_namespaces_have_two_rows(self) -> None:
        document = receipts.of_300_pods()
        for place, pod in enumerate(document["pods"]):
            if pod.get("blocked_by") == "web" and place % 2:
                pod["pod"] = pod["pod"].replace("shop/", "till/")
        self.assertEqual(len(Page(html(document)).root.all("summary", "row")), 2)

    def test_500_nodes_have_a_row_each_the_failed_in_sight(self) -> None:
        found = Page(text := html(*receipts.storm(500)))
        names = Counter(row.all("span", "pod")[0].text for row in found.root.all("summary", "row") if row.all("span", "pod"))
        self.assertEqual((len(names), set(names.values())), (500, {1}))
        folded = {id(node) for rest in found.root.all("details", "rest") for node in rest.walk()}
        in_sight = [node for node in found.root.all("details", "node") if id(node) not in folded]
        words = Counter(node.one("summary", "row").one("span", "fate").text for node in in_sight)
        self.assertEqual(words, {"failed": 10, "drained": 6 * 5})
        nodes = list(found.root.walk())
        ids = [node.attributes["id"] for node in nodes if "id" in node.attributes]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertLessEqual({node.attributes["href"].lstrip("#") for node in nodes if "href" in node.attributes}, set(ids))
        self.assertLess(len(text.encode()), 12_000_000)


if __name__ == "__main__":
    unittest.main()
