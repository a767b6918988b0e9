"""Binaries to pack: those that were built for this machine, where there are some, and stand-ins for all others."""

import atexit
import os
import platform
import shutil
import sys
import tempfile
import unittest
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from release_bundle.bundle import Built, pack  # noqa: E402
from release_bundle.elf import ARCHITECTURES, MACHINES  # noqa: E402

VERSION = "7.8.9"
CHANGES = f"## [{VERSION}] - 2030-01-01\n\n- Something.\n"
HERE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
# What the scenarios of this run test, by function.
TESTED = {"Drain": os.environ.get("SPILLWAY_DRAIN"), "Announcer": os.environ.get("SPILLWAY_ANNOUNCE")}


def stand_in(architecture: str, function: str) -> bytes:
    """The head of a binary for a processor, and a name instead of its body."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + MACHINES[architecture].to_bytes(2, "little")
    return head + f"{function} for {architecture}".encode()


def binaries(into: Path) -> Built:
    """A folder for each architecture, as `sam build` would have made it."""
    built = {}
    for architecture in ARCHITECTURES:
        built[architecture] = into / architecture
        for function, tested in TESTED.items():
            bootstrap = built[architecture] / function / "bootstrap"
            bootstrap.parent.mkdir(parents=True)
            if tested and architecture == HERE:
                shutil.copyfile(tested, bootstrap)
            else:
                bootstrap.write_bytes(stand_in(architecture, function))
    return built


def folder_of(test: unittest.TestCase) -> Path:
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return Path(folder.name)


def packed(into: Path) -> Path:
    """A bundle of the project as it is."""
    return pack(ROOT, binaries(into / "built"), VERSION, CHANGES, into / "dist")


@cache
def the_bundle() -> Path:
    """That, packed once for all tests, which only read it."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return packed(folder)
