"""Stand-in for EKS' clusters and access entries. moto's endpoint is a made-up host, its certificate authority random text, and
it has no access entries. What an entry maps goes into a file that the cluster's aws-iam-authenticator follows.
"""

import json
import re
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bed_aws.call import Call
from bed_aws.errors import AwsError
from bed_aws.moto_side import Moto

CONFIG_MAP = "CONFIG_MAP"
_ROLE = re.compile(r"arn:aws:iam::(\d{12}):role/(?:.*/)?([^/]+)")
Json = dict[str, Any]


@dataclass
class Cluster:
    name: str
    endpoint: str
    ca: str
    """base64 of PEM, as EKS gives it"""
    status: str = "ACTIVE"
    mode: str = "API"
    created_at: float = field(default_factory=time.time)


class Eks:
    def __init__(self, moto: Moto, folder: Path) -> None:
        """`folder`: where the file of each cluster's entries is."""
        self._moto = moto
        self._folder = folder
        self._clusters: dict[str, Cluster] = {}
        # As EKS describes them, by their principals.
        self._entries: dict[str, dict[str, Json]] = {}
        self._overrides: dict[tuple[str, str], tuple[str | None, str | None]] = {}

    def put(self, cluster: Cluster) -> None:
        self._clusters[cluster.name] = cluster
        self._entries.setdefault(cluster.name, {})
        self._write(cluster.name)

    def remove(self, name: str) -> None:
        """Hides it: its control plane runs on."""
        del self._clusters[name]

    def override(self, access_key_id: str, cluster: str, endpoint: str | None = None, ca: str | None = None) -> None:
        """Lets one caller see another endpoint, such as a proxy's: tests run side by side."""
        self._overrides[access_key_id, cluster] = (endpoint, ca)

    def entries(self, cluster: str) -> list[Json]:
        return list(self._entries[cluster].values())

    def answer(self, call: Call) -> Json | None:
        asked = call.asked
        match call.action:
            case "ListClusters":
                return {"clusters": sorted(self._clusters)}
            case "DescribeCluster":
                return {"cluster": self._described(call.access_key_id, asked["name"])}
            case "CreateAccessEntry":
                return {"accessEntry": self._create(asked)}
            case "DescribeAccessEntry":
                return {"accessEntry": self._entry(asked)}
            case "UpdateAccessEntry":
                entry = self._entry(asked)
                entry["kubernetesGroups"] = _groups(asked)
                self._write(asked["clusterName"])
                return {"accessEntry": entry}
            case "DeleteAccessEntry":
                del self._entries[asked["clusterName"]][self._entry(asked)["principalArn"]]
                self._write(asked["clusterName"])
                return {}
            case "TagResource":
                return self._tag(asked)
        return None

    def _described(self, access_key_id: str, name: str) -> Json:
        cluster = self._cluster(name)
        described = {
            "name": name,
            "arn": self._moto.arn("eks", f"cluster/{name}"),
            "createdAt": cluster.created_at,
            "status": cluster.status,
            "version": "1.36",
            "accessConfig": {"authenticationMode": cluster.mode},
            "resourcesVpcConfig": {"endpointPublicAccess": True, "endpointPrivateAccess": False},
            "tags": {},
        }
        # A cluster that is being created has neither yet.
        if cluster.status != "CREATING":
            endpoint, ca = self._overrides.get((access_key_id, name), (None, None))
            described["endpoint"] = endpoint or cluster.endpoint
            described["certificateAuthority"] = {"data": ca or cluster.ca}
        return described

    def _create(self, asked: Json) -> Json:
        cluster, principal, groups = self._with_entries(asked), asked["principalArn"], _groups(asked)
        if not (role := _ROLE.fullmatch(principal)):
            raise _invalid(f"The specified principalArn is invalid: {principal}")
        if principal in self._entries[cluster]:
            in_use = "The specified access entry resource is already in use on this cluster."
            raise AwsError(409, "ResourceInUseException", in_use)
        now = time.time()
        entry = self._entries[cluster][principal] = {
            "clusterName": cluster,
            "principalArn": principal,
            "accessEntryArn": self._moto.arn("eks", f"access-entry/{cluster}/role/{role[1]}/{role[2]}/{uuid.uuid4()}"),
            "kubernetesGroups": groups,
            "createdAt": now,
            "modifiedAt": now,
            "tags": asked.get("tags", {}),
            "type": "STANDARD",
            "username": f"arn:aws:sts::{role[1]}:assumed-role/{role[2]}/{{{{SessionName}}}}",
        }
        self._write(cluster)
        return entry

    def _tag(self, asked: Json) -> Json:
        for entry in [one for entries in self._entries.values() for one in entries.values()]:
            if entry["accessEntryArn"] == asked["resourceArn"]:
                entry["tags"] |= asked["tags"]
                return {}
        raise AwsError(404, "NotFoundException", f"Resource {asked['resourceArn']} was not found")

    def _cluster(self, name: str) -> Cluster:
        if name not in self._clusters:
            raise AwsError(404, "ResourceNotFoundException", f"No cluster found for name: {name}.")
        return self._clusters[name]

    def _with_entries(self, asked: Json) -> str:
        cluster = self._cluster(asked["clusterName"])
        if cluster.mode == CONFIG_MAP:
            needed = "must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."
            raise AwsError(400, "InvalidRequestException", f"The cluster's authentication mode {needed}")
        return cluster.name

    def _entry(self, asked: Json) -> Json:
        cluster, principal = self._with_entries(asked), asked["principalArn"]
        if principal not in self._entries[cluster]:
            missing = "The specified principalArn could not be found. You can view your available access entries"
            raise AwsError(404, "ResourceNotFoundException", f"{missing}: {principal}")
        return self._entries[cluster][principal]

    def _write(self, cluster: str) -> None:
        # In place, at one stroke: the authenticator watches this very file.
        roles = [_mapping(entry) for entry in self.entries(cluster)]
        text = json.dumps({"LastUpdatedDateTime": str(int(time.time())), "mapRoles": roles})
        (self._folder / f"{cluster}.json").write_text(text)


def _mapping(entry: Json) -> Json:
    # The path of a role is no part of its name here.
    role = _ROLE.sub(r"arn:aws:iam::\1:role/\2", entry["principalArn"])
    return {"rolearn": role, "username": entry["username"], "groups": entry["kubernetesGroups"]}


def _groups(asked: Json) -> list[str]:
    groups: list[str] = asked.get("kubernetesGroups", [])
    for group in groups:
        if group.startswith("system:"):
            raise _invalid(f"The kubernetes group name {group} is invalid, it cannot start with system:")
    return groups


def _invalid(message: str) -> AwsError:
    return AwsError(400, "InvalidParameterException", message)
