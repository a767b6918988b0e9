"""What there is in the account, as whoever lists it sees it: clusters, groups, rules and where these lead."""

from typing import Any

from tests.side import OnTheSide, Refused, bed

PATTERN = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}


class Clusters(OnTheSide):
    def test_all_are_listed(self) -> None:
        for name in ("listed-b", "listed-a"):
            bed("POST", "clusters", name=name, endpoint="https://127.0.0.1:1", ca="Y2E=")
        listed = self.client("eks").list_clusters()["clusters"]
        self.assertEqual([name for name in listed if name.startswith("listed-")], ["listed-a", "listed-b"])


class Groups(OnTheSide):
    def groups(self) -> dict[str, dict[str, Any]]:
        pages = self.client("autoscaling").get_paginator("describe_auto_scaling_groups").paginate()
        return {group["AutoScalingGroupName"]: group for page in pages for group in page["AutoScalingGroups"]}

    def test_a_group_has_its_tags_and_its_instances(self) -> None:
        bed("POST", "groups", name="listed", hooks=[], tags={"team": "shop"})
        instance = bed("POST", "instances", group="listed")["instance_id"]
        bed("POST", "pages", access_key_id=self.key, size=1)
        group = self.groups()["listed"]
        self.assertEqual([(tag["Key"], tag["Value"]) for tag in group["Tags"]], [("team", "shop")])
        self.assertEqual([one["InstanceId"] for one in group["Instances"]], [instance])

    def test_a_group_that_is_put_again_has_its_new_hooks_only(self) -> None:
        bed("POST", "groups", name="changed", hooks=[{"name": "one"}, {"name": "two", "notifies": "arn:aws:sqs:r:1:q"}])
        bed("POST", "groups", name="changed", hooks=[{"name": "two", "heartbeat_timeout_s": 30}])
        (hook,) = self.client("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName="changed")["LifecycleHooks"]
        self.assertEqual((hook["LifecycleHookName"], hook["HeartbeatTimeout"]), ("two", 30))
        self.assertNotIn("NotificationTARGETARN", hook)


class Rules(OnTheSide):
    def rules(self) -> dict[str, dict[str, Any]]:
        return {rule["Name"]: rule for rule in self.client("events").list_rules()["Rules"]}

    def leads_to(self, rule: str) -> list[str]:
        return [target["Arn"] for target in self.client("events").list_targets_by_rule(Rule=rule)["Targets"]]

    def test_the_products_rules_lead_to_the_function_that_asks(self) -> None:
        self.assertEqual(self.rules()["DrainSpotInterruption"]["State"], "ENABLED")
        (function,) = self.leads_to("DrainSpotInterruption")
        self.assertEqual(function, f"arn:aws:lambda:us-east-1:123456789012:function:{self.id()[-60:]}")

    def test_somebody_elses_leads_elsewhere_until_it_is_gone(self) -> None:
        queue = "arn:aws:sqs:us-east-1:123456789012:nth"
        bed("POST", "rules", name="nth-spot", pattern=PATTERN, target=queue)
        self.assertEqual(self.leads_to("nth-spot"), [queue])
        bed("DELETE", "rules?name=nth-spot")
        self.assertNotIn("nth-spot", self.rules())

    def test_a_rule_is_switched_off_and_on(self) -> None:
        for state in ("DISABLED", "ENABLED"):
            bed("POST", "rule-states", name="DrainLaunch", state=state)
            self.assertEqual(self.rules()["DrainLaunch"]["State"], state)
        with self.assertRaisesRegex(Refused, "404: no rule of-nobody"):
            bed("POST", "rule-states", name="of-nobody", state="DISABLED")
