"""The function's failure queue: the stack's own, a real queue in moto's SQS."""

from bed_aws import stack
from bed_aws.moto_side import Moto

QUEUE = stack.name("Failures")


class Failures:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def put(self, body: str) -> None:
        self._moto.sqs.send_message(QUEUE, body)

    def all(self) -> list[str]:
        """Looks without taking: other tests look too."""
        return [message.body for message in self._moto.sqs.get_queue(QUEUE).messages]
