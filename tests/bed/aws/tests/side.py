"""An AWS side for the tests: the real server in this process, boto3 clients, and its own API."""

import json
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
from botocore.config import Config
from werkzeug.serving import make_server

from bed_aws import announcing, rules, stack
from bed_aws.__main__ import Handler
from bed_aws.app import App
from bed_aws.functions import Functions
from bed_aws.iam import Iam
from bed_aws.moto_side import Moto
from bed_aws.state import State

REGION, ACCOUNT = "us-east-1", "123456789012"
TEMPLATE = Path(__file__).parents[4] / "template.yaml"
moto = Moto(ACCOUNT, REGION)
ruler = rules.install(rules.read(TEMPLATE), moto)
state = State(
    moto,
    stack.install(TEMPLATE, moto),
    Functions(TEMPLATE),
    announcing.read(TEMPLATE),
    Iam(TEMPLATE, moto),
    ruler,
)
app = App(state)
_server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
Thread(target=_server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{_server.port}"


class OnTheSide(unittest.TestCase):
    """Each test has credentials of its own, as each function under test has."""

    def setUp(self) -> None:
        self.session = self.id()[-60:]
        self.credentials = bed("credentials_of_function", role="tester", session=self.session, variables={})
        self.key = self.credentials["access_key_id"]

    def client(self, service: str, read_timeout: float = 60, **changed: str) -> Any:
        keys = {
            "aws_access_key_id": self.key,
            "aws_secret_access_key": self.credentials["secret_access_key"],
            "aws_session_token": self.credentials["session_token"],
        }
        config = Config(retries={"total_max_attempts": 1}, read_timeout=read_timeout)
        return boto3.client(service, REGION, endpoint_url=URL, config=config, **{**keys, **changed})

    def about(self, instance_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Rule and detail of what AWS has sent about an instance by itself."""
        delivered = bed("take_deliveries", sender=instance_id)
        return [(one["rule"], one["event"]["detail"]) for one in delivered]

    def instance(self, *hooks: dict[str, Any], **fields: Any) -> str:
        """An instance of a group of its own that has these hooks."""
        group = self.id().rpartition(".")[2]
        bed("put_group", name=group, hooks=list(hooks))
        return bed("launch", group=group, **fields)["instance_id"]


class Refused(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(f"{status}: {error}")


def bed(call: str, **fields: Any) -> Any:
    request = urllib.request.Request(f"{URL}/bed/{call}", json.dumps(fields).encode())
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            raise Refused(refused.code, json.load(refused)["error"]) from None


def move(instance_id: str, move: str = "terminate") -> list[dict[str, Any]]:
    return bed("move_past_hooks", instance_id=instance_id, how=move)


def until_gone(instance_id: str) -> None:
    """Waits for the instance in the list of those that went; fails after ten seconds."""
    since, deadline = 0, time.monotonic() + 10
    while time.monotonic() < deadline:
        page = bed("changes", since=since, wait_s=1)
        if (instance_id, "terminated") in [(change["instance_id"], change["what"]) for change in page["changes"]]:
            return
        since = page["next"]
    raise AssertionError(f"{instance_id} is still there")


def temporary_folder(test: unittest.TestCase) -> Path:
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return Path(folder.name)
