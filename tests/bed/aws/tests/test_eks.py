"""EKS' clusters and access entries, and the file that the authenticator follows."""

from typing import Any

from botocore.exceptions import ClientError

from bed_aws.eks import CONFIG_MAP, Cluster
from tests.side import OnTheSide, bed, state


ROLE = "arn:aws:iam::123456789012:role/team/spillway-drain"


class AccessEntries(OnTheSide):
    def setUp(self) -> None:
        super().setUp()
        state.eks.put(Cluster(self.session, "https://127.0.0.1:1", "Y2E="))
        self.of_role = {"clusterName": self.session, "principalArn": ROLE}

    def create(self, **more: Any) -> dict[str, Any]:
        entry: dict[str, Any] = self.client("eks").create_access_entry(**self.of_role, **more)["accessEntry"]
        return entry

    def refused(self, code: str, call: Any) -> str:
        with self.assertRaises(ClientError) as caught:
            call()
        self.assertEqual(caught.exception.response["Error"]["Code"], code)
        return str(caught.exception)

    def test_live_as_they_do_in_eks(self) -> None:
        eks = self.client("eks")
        self.refused("ResourceNotFoundException", lambda: eks.describe_access_entry(**self.of_role))
        made = self.create(kubernetesGroups=["spillway"], tags={"a": "b"})
        self.assertEqual(eks.describe_access_entry(**self.of_role)["accessEntry"], made)
        self.assertEqual((made["kubernetesGroups"], made["tags"], made["type"]), (["spillway"], {"a": "b"}, "STANDARD"))
        self.refused("ResourceInUseException", self.create)
        eks.update_access_entry(**self.of_role, kubernetesGroups=["other"])
        eks.tag_resource(resourceArn=made["accessEntryArn"], tags={"c": "d"})
        changed = eks.describe_access_entry(**self.of_role)["accessEntry"]
        self.assertEqual((changed["kubernetesGroups"], changed["tags"]), (["other"], {"a": "b", "c": "d"}))
        eks.delete_access_entry(**self.of_role)
        self.assertEqual(bed("access_entries", cluster=self.session), [])

    def test_take_no_group_of_kubernetes_own(self) -> None:
        said = self.refused("InvalidParameterException", lambda: self.create(kubernetesGroups=["system:masters"]))
        self.assertIn("cannot start with system:", said)

    def test_cluster_with_a_config_map_has_no_access_entries(self) -> None:
        state.eks.put(Cluster(self.session, "https://127.0.0.1:1", "Y2E=", mode=CONFIG_MAP))
        self.refused("InvalidRequestException", self.create)
