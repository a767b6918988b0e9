"""The STS stand-in takes what STS takes: a presigned GetCallerIdentity as in an EKS token, through the proxy."""

import json
import ssl
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Any
from unittest.mock import patch

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from bed_aws import sts
from tests.side import REGION, OnTheSide, state, temporary_folder

HOST = "sts.us-east-1.amazonaws.com"
IDENTITY = f"https://{HOST}/?Action=GetCallerIdentity&Version=2011-06-15"


class Sts(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        tls = sts.Tls(REGION, temporary_folder(self))
        proxy = sts.proxy(state.credentials, state.faults, tls)
        Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        trusting = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(tls.authority)))
        through = urllib.request.ProxyHandler({"https": f"http://127.0.0.1:{proxy.server_port}"})
        self.opener = urllib.request.build_opener(through, trusting)

    def presigned(self, cluster: str = "bed", url: str = IDENTITY, **changed: str) -> str:
        keys = Credentials(self.key, self.credentials["secret_access_key"], self.credentials["session_token"])
        for name, value in changed.items():
            setattr(keys, name, value)
        request = AWSRequest("GET", url, {"x-k8s-aws-id": cluster})
        SigV4QueryAuth(keys, "sts", "us-east-1", expires=60).add_auth(request)
        return request.url

    def ask(self, url: str, cluster: str = "bed") -> Any:
        headers = {"x-k8s-aws-id": cluster, "Accept": "application/json"}
        with self.opener.open(urllib.request.Request(url, headers=headers)) as answer:
            return json.load(answer)

    def assert_refused(self, code: str, url: str, cluster: str = "bed") -> None:
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.ask(url, cluster)
        with caught.exception as refused:
            self.assertEqual(json.load(refused)["Error"]["Code"], code)

    def test_a_token_tells_who_signed_it(self) -> None:
        identity = self.ask(self.presigned())["GetCallerIdentityResponse"]["GetCallerIdentityResult"]
        session = self.id()[-60:]
        self.assertEqual(identity["Arn"], f"arn:aws:sts::123456789012:assumed-role/tester/{session}")
        self.assertEqual(identity, self.ask(self.presigned())["GetCallerIdentityResponse"]["GetCallerIdentityResult"])

    def test_what_was_tampered_with_is_refused(self) -> None:
        self.assert_refused("SignatureDoesNotMatch", self.presigned(), cluster="other")
        self.assert_refused("SignatureDoesNotMatch", self.presigned().replace("Expires=60", "Expires=61"))
        self.assert_refused("SignatureDoesNotMatch", self.presigned(secret_key="wrong"))
        self.assert_refused("InvalidClientTokenId", self.presigned(access_key="ASIAUNKNOWN"))
        self.assert_refused("InvalidClientTokenId", self.presigned(token="x"))
        self.assert_refused("MissingAuthenticationToken", IDENTITY)
        self.assert_refused("InvalidAction", self.presigned(url=IDENTITY.replace("GetCallerIdentity", "GetUser")))

    def test_a_token_lives_for_fifteen_minutes(self) -> None:
        for age, good in ((14, True), (16, False), (-16, False)):
            with patch("botocore.auth.get_current_datetime", lambda: datetime.now(UTC) - timedelta(minutes=age)):
                url = self.presigned()
            if good:
                self.ask(url)
            else:
                self.assert_refused("SignatureDoesNotMatch", url)

    def test_no_other_host_is_reached(self) -> None:
        for host in ("example.com", "sts.us-east-1.amazonaws.com.example.com", "ec2.us-east-1.amazonaws.com"):
            with self.assertRaisesRegex(urllib.error.URLError, "403"):
                self.ask(f"https://{host}/")
