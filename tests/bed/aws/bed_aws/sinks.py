"""What an account has for messages, in moto: topics with a subscriber, and places for a secret."""

import json

from bed_aws.moto_side import Moto


class Sinks:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def topic(self, name: str) -> str:
        """A topic, and a queue that is subscribed to it; its ARN."""
        topic = self._moto.sns.create_topic(name)
        queue = self._moto.sqs.create_queue(_subscriber(name))
        self._moto.sns.subscribe(topic.arn, queue.queue_arn, "sqs")
        return str(topic.arn)

    def published(self, name: str) -> list[dict[str, str]]:
        """What the topic's subscriber has got, the oldest first, without taking it."""
        return [json.loads(message.body) for message in self._moto.sqs.get_queue(_subscriber(name)).messages]

    def parameter(self, name: str, value: str) -> None:
        """A SecureString of Parameter Store."""
        self._moto.ssm.put_parameter(name, "", value, "SecureString", "", "", False, [], "text", None, None)

    def secret(self, name: str, value: str) -> str:
        made = json.loads(
            self._moto.secretsmanager.create_secret(name, value, None, None, [], None, None, [], force_overwrite=False)
        )
        return str(made["ARN"])

    def change_secret(self, arn: str, value: str) -> None:
        self._moto.secretsmanager.put_secret_value(arn, value, None, None, ["AWSCURRENT"])


def _subscriber(topic: str) -> str:
    return f"{topic}-subscriber"
