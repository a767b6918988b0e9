"""A notice passes the rules of the template, or it does not; it arrives as it was sent."""

from typing import Any

from bed_aws import rules
from bed_aws.template import TemplateError
from tests.side import OnTheSide, Refused, bed, temporary_folder

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


def delivered(event: dict[str, Any]) -> list[dict[str, Any]]:
    return bed("send_notice", event=event)


class Notices(OnTheSide):
    def test_what_eventbridge_would_not_carry_is_refused(self) -> None:
        for event in ({**SPOT, "detail": "text"}, {**SPOT, "source": None}, {"detail": {}}):
            with self.assertRaisesRegex(Refused, "400"):
                delivered(event)


class PutEvents(OnTheSide):
    def put(self, **entry: Any) -> dict[str, Any]:
        return self.client("events").put_events(Entries=[entry])

    def taken(self) -> list[dict[str, Any]]:
        return bed("take_deliveries", sender=self.key)

    def test_an_entry_that_is_refused_is_told_as_such(self) -> None:
        answer = self.put(Source="spillway", DetailType="Spillway Drain Continuation", Detail="{")
        self.assertEqual((answer["FailedEntryCount"], answer["Entries"][0]["ErrorCode"]), (1, "MalformedDetail"))
        self.assertEqual(self.taken(), [])


class Templates(OnTheSide):
    def test_what_the_bed_cannot_carry_out_is_refused(self) -> None:
        template = temporary_folder(self) / "template.yaml"
        for properties, reason in (
            ("{EventPattern: {source: [!Ref Source]}}", "does not know what Source comes to"),
            ("{EventPattern: {source: [a]}, Targets: [{Id: x, InputPath: $.detail}]}", "changes what its target gets"),
        ):
            template.write_text(f"Resources:\n  R: {{Type: AWS::Events::Rule, Properties: {properties}}}")
            with self.assertRaisesRegex(TemplateError, reason):
                rules.read(template)
