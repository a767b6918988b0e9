"""A release's bundle: what it holds, what is refused, and the real SAM CLI in its folder, without a project.

It has the binaries that were built for this machine, where there are some, and stand-ins for all others.
"""

import io
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path
from unittest.mock import patch

import boto3
from moto.server import ThreadedMotoServer
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from release_bundle import bundle, sums  # noqa: E402
from release_bundle.elf import ARCHITECTURES, MACHINES  # noqa: E402
from release_bundle.errors import ReleaseError  # noqa: E402

VERSION = "7.8.9"
CHANGES = f"## [{VERSION}] - 2030-01-01\n\n- Something.\n"
HERE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
BINARIES = {"Drain": "spillway-drain", "Announcer": "spillway-announce"}
# What the scenarios of this run test, by function.
TESTED = {"Drain": os.environ.get("SPILLWAY_DRAIN"), "Announcer": os.environ.get("SPILLWAY_ANNOUNCE")}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


def bootstrap(architecture: str, function: str) -> bytes:
    """A binary, or the head of one with a name instead of its body."""
    tested = TESTED[function]
    if tested and architecture == HERE:
        return Path(tested).read_bytes()
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + MACHINES[architecture].to_bytes(2, "little")
    return head + f"{function} for {architecture}".encode()


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.built = cls.binaries(cls.folder / "built")
        cls.archive = bundle.pack(ROOT, cls.built, VERSION, CHANGES, cls.folder / "dist")
        with tarfile.open(cls.archive) as tar:
            tar.extractall(cls.folder, filter="data")
        cls.unpacked = cls.folder / f"spillway-{VERSION}"

    @staticmethod
    def binaries(into: Path) -> dict[str, Path]:
        """A folder for each architecture, as `sam build` would have made it."""
        for architecture in ARCHITECTURES:
            for function in BINARIES:
                (file := into / architecture / function / "bootstrap").parent.mkdir(parents=True)
                file.write_bytes(bootstrap(architecture, function))
        return {architecture: into / architecture for architecture in ARCHITECTURES}

    def elsewhere(self) -> Path:
        return Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_packages_are_the_binaries_as_one_executable_file(self) -> None:
        for architecture in ARCHITECTURES:
            for function, binary in BINARIES.items():
                with zipfile.ZipFile(self.unpacked / f"packages/{architecture}/{binary}.zip") as package:
                    (file,) = package.infolist()
                    self.assertEqual((file.filename, file.external_attr >> 16 & 0o777), ("bootstrap", 0o755))
                    self.assertEqual(package.read("bootstrap"), bootstrap(architecture, function))

    def test_plain_templates_name_the_packages(self) -> None:
        for architecture, file in (("arm64", "template-plain.json"), ("x86_64", "template-plain-x86_64.json")):
            text = (self.unpacked / file).read_text()
            for word in ("Transform", "AWS::Serverless::", "arn:aws:"):
                self.assertNotIn(word, text.replace("AWS::ServerlessRepo", ""))
            for function, binary in BINARIES.items():
                code = json.loads(text)["Resources"][function]["Properties"]["Code"]
                place = {"Fn::Sub": f"${{CodePrefix}}packages/{architecture}/{binary}.zip"}
                self.assertEqual(code, {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": place})

    def test_bundle_has_pages_and_deploy_but_no_sources(self) -> None:
        files = {str(file.relative_to(self.unpacked)) for file in self.unpacked.rglob("*") if file.is_file()}
        cloudformation, tools = "deploy/cloudformation/receipts.yaml", "tools/spillway"
        wanted = {"deploy/rbac.yaml", "events/doctor.json", tools, cloudformation, "terraform/main.tf", "LICENSE"}
        self.assertLessEqual(wanted, files)
        ends, parts = (".rs", ".pyc", "Cargo.toml"), ("tests/", "release_bundle")
        self.assertEqual([name for name in files if name.endswith(ends) or any(part in name for part in parts)], [])
        theirs = tomllib.loads((self.unpacked / "samconfig.toml").read_text())
        other = theirs["x86_64"]["deploy"]["parameters"]
        self.assertEqual(other, {**theirs["default"]["deploy"]["parameters"], "template_file": "template-x86_64.yaml"})

    def test_pages_name_the_workspaces_repository(self) -> None:
        into = self.elsewhere()
        with patch("release_bundle.bundle.repository", return_value="somebody/a-fork"):
            forked = bundle.pack(ROOT, self.built, VERSION, CHANGES, into)
        with tarfile.open(forked) as tar:
            tar.extractall(into, filter="data")
        for page in ("README.md", "docs/install.md", "template.yaml", "template-plain.json"):
            text = (into / f"spillway-{VERSION}" / page).read_text()
            self.assertIn("somebody/a-fork", text)
            self.assertNotIn("OWNER", text)

    def test_bundle_is_the_same_in_any_folder_at_any_time(self) -> None:
        folder = self.elsewhere()
        built = self.binaries(folder / "built")
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))
        with patch("time.time", return_value=2_000_000_000):
            other = bundle.pack(ROOT, built, VERSION, CHANGES, folder / "elsewhere")
        self.assertEqual(self.archive.read_bytes(), other.read_bytes())

    def test_missing_or_foreign_binary_is_refused(self) -> None:
        x86_64 = bootstrap("x86_64", "Drain")
        for words, spoil in (
            ("no binaries for arm64: a release needs arm64", lambda built: built.pop("arm64")),
            ("there is no binary for x86_64", lambda built: (built["x86_64"] / "Announcer/bootstrap").unlink()),
            ("it is for x86_64; arm64 was", lambda built: (built["arm64"] / "Drain/bootstrap").write_bytes(x86_64)),
        ):
            folder = self.elsewhere()
            spoil(built := self.binaries(folder / "built"))
            with self.assertRaisesRegex(ReleaseError, words):
                bundle.pack(ROOT, built, VERSION, CHANGES, folder / "dist")
            self.assertFalse((folder / "dist").exists(), "nothing was written")

    def test_bundle_with_its_sum_is_unpacked(self) -> None:
        folder = self.elsewhere()
        archive = Path(shutil.copy(self.archive, folder))
        for words, spoil in (
            (None, lambda: sums.write(folder)),
            ("SHA-256 is .* download it again", lambda: archive.write_bytes(archive.read_bytes()[:-1])),
            ("SHA256SUMS: it is missing", lambda: (folder / sums.NAME).unlink()),
        ):
            spoil()
            if words is None:
                bundle.unpack(archive, HERE, folder / HERE)
                self.assertEqual((folder / HERE / "Drain/bootstrap").read_bytes(), bootstrap(HERE, "Drain"))
                self.assertTrue(os.access(folder / HERE / "Drain/bootstrap", os.X_OK))
            else:
                with self.assertRaisesRegex(ReleaseError, words):
                    bundle.unpack(archive, HERE, folder / "out")
                self.assertFalse((folder / "out").exists(), "nothing was written")

    def test_sam_uploads_each_packages_very_bytes(self) -> None:
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        server.start()
        self.addCleanup(server.stop)
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        # No other program is there: no Cargo above all.
        home = str(self.elsewhere())
        environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint, "HOME": home, "PATH": home}

        def sam(*arguments: str) -> str:
            command = [Path(sys.executable).with_name("sam"), *arguments]
            options = {"cwd": self.unpacked, "env": environment | {"SAM_CLI_TELEMETRY": "0"}, "timeout": 300}
            done = subprocess.run(command, capture_output=True, text=True, **options)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return done.stdout

        with patch.dict(os.environ, CREDENTIALS):
            s3 = boto3.client("s3", endpoint_url=endpoint)
        s3.create_bucket(Bucket="strangers")
        for section, architecture in (("default", "arm64"), ("x86_64", "x86_64")):
            self.assertIn("is a valid SAM Template", sam("validate", "--config-env", section))
            packaged = yaml_parse(sam("package", "--s3-bucket", "strangers", "--config-env", section))
            for function, binary in BINARIES.items():
                place = packaged["Resources"][function]["Properties"]["CodeUri"]
                theirs = s3.get_object(Bucket="strangers", Key=place.removeprefix("s3://strangers/"))["Body"].read()
                ours = (self.unpacked / f"packages/{architecture}/{binary}.zip").read_bytes()
                self.assertEqual(theirs, ours, function)

    def test_zipapp_runs_alone_and_reads_its_own_files(self) -> None:
        alone = Path(shutil.copy(self.unpacked / "tools/spillway.pyz", self.elsewhere()))
        # The oldest Python, if it is here.
        oldest = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))[-1:]
        for arguments, words in (
            (["from-nth", "-"], "sam deploy"),
            (["--version"], "spillway "),
            (["doctor", "--explain", "PodsLost"], "PodDisruptionBudget"),
            (["enroll", "--help"], "flow-control.yaml"),
        ):
            for python in (sys.executable, *oldest):
                command = [python, alone, *arguments]
                done = subprocess.run(command, cwd=alone.parent, input="{}", capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words, done.stdout)
        self.assertEqual(list(alone.parent.iterdir()), [alone], "nothing is left behind")


if __name__ == "__main__":
    unittest.main()
