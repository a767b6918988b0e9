"""The version of the workspace, and the changelog's section of it."""

import re
import tomllib
from pathlib import Path

from release_bundle.errors import ReleaseError


def of_workspace(root: Path) -> str:
    """The one version that all crates have."""
    version: str = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    return version


def repository(root: Path) -> str:
    """Owner and name of the repository, for which the pages say OWNER/spillway."""
    url: str = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
    return url.removeprefix("https://github.com/")


def changes(changelog: str, version: str) -> str:
    """The section of one version, its heading included."""
    sections = re.split(r"(?m)^(?=## )", changelog)
    for section in sections:
        if section.startswith(f"## [{version}]"):
            return section.rstrip() + "\n"
    raise ReleaseError(
        f"CHANGELOG.md has no section of {version}: before a release, [Unreleased] becomes `## [{version}] - YYYY-MM-DD`"
    )
