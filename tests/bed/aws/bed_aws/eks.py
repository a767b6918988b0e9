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
from urllib.parse import unquote

from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.moto_side import Moto

API, BOTH, CONFIG_MAP = "API", "API_AND_CONFIG_MAP", "CONFIG_MAP"
_ROLE = re.compile(r"arn:aws:iam::(\d{12}):role/(?:.*/)?([^/]+)")


@dataclass
class Cluster:
    name: str
    endpoint: str
    ca: str
    """base64 of PEM, as EKS gives it"""
    status: str = "ACTIVE"
    mode: str = API
    tags: dict[str, str] = field(default_factory=dict)
    public: bool = True
    created_at: float = field(default_factory=time.time)


@dataclass
class Entry:
    principal: str
    arn: str
    groups: list[str]
    tags: dict[str, str]
    created_at: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Override:
    endpoint: str | None
    ca: str | None


class Eks:
    def __init__(self, moto: Moto, folder: Path | None = None) -> None:
        """`folder`: where the file of each cluster's entries is."""
        self._moto = moto
        self._folder = folder
        self._clusters: dict[str, Cluster] = {}
        self._entries: dict[str, dict[str, Entry]] = {}
        self._overrides: dict[tuple[str, str], Override] = {}

    def put(self, cluster: Cluster) -> None:
        self._clusters[cluster.name] = cluster
        self._entries.setdefault(cluster.name, {})
        self._write(cluster.name)

    def remove(self, name: str) -> None:
        """Hides it: its control plane runs on."""
        del self._clusters[name]

    def override(self, access_key_id: str, cluster: str, override: Override) -> None:
        """Lets one caller see another endpoint, such as a proxy's: tests run side by side."""
        if cluster not in self._clusters:
            raise BedError(f"no cluster {cluster}", 404)
        self._overrides[access_key_id, cluster] = override

    def entries(self, cluster: str) -> list[dict[str, Any]]:
        return [_described(entry, cluster) for entry in self._entries[cluster].values()]

    def create(self, cluster: str, principal: str, groups: list[str], tags: dict[str, str]) -> Entry:
        if not (role := _ROLE.fullmatch(principal)):
            raise _invalid(f"The specified principalArn is invalid: {principal}")
        if principal in self._entries[cluster]:
            raise AwsError(409, "ResourceInUseException", "The specified access entry resource is already in use on this cluster.")
        kind = f"{self._moto.region}:{self._moto.account}:access-entry/{cluster}/role/{role[1]}/{role[2]}/{uuid.uuid4()}"
        entry = self._entries[cluster][principal] = Entry(principal, f"arn:aws:eks:{kind}", groups, tags)
        self._write(cluster)
        return entry

    def delete(self, cluster: str, principal: str) -> None:
        del self._entries[cluster][principal]
        self._write(cluster)

    def answer(self, call: Call) -> Response | None:
        answers = {
            "ListClusters": self._list,
            "DescribeCluster": self._describe,
            "CreateAccessEntry": self._create_entry,
            "DescribeAccessEntry": self._describe_entry,
            "UpdateAccessEntry": self._update_entry,
            "DeleteAccessEntry": self._delete_entry,
            "TagResource": self._tag,
        }
        if call.action not in answers:
            return None
        parts = [unquote(part) for part in call.request.path.strip("/").split("/")]
        answered = answers[call.action](call, parts)
        return Response(json.dumps(answered), mimetype="application/json")

    def _list(self, call: Call, parts: list[str]) -> dict[str, Any]:
        return {"clusters": sorted(self._clusters)}

    def _describe(self, call: Call, parts: list[str]) -> dict[str, Any]:
        cluster = self._cluster(parts)
        override = self._overrides.get((call.access_key_id, cluster.name), Override(None, None))
        described = {
            "name": cluster.name,
            "arn": f"arn:aws:eks:{self._moto.region}:{self._moto.account}:cluster/{cluster.name}",
            "createdAt": cluster.created_at,
            "status": cluster.status,
            "version": "1.36",
            "accessConfig": {"authenticationMode": cluster.mode},
            "resourcesVpcConfig": {"endpointPublicAccess": cluster.public, "endpointPrivateAccess": not cluster.public},
            "tags": cluster.tags,
        }
        # A cluster that is being created has neither yet.
        if cluster.status != "CREATING":
            described["endpoint"] = override.endpoint or cluster.endpoint
            described["certificateAuthority"] = {"data": override.ca or cluster.ca}
        return {"cluster": described}

    def _create_entry(self, call: Call, parts: list[str]) -> dict[str, Any]:
        cluster, asked = self._with_entries(parts), call.request.get_json()
        entry = self.create(cluster.name, asked["principalArn"], _groups(asked), asked.get("tags", {}))
        return {"accessEntry": _described(entry, cluster.name)}

    def _describe_entry(self, call: Call, parts: list[str]) -> dict[str, Any]:
        return {"accessEntry": _described(self._entry(parts), parts[1])}

    def _update_entry(self, call: Call, parts: list[str]) -> dict[str, Any]:
        entry = self._entry(parts)
        entry.groups = _groups(call.request.get_json())
        self._write(parts[1])
        return {"accessEntry": _described(entry, parts[1])}

    def _delete_entry(self, call: Call, parts: list[str]) -> dict[str, Any]:
        self.delete(parts[1], self._entry(parts).principal)
        return {}

    def _tag(self, call: Call, parts: list[str]) -> dict[str, Any]:
        arn = unquote(call.request.path.removeprefix("/tags/"))
        for entries in self._entries.values():
            for entry in entries.values():
                if entry.arn == arn:
                    entry.tags |= call.request.get_json()["tags"]
                    return {}
        raise AwsError(404, "NotFoundException", f"Resource {arn} was not found")

    def _cluster(self, parts: list[str]) -> Cluster:
        if parts[1] not in self._clusters:
            raise AwsError(404, "ResourceNotFoundException", f"No cluster found for name: {parts[1]}.")
        return self._clusters[parts[1]]

    def _with_entries(self, parts: list[str]) -> Cluster:
        cluster = self._cluster(parts)
        if cluster.mode == CONFIG_MAP:
            mode = "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation."
            raise AwsError(400, "InvalidRequestException", mode)
        return cluster

    def _entry(self, parts: list[str]) -> Entry:
        # The ARN has slashes.
        cluster, principal = self._with_entries(parts), "/".join(parts[3:])
        if principal not in self._entries[cluster.name]:
            missing = f"The specified principalArn could not be found. You can view your available access entries: {principal}"
            raise AwsError(404, "ResourceNotFoundException", missing)
        return self._entries[cluster.name][principal]

    def _write(self, cluster: str) -> None:
        if self._folder is None:
            return
        roles = [_mapping(entry) for entry in self._entries[cluster].values()]
        # In place, at one stroke: the authenticator watches this very file.
        (self._folder / f"{cluster}.json").write_text(json.dumps({"LastUpdatedDateTime": str(int(time.time())), "mapRoles": roles}))


def _mapping(entry: Entry) -> dict[str, Any]:
    account, name = _ROLE.fullmatch(entry.principal).groups()  # type: ignore[union-attr]
    username = f"arn:aws:sts::{account}:assumed-role/{name}/{{{{SessionName}}}}"
    return {"rolearn": f"arn:aws:iam::{account}:role/{name}", "username": username, "groups": entry.groups}


def _groups(asked: dict[str, Any]) -> list[str]:
    groups: list[str] = asked.get("kubernetesGroups", [])
    for group in groups:
        if group.startswith("system:"):
            raise _invalid(f"The kubernetes group name {group} is invalid, it cannot start with system:")
    return groups


def _described(entry: Entry, cluster: str) -> dict[str, Any]:
    return {
        "clusterName": cluster,
        "principalArn": entry.principal,
        "accessEntryArn": entry.arn,
        "kubernetesGroups": entry.groups,
        "createdAt": entry.created_at,
        "modifiedAt": entry.created_at,
        "tags": entry.tags,
        "type": "STANDARD",
        "username": _mapping(entry)["username"],
    }


def _invalid(message: str) -> AwsError:
    return AwsError(400, "InvalidParameterException", message)
