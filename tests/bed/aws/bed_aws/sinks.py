"""What an account has for messages and receipts, in moto: topics with a subscriber, buckets, and places for a secret.

A stand-in for what S3 says to who expects another account to own a bucket, and for what one with Object Lock asks of each
object; moto looks at neither. Each bucket here has it.
"""

import json
from base64 import b64encode
from hashlib import sha256

from moto.s3.models import s3_backends
from werkzeug import Request, Response

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.moto_side import Moto


# By the one or the other S3 takes an object into a bucket with Object Lock.
CHECKSUMS = ("content-md5", "x-amz-checksum-", "x-amz-sdk-checksum-algorithm")


class Sinks:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._owners: dict[str, str] = {}

    def topic(self, name: str) -> dict[str, str]:
        """A topic, and a queue that is subscribed to it."""
        topic = self._moto.sns.create_topic(name)
        queue = self._moto.sqs.create_queue(_subscriber(name))
        self._moto.sns.subscribe(topic.arn, queue.queue_arn, "sqs")
        return {"arn": topic.arn}

    def published(self, name: str) -> list[dict[str, str]]:
        """What the topic's subscriber has got, the oldest first, without taking it."""
        return [json.loads(message.body) for message in self._moto.sqs.get_queue(_subscriber(name)).messages]

    def answer(self, call: Call) -> Response | None:
        expected = call.request.headers.get("x-amz-expected-bucket-owner")
        owner = self._owners.get(call.request.path.split("/")[1], self._moto.account)
        if call.service == "s3" and expected not in (None, owner):
            raise AwsError(403, "AccessDenied", "Access Denied", "s3")
        if call.service == "s3" and call.action == "PutObject":
            _checked(call.request)
        return None

    def bucket(self, name: str, account: str | None = None) -> None:
        """A bucket of this account, or of another one that lets everybody write."""
        self._owners[name] = account or self._moto.account
        s3_backends[self._owners[name]]["aws"].create_bucket(name, self._moto.region)

    def objects(self, name: str) -> dict[str, str]:
        keys = s3_backends[self._owners[name]]["aws"].head_bucket(name).keys.values()
        return {key.name: key.value.decode() for key in keys}

    def parameter(self, name: str, value: str) -> None:
        """A SecureString of Parameter Store."""
        self._moto.ssm.put_parameter(name, "", value, "SecureString", "", "", False, [], "text", None, None)

    def secret(self, name: str, value: str) -> dict[str, str]:
        made = json.loads(
            self._moto.secretsmanager.create_secret(name, value, None, None, [], None, None, [], force_overwrite=False)
        )
        return {"arn": made["ARN"]}

    def change_secret(self, arn: str, value: str) -> None:
        self._moto.secretsmanager.put_secret_value(arn, value, None, None, ["AWSCURRENT"])


def _checked(request: Request) -> None:
    """Whether an object comes with a checksum, and with the right one, if it is one that the function sends."""
    if not any(name.lower().startswith(CHECKSUMS) for name, _ in request.headers):
        message = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
        raise AwsError(400, "InvalidRequest", message, "s3")
    told = request.headers.get("x-amz-checksum-sha256")
    if told not in (None, b64encode(sha256(request.get_data()).digest()).decode()):
        raise AwsError(400, "BadDigest", "The SHA256 you specified did not match the calculated checksum.", "s3")


def _subscriber(topic: str) -> str:
    return f"{topic}-subscriber"
