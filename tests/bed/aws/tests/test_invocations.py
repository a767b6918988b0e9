"""Lambda queues what a function asks to be invoked with, and refuses what it refuses."""

import json
from typing import Any

from botocore.exceptions import ClientError

from tests.side import OnTheSide, bed


class Invocations(OnTheSide):
    def invoke(self, name: str | None = None, payload: bytes = b"{}", how: str = "Event") -> int:
        answer = self.client("lambda").invoke(FunctionName=name or self.session, InvocationType=how, Payload=payload)
        return int(answer["StatusCode"])

    def queued(self) -> list[dict[str, Any]]:
        return bed("take_deliveries", sender=self.key)

    def assert_refused(self, code: str, **asked: Any) -> None:
        with self.assertRaises(ClientError) as caught:
            self.invoke(**asked)
        self.assertEqual(caught.exception.response["Error"]["Code"], code)
        self.assertEqual(self.queued(), [])

    def test_there_is_no_function_but_the_one_that_asks(self) -> None:
        for how in ("Event", "DryRun"):
            self.assert_refused("ResourceNotFoundException", name="another", how=how)

    def test_what_is_too_long_or_no_json_is_refused(self) -> None:
        self.assert_refused("RequestTooLargeException", payload=json.dumps("x" * 1024 * 1024).encode())
        self.assert_refused("InvalidRequestContentException", payload=b"{")
