"""The program against moto, as far as moto goes: over HTTP, through boto3, as against AWS.

moto has no Access Analyzer, answers no TestEventPattern, and takes a template only from AWS' own host names.
"""

import logging
import os
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from moto.server import ThreadedMotoServer

from tests.account import PretendedPrograms, ROOT, TEMPLATE
from smoke import stage_a, teardown
from smoke.aws import Account
from smoke.run import Run

REGION = "eu-central-1"


class AgainstMoto(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        credentials = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_SESSION_TOKEN": "testing",
        }
        cls.enterClassContext(patch.dict(os.environ, credentials))
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        cls.addClassCleanup(server.stop)
        host, port = server.get_host_and_port()
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        aws = Account(REGION, endpoint=f"http://{host}:{port}")
        account = aws.call("sts", "GetCallerIdentity")["Account"]
        cls.run_ = Run(
            aws,
            PretendedPrograms(set()),
            account,
            "aws",
            ROOT,
            folder,
            say=lambda _: None,
            pause=0.1,
            template=TEMPLATE,
        )

    def test_the_bucket_is_made_with_its_tag_and_emptied_and_taken_away(self) -> None:
        stage_a.package(self.run_)
        self.assertEqual(teardown.tagged(self.run_), [f"arn:aws:s3:::{self.run_.bucket}"])
        teardown.everything(self.run_)
        self.assertEqual(teardown.tagged(self.run_), [])

    def test_a_network_to_deploy_into_is_found(self) -> None:
        sets = stage_a.parameter_sets(self.run_)
        self.assertTrue(sets["vpc"]["SubnetIds"].startswith("subnet-"))
        self.assertTrue(sets["vpc"]["SecurityGroupIds"].startswith("sg-"))

    def test_the_dashboard_is_put_and_taken_away(self) -> None:
        stage_a.dashboard(self.run_)
        self.assertEqual(self.run_.aws.call("cloudwatch", "ListDashboards")["DashboardEntries"], [])

    def test_the_saved_queries_run_and_their_group_is_taken_away(self) -> None:
        stage_a.queries(self.run_)
        self.assertEqual(self.run_.aws.call("logs", "DescribeLogGroups")["logGroups"], [])
