"""Which clusters are meant, and what EKS says of each of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from cli import Failed
from cli.aws import Aws, AwsError
from cli.stack import Stack

T, R = TypeVar("T"), TypeVar("R")

# Each is a process of the AWS CLI, which takes most of a second of a processor.
AT_ONCE = 8


@dataclass(frozen=True)
class Cluster:
    name: str
    status: str
    # API, API_AND_CONFIG_MAP or CONFIG_MAP.
    mode: str
    endpoint: str = ""
    ca: str = ""
    is_public: bool = True
    tags: dict[str, str] = field(default_factory=dict)
    # Why EKS did not describe it.
    refused: str = ""

    @property
    def takes_entries(self) -> bool:
        return self.mode != "CONFIG_MAP"


def find(aws: Aws, stack: Stack, options: argparse.Namespace) -> list[Cluster]:
    """The clusters of --all, --cluster or --tag."""
    there = sorted(aws.call("eks", "list-clusters")["clusters"])
    names = by_name(options.cluster or (stack.clusters if options.all else []), there, stack)
    described = side_by_side(lambda name: _describe(aws, name), names)
    return with_tag(described, options.tag) if options.tag else described


def by_name(names: list[str], there: list[str], stack: Stack) -> list[str]:
    """The clusters to look at; without names, all. A name that is wrong stops everything before anything is changed."""
    if unknown := [name for name in names if name not in there]:
        known = ", ".join(there) or "none"
        named_by = "the parameter Clusters names" if names == stack.clusters else "there is no"
        raise Failed(
            f"{named_by} EKS cluster {', '.join(unknown)} in {stack.region}; there are: {known}. "
            "A stack serves one Region; for another one name it with --region"
        )
    if not there:
        raise Failed(f"there is no EKS cluster in {stack.region}")
    return list(dict.fromkeys(names)) or there


def with_tag(clusters: list[Cluster], tag: tuple[str, str]) -> list[Cluster]:
    """Clusters with the tag, and those that EKS does not describe."""
    key, value = tag
    if not (found := [one for one in clusters if one.refused or one.tags.get(key) == value]):
        values = sorted({one.tags[key] for one in clusters if key in one.tags})
        others = f"; its values are: {', '.join(values)}" if values else ", and none has a tag with this key"
        raise Failed(f"no EKS cluster has the tag {key}={value}{others}")
    return found


def remarks(found: list[Cluster], stack: Stack) -> list[str]:
    ignored = [one.name for one in found if not stack.serves(one.name)]
    if not ignored:
        return []
    deploy = f"sam deploy --parameter-overrides Clusters={','.join([*stack.clusters, *ignored])}"
    return [f"the stack ignores notices of {', '.join(ignored)}, which its parameter Clusters does not name: {deploy}"]


def _describe(aws: Aws, name: str) -> Cluster:
    try:
        told = aws.call("eks", "describe-cluster", "--name", name)["cluster"]
    except AwsError as error:
        # The others are done.
        return Cluster(name, "", "", refused=str(error))
    return Cluster(
        name,
        told["status"],
        told.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP"),
        told.get("endpoint", ""),
        told.get("certificateAuthority", {}).get("data", ""),
        told.get("resourcesVpcConfig", {}).get("endpointPublicAccess", True),
        told.get("tags", {}),
    )


def side_by_side(work: Callable[[T], R], things: Iterable[T]) -> list[R]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(work, things))
