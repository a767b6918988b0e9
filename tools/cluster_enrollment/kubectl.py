"""kubectl, with a kubeconfig of our own for each cluster: that of the user may lead to another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cli import Failed, process
from cli.aws import Aws

from .clusters import Cluster
from .step import Command, kubectl

NO_WAY = (
    "Unable to connect to the server",
    "dial tcp",
    "i/o timeout",
    "connection refused",
    "no such host",
    "TLS handshake timeout",
    "context deadline exceeded",
    "request canceled",
)
NOT_LET_IN = ("Unauthorized", "must be logged in", "provide credentials")
# A private endpoint's name leads to addresses that do not answer.
TIMEOUT_S = 20


class KubectlError(Failed):
    """The API server has refused something."""


class Unreachable(KubectlError):
    """A failure that ends the work in this cluster."""


class Kubectl:
    def __init__(self, cluster: Cluster, aws: Aws, folder: Path) -> None:
        token = aws.call("eks", "get-token", "--cluster-name", cluster.name)["status"]["token"]
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": cluster.endpoint, "certificate-authority-data": cluster.ca}}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        }
        # The token is valid for 15 minutes, and the folder is the user's own and goes with this program.
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text(json.dumps(kubeconfig))

    def read(self, command: Command) -> list[dict[str, Any]]:
        """The objects that kubectl answers with, from a list or one after the other."""
        asked = kubectl(*command.arguments, "--output=json", stdin=command.stdin)
        text, found = self.run(asked).lstrip(), []
        while text:
            one, end = json.JSONDecoder().raw_decode(text)
            found += one["items"] if one.get("kind", "").endswith("List") else [one]
            text = text[end:].lstrip()
        return found

    def run(self, command: Command) -> str:
        own = ["--kubeconfig", str(self._kubeconfig), f"--request-timeout={TIMEOUT_S}s"]
        try:
            return process.run(["kubectl", *command.arguments, *own], command.stdin)
        except process.Refused as refused:
            raise _refusal(refused.stderr) from None
        except Failed as missing:
            raise Unreachable(str(missing)) from None


def _refusal(said: str) -> KubectlError:
    if any(words in said for words in NOT_LET_IN):
        return Unreachable("the cluster does not let you in: you need an access entry of your own, as an administrator")
    if any(words in said for words in NO_WAY):
        return Unreachable(f"its API server cannot be reached from here: {said.splitlines()[-1]}")
    return KubectlError(said or "kubectl said nothing")
