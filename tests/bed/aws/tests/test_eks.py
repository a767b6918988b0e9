"""EKS' access entries, and what EKS refuses of them."""

from bed_aws.eks import CONFIG_MAP, Cluster
from tests.side import OnTheSide, bed, state

ROLE = "arn:aws:iam::123456789012:role/team/spillway-drain"


class AccessEntries(OnTheSide):
    def test_access_entry_is_created_changed_and_deleted_as_in_eks(self) -> None:
        state.eks.put(Cluster(self.session, "https://127.0.0.1:1", "Y2E="))
        eks, of_role = self.client("eks"), {"clusterName": self.session, "principalArn": ROLE}
        create = eks.create_access_entry
        self.assert_refused("ResourceNotFoundException", "could not be found", eks.describe_access_entry, **of_role)
        own = {**of_role, "kubernetesGroups": ["system:masters"]}
        self.assert_refused("InvalidParameterException", "cannot start with system:", create, **own)
        made = create(**of_role, kubernetesGroups=["spillway"], tags={"a": "b"})["accessEntry"]
        self.assert_refused("ResourceInUseException", "already in use", create, **of_role)
        eks.update_access_entry(**of_role, kubernetesGroups=["other"])
        eks.tag_resource(resourceArn=made["accessEntryArn"], tags={"c": "d"})
        changed = {**made, "kubernetesGroups": ["other"], "tags": {"a": "b", "c": "d"}}
        self.assertEqual(eks.describe_access_entry(**of_role)["accessEntry"], changed)
        eks.delete_access_entry(**of_role)
        self.assertEqual(bed("access_entries", cluster=self.session), [])
        state.eks.put(Cluster(self.session, "https://127.0.0.1:1", "Y2E=", mode=CONFIG_MAP))
        self.assert_refused("InvalidRequestException", "authentication mode", create, **of_role)
