"""EKS' clusters and access entries, and the file that the authenticator follows."""

import json
from pathlib import Path
from threading import Thread
from typing import Any

from botocore.exceptions import ClientError

from bed_aws.eks import CONFIG_MAP, Cluster, Eks
from tests.side import OnTheSide, bed, moto, state, temporary_folder, until_gone

ROOT = Path(__file__).parents[4]
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
        self.assertEqual(bed("GET", f"clusters/{self.session}/entries"), [])

    def test_take_no_group_of_kubernetes_own(self) -> None:
        said = self.refused("InvalidParameterException", lambda: self.create(kubernetesGroups=["system:masters"]))
        self.assertIn("cannot start with system:", said)

    def test_are_not_for_a_cluster_that_has_its_roles_in_a_config_map(self) -> None:
        state.eks.put(Cluster(self.session, "https://127.0.0.1:1", "Y2E=", mode=CONFIG_MAP))
        self.refused("InvalidRequestException", self.create)

    def test_reach_the_authenticator_without_the_roles_path(self) -> None:
        folder = temporary_folder(self)
        eks = Eks(moto, folder)
        eks.put(Cluster("prod", "", ""))
        file = folder / "prod.json"
        self.assertEqual(json.loads(file.read_text())["mapRoles"], [])
        eks.create("prod", ROLE, ["spillway"], {})
        (mapped,) = json.loads(file.read_text())["mapRoles"]
        self.assertEqual((mapped["rolearn"], mapped["groups"]), ("arn:aws:iam::123456789012:role/spillway-drain", ["spillway"]))
        eks.delete("prod", ROLE)
        self.assertEqual(json.loads(file.read_text())["mapRoles"], [])


class SomebodyWhoWaits(OnTheSide):
    def test_gets_the_functions_own_answer(self) -> None:
        bed("POST", "served", function="asked")
        answers: list[Any] = []

        def invoke() -> None:
            answer = self.client("lambda").invoke(FunctionName="asked", Payload=b'{"n": 1}')
            answers.append((json.load(answer["Payload"]), answer.get("FunctionError")))

        for failed, error in ((False, None), (True, "Unhandled")):
            waits = Thread(target=invoke)
            waits.start()
            asked = bed("POST", "asked", function="asked", wait_s=10)
            self.assertEqual(asked["event"], {"n": 1})
            bed("POST", "said", id=asked["id"], result={"m": 2}, failed=failed)
            waits.join()
            self.assertEqual(answers.pop(), ({"m": 2}, error))


class Hooks(OnTheSide):
    def test_are_put_and_taken_off_and_hold_what_ends_then(self) -> None:
        autoscaling, group = self.client("autoscaling"), self.id().rpartition(".")[2]
        instance = self.instance()
        of_group = {"AutoScalingGroupName": group, "LifecycleHookName": "spillway"}
        terminating = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING", "DefaultResult": "CONTINUE"}
        autoscaling.put_lifecycle_hook(**of_group, **terminating, HeartbeatTimeout=300)
        (hook,) = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]
        self.assertEqual((hook["HeartbeatTimeout"], hook["GlobalTimeout"], hook["DefaultResult"]), (300, 30000, "CONTINUE"))
        bed("POST", "moves", instance_id=instance, move="terminate")
        (told,) = autoscaling.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
        self.assertEqual((told["AutoScalingGroupName"], told["LifecycleState"]), (group, "Terminating:Wait"))
        autoscaling.delete_lifecycle_hook(**of_group)
        self.assertEqual(bed("GET", f"groups/{group}")["hooks"], [])
        until_gone(instance)

    def test_of_a_group_come_with_tags(self) -> None:
        autoscaling, group = self.client("autoscaling"), self.id().rpartition(".")[2]
        bed("POST", "groups", name=group, hooks=[])
        tag = {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": "team"}
        autoscaling.create_or_update_tags(Tags=[{**tag, "Value": "shop", "PropagateAtLaunch": False}])
        self.assertEqual(bed("GET", f"groups/{group}")["tags"], {"team": "shop"})
        autoscaling.delete_tags(Tags=[tag])
        self.assertEqual(bed("GET", f"groups/{group}")["tags"], {})
