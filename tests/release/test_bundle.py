"""What a bundle holds, that its bytes depend on nothing else, and what is refused."""

import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path
from unittest.mock import patch

from built import CHANGES, HERE, ROOT, TESTED, VERSION, binaries, folder_of, packed, stand_in, the_bundle
from release_bundle import bundle, sums
from release_bundle.elf import ARCHITECTURES
from release_bundle.errors import ReleaseError

TOP = f"spillway-{VERSION}"


def files(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {one.name.removeprefix(f"{TOP}/"): tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


class WhatItHolds(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.archive = the_bundle()
        cls.files = files(cls.archive)

    def test_pages_name_the_workspaces_repository(self) -> None:
        pages = ("README.md", "docs/install.md", "docs/contributing/releasing.md", "template.yaml", "template-plain.json")
        with patch("release_bundle.bundle.repository", return_value="somebody/a-fork"):
            forked = files(packed(Path(self.enterContext(tempfile.TemporaryDirectory()))))
        for page in pages:
            self.assertIn(b"somebody/a-fork", forked[page])
            self.assertNotIn(b"OWNER", forked[page])

    def test_plain_templates_have_the_same_resources(self) -> None:
        for architecture, file in (("arm64", "template-plain.json"), ("x86_64", "template-plain-x86_64.json")):
            plain = json.loads(self.files[file])
            self.assertNotIn("Transform", plain)
            types = {resource["Type"] for resource in plain["Resources"].values()}
            self.assertFalse([one for one in types if one.startswith("AWS::Serverless::")])
            for function, binary in (("Drain", "spillway-drain"), ("Announcer", "spillway-announce")):
                code = plain["Resources"][function]["Properties"]["Code"]
                self.assertEqual(code["S3Bucket"], {"Ref": "CodeBucket"})
                package = code["S3Key"]["Fn::Sub"].removeprefix("${CodePrefix}")
                self.assertEqual(package, f"packages/{architecture}/{binary}.zip")
                self.assertIn(package, self.files)
            # CloudFormation's limit for one that comes from a bucket.
            self.assertLess(len(self.files[file]), 1_000_000)
            self.assertNotIn(b"arn:aws:", self.files[file], "it is for every partition")

    def test_package_is_one_executable_file(self) -> None:
        with zipfile.ZipFile(io.BytesIO(self.files["packages/arm64/spillway-drain.zip"])) as package:
            (bootstrap,) = package.infolist()
            self.assertEqual(bootstrap.filename, "bootstrap")
            self.assertEqual(stat.filemode(bootstrap.external_attr >> 16), "-rwxr-xr-x")
            self.assertEqual(package.read("bootstrap"), stand_in("arm64", "Drain"))

    @unittest.skipUnless(all(TESTED.values()), "SPILLWAY_DRAIN and SPILLWAY_ANNOUNCE name no binaries")
    def test_packages_are_the_tested_binaries(self) -> None:
        for function, binary in (("Drain", "spillway-drain"), ("Announcer", "spillway-announce")):
            with zipfile.ZipFile(io.BytesIO(self.files[f"packages/{HERE}/{binary}.zip"])) as package:
                self.assertEqual(package.read("bootstrap"), Path(TESTED[function]).read_bytes())  # type: ignore[arg-type]

    def test_bundle_has_the_files_of_the_pages(self) -> None:
        for name in (
            "deploy/rbac.yaml",
            "events/doctor.json",
            "tools/spillway",
            "deploy/iam/enroller-policy.json",
            "deploy/cloudformation/receipts.yaml",
            "terraform/main.tf",
            "docs/install.md",
            "LICENSE",
        ):
            self.assertEqual(self.files[name], (ROOT / name).read_bytes(), name)

    def test_bundle_has_no_sources_or_tests(self) -> None:
        ends, parts = (".rs", ".pyc", "Cargo.toml"), ("tests/", "release_bundle")
        self.assertEqual([name for name in self.files if name.endswith(ends) or any(part in name for part in parts)], [])

    def test_samconfig_needs_no_build_for_either_architecture(self) -> None:
        ours = tomllib.loads((ROOT / "samconfig.toml").read_text())
        theirs = tomllib.loads(self.files["samconfig.toml"].decode())
        self.assertEqual(theirs["default"], ours["default"])
        other = theirs["x86_64"]["deploy"]["parameters"]
        self.assertEqual(other, {**ours["default"]["deploy"]["parameters"], "template_file": "template-x86_64.yaml"})


class ItsBytes(unittest.TestCase):
    def test_bundle_is_the_same_in_any_folder_at_any_time(self) -> None:
        folder = folder_of(self)
        built = binaries(folder / "built")
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))
        with patch("time.time", return_value=2_000_000_000):
            other = bundle.pack(ROOT, built, VERSION, CHANGES, folder / "elsewhere")
        self.assertEqual(the_bundle().read_bytes(), other.read_bytes())


class WhatIsRefused(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = folder_of(self)
        self.built = binaries(self.folder / "built")

    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(ReleaseError, words):
            bundle.pack(ROOT, self.built, VERSION, CHANGES, self.folder / "dist")
        self.assertFalse((self.folder / "dist").exists(), "nothing was written")

    def test_missing_architecture_is_refused(self) -> None:
        del self.built["arm64"]
        self.refused("no binaries for arm64: a release needs arm64 and x86_64")

    def test_missing_function_is_refused(self) -> None:
        (self.built["x86_64"] / "Announcer/bootstrap").unlink()
        self.refused("Announcer/bootstrap: there is no binary for x86_64")

    def test_a_binary_of_another_architecture(self) -> None:
        (self.built["arm64"] / "Drain/bootstrap").write_bytes(stand_in("x86_64", "Drain"))
        self.refused("arm64/Drain/bootstrap: it is for x86_64; arm64 was asked for")


class TakenApart(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = folder_of(self)
        shutil.copytree(the_bundle().parents[1], self.folder, dirs_exist_ok=True)
        (self.archive,) = (self.folder / "dist").glob("*.tar.gz")
        sums.write(self.archive.parent)

    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(ReleaseError, words):
            bundle.unpack(self.archive, HERE, self.folder / "out")
        self.assertFalse((self.folder / "out").exists(), "nothing was written")

    def test_the_binaries_come_out_as_they_went_in(self) -> None:
        for architecture in ARCHITECTURES:
            bundle.unpack(self.archive, architecture, self.folder / architecture)
            for function in TESTED:
                taken = self.folder / architecture / function / "bootstrap"
                self.assertEqual(
                    taken.read_bytes(), (self.folder / "built" / architecture / function / "bootstrap").read_bytes()
                )
                self.assertTrue(os.access(taken, os.X_OK))

    def test_bundle_with_another_sum_is_not_unpacked(self) -> None:
        contents = bytearray(self.archive.read_bytes())
        contents[len(contents) // 2] ^= 1
        self.archive.write_bytes(contents)
        self.refused(f"{self.archive.name}: its SHA-256 is .* SHA256SUMS has .* download it again")

    def test_a_bundle_without_sums(self) -> None:
        (self.archive.parent / sums.NAME).unlink()
        self.refused("SHA256SUMS: it is missing")
