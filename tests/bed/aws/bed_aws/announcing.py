"""What the product's stack has around the function that sends messages, from its template: the queue, the one behind it,
how Lambda is to poll it, and what the function is told. Each test that wants one gets one of its own.
"""

from typing import Any

from bed_aws import stack
from bed_aws.call import Call
from bed_aws.iam import names
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto


class Announcing:
    def __init__(self, whole: dict[str, Any], moto: Moto) -> None:
        self._whole = whole
        self._moto = moto
        resources = whole["Resources"]
        self._function = resources["Announcer"]["Properties"]
        [self._polled] = [one["Properties"] for one in self._function["Events"].values() if one["Type"] == "SQS"]
        self._logical_id = self._polled["Queue"]["Fn::GetAtt"].partition(".")[0]
        self._queue = resources[self._logical_id]["Properties"]
        self._queues: dict[str, str] = {}
        """The queue of each sender who has one."""

    def answer(self, call: Call) -> dict[str, Any] | None:
        """A message of a sender who has a queue goes into that: all functions know the one of the template."""
        if call.action != "SendMessage":
            return None
        asked = call.asked
        queue = asked["QueueUrl"].rpartition("/")[2]
        if queue == stack.name(self._logical_id):
            queue = self._queues.get(call.access_key_id, queue)
        sent = self._moto.sqs.send_message(queue, asked["MessageBody"], delay_seconds=asked.get("DelaySeconds"))
        return {"MessageId": sent.id, "MD5OfMessageBody": sent.body_md5}

    def deploy(self, sender: str, name: str, parameters: dict[str, str]) -> dict[str, Any]:
        """Makes the queues of one stack, which this sender's messages go to."""
        undelivered = self._moto.sqs.create_queue(f"{name}-undelivered")
        most = self._queue["RedrivePolicy"]["maxReceiveCount"]
        queue = self._moto.sqs.create_queue(
            f"{name}-announcements",
            VisibilityTimeout=str(self._queue["VisibilityTimeout"]),
            RedrivePolicy={"deadLetterTargetArn": undelivered.queue_arn, "maxReceiveCount": most},
        )
        self._queues[sender] = queue.name
        known = {**names(self._whole["Resources"], self._moto, {}), f"{self._logical_id}.Arn": queue.queue_arn}
        settings = Intrinsics(self._whole, parameters, known)
        # Its other variables are about places that a machine need not have.
        variables = self._function["Environment"]["Variables"].items()
        return {
            "queue": queue.name,
            "undelivered": undelivered.name,
            "batch_size": self._polled["BatchSize"],
            "window_s": self._polled["MaximumBatchingWindowInSeconds"],
            "timeout_s": self._function["Timeout"],
            "variables": {name: str(settings.value(one)) for name, one in variables if name.startswith("SPILLWAY_")},
        }
