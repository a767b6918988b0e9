"""Queues that others than the AWS side read, in moto's SQS: Lambda's poller, and what is measured beside the product. And a
stand-in for Lambda's ListEventSourceMappings.
"""

import json
import uuid
from typing import Any

from moto.sqs.models import Message
from werkzeug import Response

from bed_aws.call import Call
from bed_aws.moto_side import Moto


class Queues:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._mappings: list[dict[str, Any]] = []

    def answer(self, call: Call) -> Response | None:
        if call.action != "ListEventSourceMappings":
            return None
        function = call.request.args.get("FunctionName")
        found = [one for one in self._mappings if function in (None, one["FunctionArn"].rpartition(":")[2])]
        return Response(json.dumps({"EventSourceMappings": found}), mimetype="application/json")

    def create_mapping(self, function: str, source: str) -> None:
        """Records an event source mapping. Nothing polls its source."""
        arn = f"arn:aws:lambda:{self._moto.region}:{self._moto.account}:function:{function}"
        self._mappings.append({"UUID": str(uuid.uuid4()), "EventSourceArn": source, "FunctionArn": arn, "State": "Enabled"})

    def create(self, name: str) -> None:
        self._moto.sqs.create_queue(name)

    def send(self, name: str, bodies: list[str]) -> None:
        for body in bodies:
            self._moto.sqs.send_message(name, body)

    def bodies(self, name: str, least: int = 0, wait_s: float = 0) -> list[str]:
        """Of the messages that anybody could receive, without taking them; waited for until there are so many."""
        queue = self._moto.sqs.get_queue(name)
        with queue._messages_lock:
            queue._messages_lock.wait_for(lambda: len(queue.messages) >= least, wait_s)
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
