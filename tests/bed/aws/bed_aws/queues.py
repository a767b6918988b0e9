"""Messages in moto: queues that others than the AWS side read, such as Lambda's poller, topics with a subscriber, and
places for a secret.
"""

import json
from typing import Any

from moto.sqs.models import Message

from bed_aws import stack
from bed_aws.moto_side import Moto

# The function's failure queue.
FAILURES = stack.name("Failures")


class Queues:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

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

    def topic(self, name: str) -> str:
        """A topic, and a queue that is subscribed to it; its ARN."""
        topic = self._moto.sns.create_topic(name)
        queue = self._moto.sqs.create_queue(f"{name}-subscriber")
        self._moto.sns.subscribe(topic.arn, queue.queue_arn, "sqs")
        return str(topic.arn)

    def published(self, name: str) -> list[dict[str, str]]:
        """What the topic's subscriber has got, the oldest first, without taking it."""
        return [json.loads(body) for body in self.bodies(f"{name}-subscriber")]

    def parameter(self, name: str, value: str) -> None:
        """A SecureString of Parameter Store."""
        self._moto.ssm.put_parameter(name, "", value, "SecureString", "", "", False, [], "text", None, None)

    def secret(self, name: str, value: str) -> str:
        make = self._moto.secretsmanager.create_secret
        return str(json.loads(make(name, value, None, None, [], None, None, [], force_overwrite=False))["ARN"])

    def change_secret(self, arn: str, value: str) -> None:
        self._moto.secretsmanager.put_secret_value(arn, value, None, None, ["AWSCURRENT"])

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
