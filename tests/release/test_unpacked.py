"""A bundle in an empty folder, and the real SAM CLI there: no Rust, no project, no build."""

import logging
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from typing import Any

import boto3
from built import VERSION, the_bundle
from moto.server import ThreadedMotoServer
from samtranslator.yaml_helper import yaml_parse

REGION, BUCKET = "us-east-1", "packages-of-a-stranger"
# For `--config-env`.
ENVIRONMENTS = {"default": "arm64", "x86_64": "x86_64"}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": REGION}


class Unpacked(unittest.TestCase):
    folder: Path
    server: ThreadedMotoServer

    @classmethod
    def setUpClass(cls) -> None:
        elsewhere = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        with tarfile.open(the_bundle()) as tar:
            tar.extractall(elsewhere, filter="data")
        cls.folder = elsewhere / f"spillway-{VERSION}"
        cls.server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        host, port = cls.server.get_host_and_port()
        cls.endpoint = f"http://{host}:{port}"
        cls.home = elsewhere / "home"
        cls.home.mkdir()

    def sam(self, *arguments: str) -> str:
        """Runs SAM in the bundle's folder, and no other program is there: no Cargo above all."""
        environment = {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": self.endpoint,
            "HOME": str(self.home),
            "PATH": str(self.home),
            "SAM_CLI_TELEMETRY": "0",
        }
        command = [str(Path(sys.executable).with_name("sam")), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def s3(self) -> Any:
        return boto3.client(
            "s3",
            REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    def test_sam_takes_each_template_for_valid(self) -> None:
        for environment in ENVIRONMENTS:
            self.assertIn("is a valid SAM Template", self.sam("validate", "--config-env", environment))

    def test_sam_uploads_each_packages_very_bytes(self) -> None:
        self.s3().create_bucket(Bucket=BUCKET)
        for environment, architecture in ENVIRONMENTS.items():
            arguments = ("--s3-bucket", BUCKET, "--config-env", environment)
            template = yaml_parse(self.sam("package", *arguments))
            uploaded = {name: one["Properties"]["CodeUri"] for name, one in template["Resources"].items() if code(one)}
            self.assertEqual(set(uploaded), {"Drain", "Announcer"})
            for name, binary in (("Drain", "spillway-drain"), ("Announcer", "spillway-announce")):
                ours = self.folder / f"packages/{architecture}/{binary}.zip"
                bucket, _, key = uploaded[name].removeprefix("s3://").partition("/")
                theirs = self.s3().get_object(Bucket=bucket, Key=key)["Body"].read()
                self.assertEqual(theirs, ours.read_bytes(), name)

    def test_the_zipapp_runs_alone_and_reads_its_own_files(self) -> None:
        alone = Path(self.enterContext(tempfile.TemporaryDirectory())) / "spillway.pyz"
        shutil.copy(self.folder / "tools/spillway.pyz", alone)
        for arguments, words in (
            (["from-nth", "-"], "sam deploy"),
            (["--version"], "spillway "),
            (["doctor", "--explain", "PodsLost"], "PodDisruptionBudget"),
            (["enroll", "--help"], "flow-control.yaml"),
            (["show", "--help"], "spillway.html"),
        ):
            for python in filter(None, (sys.executable, oldest_python())):
                done = subprocess.run([python, alone, *arguments], cwd=alone.parent, input="{}", capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words, done.stdout)
        self.assertEqual(list(alone.parent.iterdir()), [alone], "nothing is left behind")


def oldest_python() -> str | None:
    """Python 3.9, if it is here."""
    found = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))
    return str(found[-1]) if found else None


def code(resource: Any) -> bool:
    return "CodeUri" in resource.get("Properties", {})
