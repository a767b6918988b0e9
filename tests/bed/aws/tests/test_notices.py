"""A notice passes the rules of the template, or it does not; it arrives as it was sent."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bed_aws import rules
from bed_aws.template import TemplateError
from tests.side import TEMPLATE, OnTheSide, Refused, bed, temporary_folder

SPOT = {
    "version": "0",
    "id": "12345678-1234-1234-1234-123456789012",
    "detail-type": "EC2 Spot Instance Interruption Warning",
    "source": "aws.ec2",
    "account": "210987654321",
    "time": "2026-11-21T08:00:00Z",
    "region": "eu-central-1",
    "resources": ["arn:aws:ec2:eu-central-1a:instance/i-1234567890abcdef0"],
    "detail": {"instance-id": "i-1234567890abcdef0", "instance-action": "terminate"},
}
TERMINATE = {
    "detail-type": "EC2 Instance-terminate Lifecycle Action",
    "source": "aws.autoscaling",
    "detail": {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "NotificationMetadata": '"<id>"'},
}


def delivered(event: dict[str, Any]) -> list[dict[str, Any]]:
    return bed("POST", "notices", event=event)["delivered"]


class Notices(OnTheSide):
    def test_both_notices_pass_each_by_its_own_rule(self) -> None:
        self.assertEqual(delivered(SPOT), [{"rule": "DrainSpotInterruption", "event": SPOT}])
        [delivery] = delivered(TERMINATE)
        self.assertEqual(delivery["rule"], "DrainTerminate")
        self.assertEqual(delivery["event"], delivery["event"] | TERMINATE)
        self.assertEqual(delivery["event"]["account"], "123456789012")

    def test_their_neighbours_do_not(self) -> None:
        rebalance = {**SPOT, "detail-type": "EC2 Instance Rebalance Recommendation"}
        launch = {**TERMINATE, "detail": {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}}
        for neighbour in (rebalance, launch, {**SPOT, "source": "my.ec2"}):
            self.assertEqual(delivered(neighbour), [])

    def test_a_rule_that_is_switched_off_lets_nothing_through(self) -> None:
        for state, let_through in (("DISABLED", 0), ("ENABLED", 1)):
            bed("POST", "rule-states", name="DrainSpotInterruption", state=state)
            self.assertEqual(len(delivered(SPOT)), let_through)

    def test_side_by_side_each_gets_its_own(self) -> None:
        events = [{**SPOT, "id": str(number)} for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            for event, answer in zip(events, pool.map(delivered, events), strict=True):
                self.assertEqual(answer, [{"rule": "DrainSpotInterruption", "event": event}])

    def test_what_eventbridge_would_not_carry_is_refused(self) -> None:
        for event in ({**SPOT, "detail": "text"}, {**SPOT, "source": None}, {"detail": {}}):
            with self.assertRaisesRegex(Refused, "400"):
                delivered(event)


class PutEvents(OnTheSide):
    def put(self, **entry: Any) -> dict[str, Any]:
        return self.client("events").put_events(Entries=[entry])

    def taken(self) -> list[dict[str, Any]]:
        return bed("POST", "deliveries", sender=self.key)["delivered"]

    def test_what_no_rule_lets_through_vanishes(self) -> None:
        self.put(Source="my.tool", DetailType="Spillway Drain Continuation", Detail="{}")
        self.assertEqual(self.taken(), [])

    def test_every_event_of_a_caller_is_remembered_whether_or_not_a_rule_lets_it_through(self) -> None:
        for detail in ("{}", "{"):
            self.put(Source="spillway", DetailType="Nobody's", Detail=detail)
        [event] = bed("GET", f"events?access_key_id={self.key}")
        self.assertEqual((event["detail-type"], event["detail"]), ("Nobody's", {}))

    def test_an_entry_that_is_refused_is_told_as_such(self) -> None:
        answer = self.put(Source="spillway", DetailType="Spillway Drain Continuation", Detail="{")
        self.assertEqual((answer["FailedEntryCount"], answer["Entries"][0]["ErrorCode"]), (1, "MalformedDetail"))
        self.assertEqual(self.taken(), [])


class Templates(OnTheSide):
    def test_source_and_transformed_template_say_the_same(self) -> None:
        source = rules.read(TEMPLATE)
        transformed = temporary_folder(self) / "transformed.yaml"
        resources = [
            f"  {rule.logical_id}: {{Type: AWS::Events::Rule, Properties: {{EventPattern: {rule.pattern}}}}}"
            for rule in source
        ]
        transformed.write_text("\n".join(["Resources:", *resources]))
        self.assertEqual(rules.read(transformed), source)
        names = ["SpotInterruption", "Terminate", "Launch", "StateChange", "Deployed"]
        functions_own = [f"Drain{name}" for name in names]
        self.assertEqual([rule.logical_id for rule in source], [*functions_own, "Rule"])

    def test_what_the_bed_cannot_carry_out_is_refused(self) -> None:
        template = temporary_folder(self) / "template.yaml"
        for properties, reason in (
            ("{EventPattern: {source: [!Ref Source]}}", "does not know what Source comes to"),
            ("{EventPattern: {source: [a]}, Targets: [{Id: x, InputPath: $.detail}]}", "changes what its target gets"),
        ):
            template.write_text(f"Resources:\n  R: {{Type: AWS::Events::Rule, Properties: {properties}}}")
            with self.assertRaisesRegex(TemplateError, reason):
                rules.read(template)
