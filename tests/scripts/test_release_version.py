"""The version, and what the changelog says of it."""

import tomllib
import unittest

from script import ROOT  # isort: skip

from release_bundle import version, zipapp
from release_bundle.errors import ReleaseError

CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n- A\n\n## [1.10.0] - 2030-02-01\n\n- B\n\n## [1.1.0] - 2030-01-01\n\n- C\n"
)


class Versions(unittest.TestCase):
    def test_a_version_has_its_own_section_and_no_other(self) -> None:
        self.assertEqual(version.changes(CHANGELOG, "1.1.0"), "## [1.1.0] - 2030-01-01\n\n- C\n")

    def test_command_has_the_version_of_the_workspace(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        self.assertEqual(project["version"], version.of_workspace(ROOT))

    def test_installation_has_the_files_of_the_zipapp(self) -> None:
        named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
        installed = {file for files in named["data-files"].values() for file in files}
        self.assertEqual(installed, {*zipapp.FILES, *(f"{folder}*.yaml" for folder in zipapp.FOLDERS)})
        packages = {file.parent.name for file in (ROOT / "tools").glob("*/__init__.py")} - {"tests"}
        self.assertEqual(set(named["packages"]), packages)

    def test_version_without_a_section_is_refused(self) -> None:
        with self.assertRaisesRegex(
            ReleaseError, r"no section of 1\.1: before a release, \[Unreleased\] becomes `## \[1\.1\] - "
        ):
            version.changes(CHANGELOG, "1.1")

    def test_all_crates_are_of_the_one_version(self) -> None:
        locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        ours = {package["version"] for package in locked if package["name"].startswith("spillway-")}
        self.assertEqual(ours, {version.of_workspace(ROOT)})
