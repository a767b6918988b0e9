"""Which clusters are looked at, and how kubectl asks each: those of its contexts, or all EKS clusters of the account."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Union

from cli.aws import Aws


@dataclass(frozen=True)
class Context:
    """A context of the kubeconfig that kubectl uses."""

    # None is the current one.
    name: str | None

    def kubectl(self, folder: Path) -> list[str]:
        return ["kubectl", *(["--context", self.name] if self.name else [])]


@dataclass(frozen=True)
class EksCluster:
    eks_name: str
    region: str | None = None

    @property
    def name(self) -> str:
        return f"{self.region}/{self.eks_name}" if self.region else self.eks_name

    def kubectl(self, folder: Path) -> list[str]:
        """kubectl with a kubeconfig in the folder."""
        kubeconfig = str(folder / "kubeconfig")
        Aws(self.region).text("eks", "update-kubeconfig", "--name", self.eks_name, "--kubeconfig", kubeconfig)
        return ["kubectl", "--kubeconfig", kubeconfig]


Cluster = Union[Context, EksCluster]


def of_account(regions: list[str]) -> list[Cluster]:
    clusters: list[Cluster] = []
    for region in regions or [None]:
        clusters += [EksCluster(str(name), region) for name in Aws(region).call("eks", "list-clusters").get("clusters", [])]
    return clusters
