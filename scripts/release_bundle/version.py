"""The version of the workspace, and the changelog's section of it."""

from __future__ import annotations

import re
from pathlib import Path

from release_bundle.errors import ReleaseError


def of_workspace(root: Path) -> str:
    """The one version that all crates have."""
    return _of_package(root, "version")


def repository(root: Path) -> str:
    """Owner and name of the repository, for which the pages say OWNER/spillway."""
    return _of_package(root, "repository").removeprefix("https://github.com/")


def _of_package(root: Path, name: str) -> str:
    """A text of Cargo.toml's table workspace.package."""
    table = (root / "Cargo.toml").read_text().partition("[workspace.package]\n")[2].partition("\n[")[0]
    return str(re.findall(rf'^{name} = "(.+)"$', table, re.MULTILINE)[0])


def changes(changelog: str, version: str) -> str:
    """The section of one version, its heading included."""
    sections = re.split(r"(?m)^(?=## )", changelog)
    for section in sections:
        if section.startswith(f"## [{version}]"):
            return section.rstrip() + "\n"
    raise ReleaseError(
        f"CHANGELOG.md has no section of {version}: before a release, [Unreleased] becomes `## [{version}] - YYYY-MM-DD`"
    )
