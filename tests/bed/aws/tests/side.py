"""An AWS side for the tests: the real server in this process, boto3 clients, and its own API."""

import json
import tempfile
import unittest
import urllib.request
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from werkzeug.serving import make_server

from bed_aws.__main__ import Handler
from bed_aws.app import App
from bed_aws.moto_side import Moto
from bed_aws.state import State

REGION, ACCOUNT = "us-east-1", "123456789012"
TEMPLATE = Path(__file__).parents[4] / "template.yaml"
moto = Moto(ACCOUNT, REGION)
_folder = tempfile.TemporaryDirectory()
state = State(moto, TEMPLATE, Path(_folder.name))
_server = make_server("127.0.0.1", 0, App(state), threaded=True, request_handler=Handler)
Thread(target=_server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{_server.port}"


class OnTheSide(unittest.TestCase):
    """Each test has credentials of its own, as each function under test has."""

    def setUp(self) -> None:
        self.session = self.id()[-60:]
        self.group = self.id().rpartition(".")[2]
        self.credentials = bed("credentials_of_function", role="tester", session=self.session, variables={})
        self.key = self.credentials["access_key_id"]

    def client(self, service: str, region: str = REGION, **changed: str) -> Any:
        keys = {
            "aws_access_key_id": self.credentials["access_key_id"],
            "aws_secret_access_key": self.credentials["secret_access_key"],
            "aws_session_token": self.credentials["session_token"],
        }
        config = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
        return boto3.client(service, region, endpoint_url=URL, config=config, **{**keys, **changed})

    def refused(self, call: Any, *args: Any, **asked: Any) -> tuple[int, str, str]:
        """Status, code and message of a refusal."""
        with self.assertRaises(ClientError) as caught:
            call(*args, **asked)
        answer: dict[str, Any] = caught.exception.response
        return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"], answer["Error"]["Message"]

    def assert_refused(self, code: str, message: str, call: Any, *args: Any, **asked: Any) -> None:
        _, said, text = self.refused(call, *args, **asked)
        self.assertEqual(said, code)
        self.assertIn(message, text)

    def instance(self, *hooks: str, **fields: Any) -> str:
        """An instance of a group of its own that has these terminate hooks."""
        bed("put_group", name=self.group, hooks=[{"name": name} for name in hooks])
        return bed("launch", group=self.group, **fields)["instance_id"]


def bed(call: str, **fields: Any) -> Any:
    request = urllib.request.Request(f"{URL}/bed/{call}", json.dumps(fields).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
