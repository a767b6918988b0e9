"""The programs of others that a run uses, and what they say when they fail."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from smoke.step import SmokeError


class Programs(Protocol):
    def run(self, folder: Path, *command: str, stdin: str | None = None) -> str:
        """Runs a program to its end and gives its output."""


class Real:
    """Those on the PATH, and `sam` of the project's own environment."""

    def __init__(self, region: str, folder: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        # A kubeconfig of its own: the user's is not to get a cluster that is gone in an hour.
        self._environment = {
            **os.environ,
            "PATH": path,
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "KUBECONFIG": str(folder / "kubeconfig"),
            "SAM_CLI_TELEMETRY": "0",
        }

    def run(self, folder: Path, *command: str, stdin: str | None = None) -> str:
        try:
            done = subprocess.run(
                command, cwd=folder, env=self._environment, input=stdin, capture_output=True, text=True
            )
        except FileNotFoundError:
            raise SmokeError(
                f"{command[0]}: it is not on the PATH; stage B needs sam, kubectl and the AWS CLI 2"
            ) from None
        if done.returncode != 0:
            raise SmokeError(f"{' '.join(command)}: it ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout
