"""Queues that others than the AWS side read, in moto's SQS: Lambda's poller, and what is measured beside the product. And
stand-in for Lambda's ListEventSourceMappings: what is known of the pollers, which the test drives (`tests/bed/src/lambda`).
"""

import json
import uuid
from typing import Any

from moto.sqs.models import Message
from werkzeug import Response

from bed_aws.call import Call
from bed_aws.moto_side import Moto
from bed_aws.stack import name


def patient(function: str) -> str:
    """The queue of drains that can wait, of that function."""
    return f"{function}-patient"


class Queues:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        # By the function's name.
        self._mappings: dict[str, dict[str, Any]] = {}

    def answer(self, call: Call) -> Response | None:
        if call.action != "ListEventSourceMappings":
            return None
        function = call.request.args.get("FunctionName")
        found = [one for name, one in self._mappings.items() if function in (None, name)]
        return Response(json.dumps({"EventSourceMappings": found}), mimetype="application/json")

    def change_mapping(self, function: str, state: str | None) -> None:
        """Somebody enables or disables the mapping of a function's queue, or deletes it."""
        if state is None:
            del self._mappings[function]
        else:
            self._mappings[function]["State"] = state

    def create(self, name: str) -> None:
        self._moto.sqs.create_queue(name)

    def create_patient(self, function: str) -> dict[str, str]:
        """The queue of drains that can wait, of one function; as the template has it, with the failure queue behind it."""
        failures = self._moto.sqs.get_queue(name("Failures"))
        redrive = {"deadLetterTargetArn": failures.queue_arn, "maxReceiveCount": 5}
        queue = self._moto.sqs.create_queue(patient(function), VisibilityTimeout="900", RedrivePolicy=redrive)
        region, account = self._moto.region, self._moto.account
        arn = f"arn:aws:lambda:{region}:{account}:function:{function}"
        self._mappings[function] = {"UUID": str(uuid.uuid4()), "EventSourceArn": queue.queue_arn, "FunctionArn": arn, "State": "Enabled"}
        return {"name": queue.name, "url": f"https://sqs.{region}.amazonaws.com/{account}/{queue.name}"}

    def send(self, name: str, bodies: list[str]) -> None:
        for body in bodies:
            self._moto.sqs.send_message(name, body)

    def bodies(self, name: str, least: str = "0", wait_s: str = "0") -> list[str]:
        """Of the messages that anybody could receive, without taking them; waited for until there are so many."""
        queue = self._moto.sqs.get_queue(name)
        with queue._messages_lock:
            queue._messages_lock.wait_for(lambda: len(queue.messages) >= int(least), float(wait_s))
            return [message.body for message in queue.messages]

    def receive(self, name: str, most: int, wait_s: float) -> list[dict[str, Any]]:
        """Takes messages, as records in the form in which Lambda's poller hands them to a function."""
        queue = self._moto.sqs.get_queue(name)
        # moto's own wait is in whole seconds.
        queue.wait_for_messages(wait_s)
        received = self._moto.sqs.receive_message(name, most, 0, queue.visibility_timeout)
        return [self._record(message, queue.queue_arn) for message in received]

    def settle(self, name: str, done: list[str], come_back: list[str]) -> None:
        """Deletes messages by their handles, and lets others be received again at once."""
        for handle in done:
            self._moto.sqs.delete_message(name, handle)
        for handle in come_back:
            self._moto.sqs.change_message_visibility(name, handle, 0)

    def _record(self, message: Message, queue_arn: str) -> dict[str, Any]:
        return {
            "messageId": message.id,
            "receiptHandle": message.receipt_handle,
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.approximate_receive_count),
                "SentTimestamp": str(message.sent_timestamp),
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": str(message.approximate_first_receive_timestamp),
            },
            "messageAttributes": {},
            "md5OfBody": message.body_md5,
            "eventSource": "aws:sqs",
            "eventSourceARN": queue_arn,
            "awsRegion": self._moto.region,
        }
