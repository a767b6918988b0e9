"""Queues that others than the product read, in moto's SQS: what is measured beside it hears of notices through one."""

from bed_aws.moto_side import Moto


class Queues:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def create(self, name: str) -> None:
        self._moto.sqs.create_queue(name)

    def send(self, name: str, bodies: list[str]) -> None:
        for body in bodies:
            self._moto.sqs.send_message(name, body)
