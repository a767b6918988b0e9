"""Each condition of the functions' roles is missed by tests/rights/least.py when it is left out of the template."""

import copy
import unittest
from collections.abc import Iterator
from typing import Any

from bed_aws import template
from least import MOTO, REGION, ROOT, Case, Suite, actions

WHERE = f"{MOTO.region}:{MOTO.account}"
ALL = {"LoadBalancers": "wait", "Replace": "spot"}


def call(action: str, resource: str = "*", **context: Any) -> dict[str, Any]:
    """A line as the test bed writes it."""
    seen = {REGION: MOTO.region, "lambda:SourceFunctionArn": f"arn:aws:lambda:{WHERE}:function:drain"}
    return {"role": "DrainRole", "name": "drain", "parameters": ALL, "action": action, "resource": resource, "context": seen | context}


# One for each statement of the function's own policies that has a condition.
CALLS = [
    call("ec2:DescribeInstances"),
    call("elasticloadbalancing:DescribeTags"),
    call("ec2:DescribeSpotInstanceRequests"),
    call(
        "autoscaling:TerminateInstanceInAutoScalingGroup",
        f"arn:aws:autoscaling:{WHERE}:autoScalingGroup:0:autoScalingGroupName/workers",
        **{"aws:ResourceTag/spillway:replace": "true", "aws:ResourceTag/env": "prod"},
    ),
    call(
        "events:PutEvents",
        f"arn:aws:events:{WHERE}:event-bus/default",
        **{"events:source": ["spillway"], "events:detail-type": ["Spillway Receipt"]},
    ),
    call(
        "iam:PassRole",
        f"arn:aws:iam::{MOTO.account}:role/spillway-SchedulesRole",
        **{"iam:PassedToService": "scheduler.amazonaws.com"},
    ),
]


# And one whose condition is in a text.
OF_A_TAGGED_GROUP = call(
    "autoscaling:CompleteLifecycleAction",
    f"arn:aws:autoscaling:{WHERE}:autoScalingGroup:0:autoScalingGroupName/workers",
    **{"aws:ResourceTag/team": "shop", "aws:ResourceTag/env": "prod"},
) | {"parameters": {"HookGroupTag": "team=shop"}}


def stepped_over(read: dict[str, Any]) -> list[str]:
    wrong, _ = Suite(read, [Case(line, read) for line in [*CALLS, OF_A_TAGGED_GROUP]]).report()
    return [line for line in wrong if "step over" in line]


def conditions(read: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Each condition of the function's own policies: its statement, its operator, and its key."""
    for policy in read["Resources"]["DrainRole"]["Properties"]["Policies"]:
        (policy,) = (one for one in policy.get("Fn::If", [policy]) if "PolicyDocument" in one)
        for statement in policy["PolicyDocument"]["Statement"]:
            for operator, keys in statement.get("Condition", {}).items():
                for key in keys:
                    yield statement, operator, key


class EachCondition(unittest.TestCase):
    def setUp(self) -> None:
        self.read = template.read(ROOT / "template.yaml")

    def test_of_the_template_nothing_steps_over_any(self) -> None:
        self.assertEqual(stepped_over(self.read), [])

    def test_the_loss_of_each_is_told(self) -> None:
        asked = {line["action"] for line in CALLS}
        for number, (of, operator, key) in enumerate(conditions(self.read)):
            with self.subTest(statement=of, condition=key):
                self.assertTrue(asked & {action for action in actions(of) if isinstance(action, str)}, "a call is to try it")
                without = copy.deepcopy(self.read)
                statement, _, _ = list(conditions(without))[number]
                del statement["Condition"][operator][key]
                told = stepped_over(without)
                self.assertTrue(any(("Region" if key == REGION else key) in line for line in told), told)
                del statement["Condition"]
                self.assertTrue(stepped_over(without), "the loss of the whole")

    def test_the_loss_of_the_groups_tag_is_told(self) -> None:
        document = self.read["Resources"]["HooksOfTaggedGroups"]["Properties"]["PolicyDocument"]["Fn::Sub"]
        # The statement ends with it.
        document[0] = document[0].partition(', "Condition"')[0] + "}]}"
        self.assertEqual(document[0].count("Condition"), 0)
        (told,) = stepped_over(self.read)
        self.assertIn("aws:ResourceTag/team", told)


if __name__ == "__main__":
    unittest.main()
