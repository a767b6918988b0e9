"""An event that Lambda refuses comes later, or ends in its rule's dead-letter queue."""

import uuid
from typing import Any

from bed_aws import deliveries
from bed_aws.template import TemplateError
from tests.side import TEMPLATE, OnTheSide, Refused, bed, temporary_folder
from tests.test_notices import SPOT

THROTTLED = {"status": 429, "message": "Rate exceeded"}


def sent(event: dict[str, Any], *refusals: dict[str, Any]) -> list[dict[str, Any]]:
    return bed("POST", "notices", event=event, refusals=list(refusals))["delivered"]


def letters(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Other tests have theirs in the same queue."""
    return [one for one in bed("GET", "dead-letters?queue=Failures") if one["event"]["id"] == event["id"]]


class Deliveries(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        self.event = {**SPOT, "id": str(uuid.uuid4())}

    def test_what_is_refused_for_a_while_comes_and_is_no_dead_letter(self) -> None:
        delivered = sent(self.event, {**THROTTLED, "until_s": 60})
        self.assertEqual(delivered, [{"rule": "DrainSpotInterruption", "event": self.event}])
        self.assertEqual(letters(self.event), [])

    def test_what_is_refused_for_too_long_is_a_dead_letter_with_aws_attributes(self) -> None:
        self.assertEqual(sent(self.event, THROTTLED), [])
        attributes = {
            "RULE_ARN": "arn:aws:events:us-east-1:123456789012:rule/spillway-DrainSpotInterruption",
            "TARGET_ARN": "arn:aws:lambda:us-east-1:123456789012:function:spillway-Drain",
            "ERROR_CODE": "THROTTLING",
            "ERROR_MESSAGE": "Rate exceeded",
            "EXHAUSTED_RETRY_CONDITION": "MaximumEventAgeInSeconds",
            "RETRY_ATTEMPTS": "6",
        }
        self.assertEqual(letters(self.event), [{"event": self.event, "attributes": attributes}])

    def test_without_the_permission_it_is_a_dead_letter_at_once(self) -> None:
        self.assertEqual(sent(self.event, {"status": 403, "message": "no permission"}), [])
        [letter] = letters(self.event)
        self.assertEqual((letter["attributes"]["ERROR_CODE"], letter["attributes"]["RETRY_ATTEMPTS"]), ("NO_PERMISSIONS", "0"))
        self.assertNotIn("EXHAUSTED_RETRY_CONDITION", letter["attributes"])

    def test_what_has_no_dead_letter_queue_is_lost(self) -> None:
        launch = {
            **self.event,
            "source": "aws.autoscaling",
            "detail-type": "EC2 Instance-launch Lifecycle Action",
            "detail": {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"},
        }
        self.assertEqual(len(sent(launch)), 1)
        self.assertEqual(sent(launch, THROTTLED), [])
        self.assertEqual(letters(launch), [])

    def test_an_answer_that_is_no_refusal_is_none(self) -> None:
        with self.assertRaisesRegex(Refused, "202 is no refusal"):
            sent(self.event, {"status": 202, "message": ""})


class Templates(OnTheSide):
    def written(self, said: str) -> dict[str, deliveries.Target]:
        template = temporary_folder(self) / "template.yaml"
        rule = f"{{Type: AWS::Events::Rule, Properties: {{EventPattern: {{}}, Targets: [{{{said}}}]}}}}"
        template.write_text(f"Resources:\n  R: {rule}")
        return deliveries.read(template)

    def test_as_sam_has_it_and_as_cloudformation_has_it(self) -> None:
        said = "RetryPolicy: {MaximumEventAgeInSeconds: 120}, DeadLetterConfig: {Arn: !GetAtt Failures.Arn}"
        self.assertEqual(self.written(said)["R"], deliveries.read(TEMPLATE)["DrainSpotInterruption"])

    def test_what_eventbridge_would_not_take_is_refused(self) -> None:
        for said, reason in (
            ("RetryPolicy: {MaximumEventAgeInSeconds: 59}", "does not take"),
            ("RetryPolicy: {MaximumRetryAttempts: 186}", "does not take"),
            ("DeadLetterConfig: {Arn: !Ref Queue}", "dead-letter queue of R"),
        ):
            with self.assertRaisesRegex(TemplateError, reason):
                self.written(said)
