"""The page of one drain or of several."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from receipt_timeline.drain import drains_of
from receipt_timeline.find import receipts_in
from receipt_timeline.page import page
from receipt_timeline.receipt import read
from receipt_timeline.text import text_of

from . import receipts

ROOT = Path(__file__).parents[2]
EVIL = "</style></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


def html(*documents: receipts.Json) -> str:
    return page(drains_of([read(document) for document in documents]))


def stretches(text: str, pod: str) -> list[tuple[str, str]]:
    (row,) = re.findall(rf"<code>{pod}</code>(.*?)<small>", text)
    return re.findall(r'class="([^"]+)" style="([^"]+)"', row)


class APage(unittest.TestCase):
    def test_lost_pods_of_300_come_first_and_good_ones_are_folded(self) -> None:
        document = receipts.of_300_pods()
        text = html(document)
        names = re.findall("<code>(.*?)</code>", text)
        self.assertEqual(sorted(names), sorted(pod["pod"] for pod in document["pods"]))
        self.assertEqual(names[:3], ["shop/cart-0", "shop/cart-1", "shop/cart-2"])
        self.assertEqual(re.findall("<details(.*?)>", text), [' open=""', ""])

    def test_bar_has_block_shutdown_and_deadline(self) -> None:
        drawn = dict(stretches(html(receipts.lost()), "data/redis-0"))
        self.assertEqual((drawn["blocked"], drawn["leaving"]), ("left:0.67%;width:71.83%", "left:72.50%;width:5.83%"))
        self.assertEqual(drawn["limit"], "right:0.00%")

    def test_deadline_long_after_the_drain_is_not_drawn(self) -> None:
        pods = [receipts.pod("a", "clean", gone_ms=30_000)]
        document = receipts.receipt(steps=receipts.steps(claimed=800, drained=30_000), pods=pods)
        self.assertNotIn("limit", [name for name, _ in stretches(html(document), "a")])

    def test_several_drains_have_a_table_with_the_failed_first(self) -> None:
        text = html(*receipts.storm(3))
        self.assertIn("<h1>3 drains: 1 failed, 2 drained; 1 pod lost</h1>", text)
        self.assertEqual(re.findall('<a href="#(.*?)">(.*?)</a>', text)[0], ("drain-0", "ip-10-0-0-1.ec2.internal"))
        self.assertEqual(re.findall('<section id="(.*?)"', text), ["drain-0", "drain-1", "drain-2"])

    def test_written_receipts_are_drawn(self) -> None:
        (log,) = ROOT.glob("crates/drainer/src/**/*the_receipt_of_a_drain_as_the_log_has_it.snap")
        for file, pod in ((log, "shop/forced"), (ROOT / "docs/receipt.md", "shop/orders-0")):
            self.assertIn(f"<code>{pod}</code>", html(*receipts_in(file.read_text())))

    def test_readme_shows_what_is_printed(self) -> None:
        printed = text_of(drains_of([read(receipts.lost())])).splitlines()
        for line in (ROOT / "README.md").read_text().partition("spillway show --failed\n")[2].partition("```")[0].splitlines():
            self.assertTrue(any(one.startswith(line.rstrip(" …")) for one in printed), line)

    def test_receipt_never_becomes_markup(self) -> None:
        document = receipts.lost()
        document.update({name: EVIL for name in ("reason", "node", "cluster", "zone", "ending", "error")})
        document["hook"] = {"name": EVIL, "state": EVIL, "result": EVIL}
        document["notice"].update(kind=EVIL, event_id=EVIL)
        for pod in document["pods"]:
            pod.update(pod=pod["uid"] + EVIL, blocked_by=EVIL, why=EVIL, answers={EVIL: 1, "blocked-by-budget": 1})
        for text in (html(document), html(document, {**document, "instance": "i-2"})):
            self.assertEqual(set(re.findall("<(script|img)", text)), set())
            self.assertIn("default-src 'none'", text)


if __name__ == "__main__":
    unittest.main()
