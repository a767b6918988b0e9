"""The STS stand-in takes what STS takes: a presigned GetCallerIdentity as in an EKS token, through the proxy."""

import json
import ssl
import tempfile
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from bed_aws import sts
from tests.side import ACCOUNT, REGION, OnTheSide, state

HOST = "sts.us-east-1.amazonaws.com"
IDENTITY = f"https://{HOST}/?Action=GetCallerIdentity&Version=2011-06-15"


class Sts(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tls = sts.Tls(REGION, Path(folder.name))
        proxy = sts.proxy(state.credentials, state.faults, tls)
        Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(tls.authority)))
        through = urllib.request.ProxyHandler({"https": f"http://127.0.0.1:{proxy.server_port}"})
        self.opener = urllib.request.build_opener(through, trusting)

    def presigned(self, url: str = IDENTITY, age: int = 0, **changed: str) -> str:
        keys = Credentials(self.key, self.credentials["secret_access_key"], self.credentials["session_token"])
        for name, value in changed.items():
            setattr(keys, name, value)
        request = AWSRequest("GET", url, {"x-k8s-aws-id": "bed"})
        with patch("botocore.auth.get_current_datetime", lambda: datetime.now(UTC) - timedelta(minutes=age)):
            SigV4QueryAuth(keys, "sts", REGION, expires=60).add_auth(request)
        return request.url

    def ask(self, url: str, cluster: str = "bed") -> dict[str, Any]:
        """The identity, or the error."""
        headers = {"x-k8s-aws-id": cluster, "Accept": "application/json"}
        try:
            with self.opener.open(urllib.request.Request(url, headers=headers)) as answer:
                return json.load(answer)["GetCallerIdentityResponse"]["GetCallerIdentityResult"]
        except urllib.error.HTTPError as refused:
            with refused:
                return json.load(refused)["Error"]

    def test_token_of_the_last_quarter_hour_names_its_signer(self) -> None:
        identity = self.ask(self.presigned())
        self.assertEqual(identity["Arn"], f"arn:aws:sts::{ACCOUNT}:assumed-role/tester/{self.session}")
        self.assertEqual(identity, self.ask(self.presigned(age=14)), "a role keeps its id")
        for age in (16, -16):
            self.assertEqual(self.ask(self.presigned(age=age))["Code"], "SignatureDoesNotMatch")

    def test_changed_token_is_refused(self) -> None:
        self.assertEqual(self.ask(self.presigned(), cluster="other")["Code"], "SignatureDoesNotMatch")
        for code, url in (
            ("SignatureDoesNotMatch", self.presigned().replace("Expires=60", "Expires=61")),
            ("SignatureDoesNotMatch", self.presigned(secret_key="wrong")),
            ("InvalidClientTokenId", self.presigned(access_key="ASIAUNKNOWN")),
            ("InvalidClientTokenId", self.presigned(token="x")),
            ("MissingAuthenticationToken", IDENTITY),
            ("InvalidAction", self.presigned(IDENTITY.replace("GetCallerIdentity", "GetUser"))),
        ):
            self.assertEqual(self.ask(url)["Code"], code)

    def test_no_other_host_is_reached(self) -> None:
        for host in ("example.com", f"{HOST}.example.com", "ec2.us-east-1.amazonaws.com"):
            with self.assertRaisesRegex(urllib.error.URLError, "403"):
                self.opener.open(f"https://{host}/")
