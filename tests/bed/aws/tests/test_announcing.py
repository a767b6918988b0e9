"""The queue before the function that sends messages: what fills it, how it is emptied, and what is left at the end."""

import json
from typing import Any

from botocore.exceptions import ClientError

from tests.side import ACCOUNT, REGION, OnTheSide, Refused, bed

RECEIPT = {"source": "spillway", "detail-type": "Spillway Receipt", "detail": {"ending": "drained", "quoted": '"'}}


def without_checksum(request: Any, **_: Any) -> None:
    for name in [name for name in request.headers if "checksum" in name.lower()]:
        del request.headers[name]


class Announcing(OnTheSide):
    def deploy(self, **parameters: str) -> dict[str, Any]:
        name = self.id()[-60:].rpartition(".")[2]
        return bed("POST", "announcers", sender=self.key, name=name, parameters=parameters)

    def receive(self, stack: dict[str, Any], most: int = 10) -> list[dict[str, Any]]:
        return bed("POST", "messages/receive", name=stack["queue"], most=most, wait_s=0)

    def test_the_function_is_told_what_the_template_tells_it(self) -> None:
        stack = self.deploy(Webhook="/spillway/webhook")
        arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{stack['queue']}"
        told = {"SPILLWAY_WEBHOOK": "/spillway/webhook", "SPILLWAY_TOPIC_FORMAT": "text", "SPILLWAY_QUEUE_ARN": arn}
        self.assertEqual(stack["variables"], told)
        self.assertEqual((stack["batch_size"], stack["window_s"]), (100, 10))

    def test_a_parameter_that_the_template_has_not_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "no parameter Webhok"):
            self.deploy(Webhok="/spillway/webhook")

    def test_a_message_for_the_queue_of_the_template_is_in_that_of_its_sender(self) -> None:
        stack = self.deploy()
        url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/spillway-Announcements"
        sent = self.client("sqs").send_message(QueueUrl=url, MessageBody=json.dumps(RECEIPT))
        [record] = self.receive(stack)
        self.assertEqual((record["messageId"], json.loads(record["body"])), (sent["MessageId"], RECEIPT))

    def test_a_message_is_received_until_it_is_done_and_then_no_more(self) -> None:
        stack = self.deploy()
        bed("POST", "messages", name=stack["queue"], bodies=["one", "two"])
        records = self.receive(stack)
        self.assertEqual(self.receive(stack), [], "who has not settled them has them")
        one, two = sorted(records, key=lambda record: record["body"])
        handles = {"done": [one["receiptHandle"]], "come_back": [two["receiptHandle"]]}
        bed("POST", "messages/settle", name=stack["queue"], **handles)
        [again] = self.receive(stack)
        self.assertEqual((again["body"], again["attributes"]["ApproximateReceiveCount"]), ("two", "2"))

    def test_a_message_that_was_received_too_often_is_undelivered(self) -> None:
        stack = self.deploy()
        bed("POST", "messages", name=stack["queue"], bodies=["one"])
        for _ in range(2):
            [record] = self.receive(stack)
            bed("POST", "messages/settle", name=stack["queue"], done=[], come_back=[record["receiptHandle"]])
            self.assertEqual(bed("GET", f"messages?name={stack['undelivered']}"), [])
        # It moves when it would be received once more, as in SQS.
        self.assertEqual(self.receive(stack), [])
        self.assertEqual(bed("GET", f"messages?name={stack['undelivered']}"), ["one"])


class Sinks(OnTheSide):
    def test_a_topic_has_a_subscriber(self) -> None:
        topic = bed("POST", "topics", name="drains")
        self.client("sns").publish(TopicArn=topic["arn"], Subject="a subject", Message="a message")
        [published] = bed("GET", "topics?name=drains")
        self.assertEqual((published["Subject"], published["Message"]), ("a subject", "a message"))

    def test_an_object_is_found_by_its_key(self) -> None:
        bed("POST", "buckets", name="receipts")
        self.client("s3").put_object(Bucket="receipts", Key="2026/11/21/one.json", Body=b"{}")
        self.assertEqual(bed("GET", "buckets?name=receipts"), {"2026/11/21/one.json": "{}"})
        calls = bed("GET", f"calls?access_key_id={self.key}")
        self.assertEqual([call["action"] for call in calls], ["PutObject"], "and not one of the others that put a key")

    def test_an_object_without_a_checksum_is_refused_as_by_object_lock(self) -> None:
        bed("POST", "buckets", name="locked")
        s3 = self.client("s3")
        sent = {"Bucket": "locked", "Key": "one.json", "Body": b"{}"}
        with self.assertRaisesRegex(ClientError, "BadDigest"):
            s3.put_object(**sent, ChecksumSHA256="A" * 43 + "=")
        s3.meta.events.register("before-sign.s3.PutObject", without_checksum)
        with self.assertRaisesRegex(ClientError, "x-amz-checksum"):
            s3.put_object(**sent)
        self.assertEqual(bed("GET", "buckets?name=locked"), {})

    def test_secrets_are_read_by_name_and_by_arn(self) -> None:
        bed("POST", "parameters", name="/spillway/url", value="https://example.com")
        parameter = self.client("ssm").get_parameter(Name="/spillway/url", WithDecryption=True)
        self.assertEqual(parameter["Parameter"]["Value"], "https://example.com")
        secret = bed("POST", "secrets", name="team/url", value="https://example.org")
        self.assertRegex(secret["arn"], r":secret:team/url-[A-Za-z0-9]{6}$")
        value = self.client("secretsmanager").get_secret_value(SecretId=secret["arn"])
        self.assertEqual(value["SecretString"], "https://example.org")
