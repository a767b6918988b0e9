"""Stand-in for EKS' clusters: moto's endpoint is a made-up host and its certificate authority random text."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import AwsError, BedError
from bed_aws.moto_side import Moto


@dataclass
class Cluster:
    name: str
    endpoint: str
    ca: str
    """base64 of PEM, as EKS gives it"""
    status: str = "ACTIVE"
    created_at: float = field(default_factory=time.time)


@dataclass(frozen=True)
class Override:
    endpoint: str | None
    ca: str | None


class Eks:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._clusters: dict[str, Cluster] = {}
        self._overrides: dict[tuple[str, str], Override] = {}

    def put(self, cluster: Cluster) -> None:
        self._clusters[cluster.name] = cluster

    def override(self, access_key_id: str, cluster: str, override: Override) -> None:
        """Lets one caller see another endpoint, such as a proxy's: tests run side by side."""
        if cluster not in self._clusters:
            raise BedError(f"no cluster {cluster}", 404)
        self._overrides[access_key_id, cluster] = override

    def answer(self, call: Call) -> Response | None:
        if call.action == "ListClusters":
            return Response(json.dumps({"clusters": sorted(self._clusters)}), mimetype="application/json")
        if call.action != "DescribeCluster":
            return None
        name = call.request.path.rpartition("/")[2]
        cluster = self._clusters.get(name)
        if cluster is None:
            raise AwsError(404, "ResourceNotFoundException", f"No cluster found for name: {name}.")
        override = self._overrides.get((call.access_key_id, name), Override(None, None))
        return Response(json.dumps({"cluster": self._described(cluster, override)}), mimetype="application/json")

    def _described(self, cluster: Cluster, override: Override) -> dict[str, Any]:
        described = {
            "name": cluster.name,
            "arn": f"arn:aws:eks:{self._moto.region}:{self._moto.account}:cluster/{cluster.name}",
            "createdAt": cluster.created_at,
            "status": cluster.status,
            "version": "1.36",
            "accessConfig": {"authenticationMode": "API"},
            "resourcesVpcConfig": {"endpointPublicAccess": True, "endpointPrivateAccess": False},
            "tags": {},
        }
        # A cluster that is being created has neither yet.
        if cluster.status != "CREATING":
            described["endpoint"] = override.endpoint or cluster.endpoint
            described["certificateAuthority"] = {"data": override.ca or cluster.ca}
        return described
