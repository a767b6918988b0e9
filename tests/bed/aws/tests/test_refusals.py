"""A call that AWS would refuse is refused in the words and the protocol of its service."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.side import URL, OnTheSide

DESCRIBE = {
    "ec2": lambda client: client.describe_instances(),
    "eks": lambda client: client.describe_cluster(name="shop"),
    "autoscaling": lambda client: client.describe_lifecycle_hooks(AutoScalingGroupName="shop"),
}
OURS = {"Source": "spillway", "DetailType": "A", "Detail": "{}"}


class Refusals(OnTheSide):
    def test_wrong_signature_is_refused_in_the_services_words(self) -> None:
        unknown = ("AuthFailure", "UnrecognizedClientException", "InvalidClientTokenId")
        for changed, codes in (
            ({"aws_secret_access_key": "wrong"}, ("AuthFailure", "InvalidSignatureException", "SignatureDoesNotMatch")),
            ({"aws_access_key_id": "ASIAUNKNOWN"}, unknown),
            ({"aws_session_token": "x"}, unknown),
        ):
            for (service, call), code in zip(DESCRIBE.items(), codes, strict=True):
                status, said, _ = self.refused(call, self.client(service, **changed))
                self.assertEqual((status, said), (401 if service == "ec2" else 403, code))
        with self.assertRaisesRegex(HTTPError, "403"):
            urlopen(f"{URL}/?Action=DescribeInstances")

    def put(self, *entries: dict[str, str]) -> list[dict[str, str]]:
        return self.client("events").put_events(Entries=list(entries))["Entries"]

    def test_too_many_or_too_large_events_are_refused(self) -> None:
        large = {**OURS, "Detail": json.dumps({"x": "x" * 132_000})}
        for taken, refused in (([OURS] * 10, [OURS] * 11), ([large], [large] * 2)):
            self.assertTrue(all("EventId" in one for one in self.put(*taken)))
            self.assert_refused("ValidationException", "", self.put, *refused)

    def test_event_of_an_aws_source_or_without_json_fails_alone(self) -> None:
        theirs, taken, broken = self.put({**OURS, "Source": "aws.ec2"}, OURS, {**OURS, "Detail": "{"})
        errors = (theirs["ErrorCode"], broken["ErrorCode"])
        self.assertEqual(errors, ("NotAuthorizedForSourceException", "MalformedDetail"))
        self.assertIn("EventId", taken)

    def test_invocation_of_another_function_or_no_json_is_refused(self) -> None:
        invoke = self.client("lambda").invoke
        for code, asked in (
            ("ResourceNotFoundException", {"FunctionName": "another"}),
            ("ResourceNotFoundException", {"FunctionName": "another", "InvocationType": "DryRun"}),
            ("RequestTooLargeException", {"Payload": json.dumps("x" * 1024 * 1024).encode()}),
            ("InvalidRequestContentException", {"Payload": b"{"}),
        ):
            whole: dict[str, Any] = {"FunctionName": self.session, "InvocationType": "Event", "Payload": b"{}", **asked}
            self.assert_refused(code, "", invoke, **whole)
