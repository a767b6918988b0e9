"""What happens to every AWS call: who signed it, what the journal keeps, how a test breaks it."""

from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, Refused, bed

DESCRIBE = {
    "ec2": lambda client: client.describe_instances(),
    "eks": lambda client: client.describe_cluster(name="shop"),
    "autoscaling": lambda client: client.describe_lifecycle_hooks(AutoScalingGroupName="shop"),
}


class Signatures(OnTheSide):
    def refusal(self, service: str, **changed: str) -> tuple[int, str]:
        with self.assertRaises(ClientError) as caught:
            DESCRIBE[service](self.client(service, **changed))
        answer: dict[str, Any] = caught.exception.response
        return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]

    def test_a_wrong_secret_is_refused(self) -> None:
        wrong = {"aws_secret_access_key": "wrong"}
        self.assertEqual(self.refusal("ec2", **wrong), (401, "AuthFailure"))
        self.assertEqual(self.refusal("eks", **wrong), (403, "InvalidSignatureException"))
        self.assertEqual(self.refusal("autoscaling", **wrong), (403, "SignatureDoesNotMatch"))

    def test_an_unknown_key_is_refused(self) -> None:
        unknown = {"aws_access_key_id": "ASIAUNKNOWN"}
        self.assertEqual(self.refusal("ec2", **unknown), (401, "AuthFailure"))
        self.assertEqual(self.refusal("eks", **unknown), (403, "UnrecognizedClientException"))
        self.assertEqual(self.refusal("autoscaling", **unknown), (403, "InvalidClientTokenId"))

    def test_another_session_token_is_refused(self) -> None:
        self.assertEqual(self.refusal("autoscaling", aws_session_token="x"), (403, "InvalidClientTokenId"))


class OwnApi(OnTheSide):
    def test_a_field_too_many_or_too_few_is_named(self) -> None:
        with self.assertRaisesRegex(Refused, "400: missing a required argument: 'session'"):
            bed("credentials_of_function", role="x", variables={})
        with self.assertRaisesRegex(Refused, "400: got an unexpected keyword argument 'zones'"):
            bed("launch", zones="x")
        with self.assertRaisesRegex(Refused, "404"):
            bed("nothing")
