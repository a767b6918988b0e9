"""A queue of somebody else's, as its reader finds it."""

from tests.side import ACCOUNT, URL, OnTheSide, bed


class Queues(OnTheSide):
    def test_what_is_sent_is_received_once(self) -> None:
        bed("POST", "queues", name="others")
        bed("POST", "messages", name="others", bodies=["one", "two"])

        sqs = self.client("sqs")
        received = sqs.receive_message(QueueUrl=f"{URL}/{ACCOUNT}/others", MaxNumberOfMessages=10)["Messages"]
        self.assertEqual(sorted(message["Body"] for message in received), ["one", "two"])
        again = sqs.receive_message(QueueUrl=f"{URL}/{ACCOUNT}/others", WaitTimeSeconds=0)
        self.assertNotIn("Messages", again)
