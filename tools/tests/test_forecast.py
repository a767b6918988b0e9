"""`spillway doctor --node`: the pods that will hold a drain, by what, and for how long."""

from __future__ import annotations

import unittest
from argparse import Namespace
from typing import Any
from unittest import mock

from cli import Failed
from doctor_report import forecast
from doctor_report.forecast import Holder, holders, text

HOUR = 3600
Json = dict[str, Any]


def pod(name: str, app: str = "web", grace_s: int = 30, phase: str = "Running", **annotations: str) -> Json:
    metadata = {"namespace": "shop", "name": name, "labels": {"app": app}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": grace_s}, "status": {"phase": phase}}


def budget(name: str, allowed: int, app: str = "web") -> Json:
    selector = {"matchLabels": {"app": app}}
    return {"metadata": {"namespace": "shop", "name": name}, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}


class Holders(unittest.TestCase):
    def test_budget_holds_until_the_last_safe_moment(self) -> None:
        self.assertEqual(holders([pod("a")], [budget("web", 0)], HOUR), [Holder("shop/a", "budget shop/web", HOUR - 2)])
        (long,) = holders([pod("a", grace_s=3000)], [budget("web", 0)], HOUR)
        self.assertEqual(long.until_s, 1800 + 3000, "never forced in the first half")

    def test_budget_with_too_few_disruptions_holds_the_rest(self) -> None:
        found = holders([pod("a"), pod("b"), pod("c")], [budget("web", 2)], HOUR)
        self.assertEqual([(one.pod, one.by) for one in found], [("shop/c", "budget shop/web, which allows fewer pods than the node has")])
        longest_first = holders([pod("short", grace_s=60), pod("long", grace_s=90)], [], HOUR)
        self.assertEqual([one.pod for one in longest_first], ["shop/long", "shop/short"])

    def test_annotation_holds_ten_minutes_less(self) -> None:
        for name, value in (("karpenter.sh/do-not-disrupt", "true"), ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"), ("spillway/drain", "wait")):
            (one,) = holders([pod("a", **{name: value})], [], HOUR)
            self.assertEqual(one.until_s, HOUR - 2 - 600)
            self.assertTrue(one.by.startswith("annotation "))

    def test_two_budgets_or_a_long_grace_hold(self) -> None:
        (two,) = holders([pod("a")], [budget("web", 5), budget("all", 5)], HOUR)
        self.assertEqual(two.by, "several budgets (shop/all, shop/web)")
        (slow,) = holders([pod("a", grace_s=600)], [], HOUR)
        self.assertEqual((slow.by, slow.until_s), ("its own grace period of 600 s", 600))

    def test_staying_or_finished_pods_hold_nothing(self) -> None:
        of_daemon_set = pod("ds")
        of_daemon_set["metadata"]["ownerReferences"] = [{"controller": True, "kind": "DaemonSet"}]
        ended = [pod("done", phase="Succeeded"), pod("failed", phase="Failed")]
        self.assertEqual(holders([of_daemon_set, *ended, pod("skip", **{"spillway/drain": "skip"}), pod("free", "api")], [budget("web", 0)], HOUR), [])


class TheText(unittest.TestCase):
    def test_names_pod_reason_and_time(self) -> None:
        lines = text("n-1", [Holder("shop/a\x1b[2J", "budget shop/web", 3598)], HOUR).splitlines()
        self.assertEqual(lines[0], "n-1: 1 pod can hold a drain, for up to 60 min of the hook's 60 min")
        self.assertEqual(text("n-1", [], HOUR), "n-1: no pod holds a drain")


class TheNodes(unittest.TestCase):
    def test_group_names_its_nodes_by_instance(self) -> None:
        group = {"AutoScalingGroups": [{"Instances": [{"InstanceId": "i-1"}, {"InstanceId": "i-2"}]}]}
        nodes = [{"metadata": {"name": f"n-{n}"}, "spec": {"providerID": f"aws:///z/i-{n}"}} for n in (1, 2, 3)]
        options = Namespace(group="workers", region=None)
        for answer, nodes_of, said in (
            ({"AutoScalingGroups": []}, nodes, "there is no Auto Scaling group workers"),
            (group, nodes[2:], "no node of the cluster is in the group"),
        ):
            with mock.patch.object(forecast.Aws, "call", return_value=answer), self.assertRaisesRegex(Failed, said):
                forecast._of_group(options, mock.Mock(list=lambda *_: nodes_of))
        with mock.patch.object(forecast.Aws, "call", return_value=group):
            self.assertEqual(forecast._of_group(options, mock.Mock(list=lambda *_: nodes)), ["n-1", "n-2"])

    def test_unknown_node_is_refused(self) -> None:
        with self.assertRaisesRegex(Failed, "the cluster has no node n-9"):
            forecast._pods(mock.Mock(list=lambda *_, **__: []), "n-9")


if __name__ == "__main__":
    unittest.main()
