"""What tools/spillway enroll decides: for access entries, objects, hooks and nodes, in both directions."""

import json
import unittest
from datetime import datetime, timezone
from typing import Any

from tests.enrollment import ROLE, cluster, group, hook, managed, stack, told

from cluster_enrollment import access, groups, nodes, objects
from cluster_enrollment.groups import Group
from cluster_enrollment.nodes import Instance
from cluster_enrollment.step import State

OURS = {"kubernetesGroups": ["spillway"], "tags": {"spillway/enrolled": "spillway"}}
THEIRS = {"kubernetesGroups": ["spillway", "other"]}
OF_ROLE = f"--cluster-name prod --principal-arn {ROLE}"


class TheAccessEntry(unittest.TestCase):
    CREATE = f"aws eks create-access-entry {OF_ROLE} --kubernetes-groups spillway --tags spillway/enrolled=spillway"
    UPDATE = f"aws eks update-access-entry {OF_ROLE} --kubernetes-groups other spillway"
    DELETE = f"aws eks delete-access-entry {OF_ROLE}"

    def test_own_entry_is_made_and_removed_and_no_other(self) -> None:
        without = {"kubernetesGroups": ["other"]}
        for does, entry, state, commands in (
            (access.enroll, None, "to do", [self.CREATE]),
            (access.enroll, OURS, "there", []),
            (access.enroll, THEIRS, "there", []),
            # No IAM condition limits the groups of an update.
            (access.enroll, {**OURS, **without}, "told", [self.UPDATE]),
            (access.enroll, {**THEIRS, **without}, "told", [self.UPDATE]),
            (access.remove, None, "there", []),
            (access.remove, OURS, "to do", [self.DELETE]),
            (access.remove, THEIRS, "told", [self.DELETE]),
            (access.remove, {**OURS, "tags": {"spillway/enrolled": "another"}}, "told", [self.DELETE]),
        ):
            self.assertEqual(told(does(cluster(), stack(), entry, None)), (state, commands), (does, entry))

    def test_config_map_cluster_gets_a_line_to_add(self) -> None:
        old = cluster(mode="CONFIG_MAP")
        state, (_, line) = told(access.enroll(old, stack(), None, "- rolearn: another"))
        # aws-auth knows roles without their path.
        arn = "arn:aws:iam::111122223333:role/spillway-DrainRole-1A"
        self.assertEqual((state, line), ("told", f"- {{rolearn: {arn}, username: 'spillway:{{{{SessionName}}}}', groups: [spillway]}}"))
        for does, aws_auth, wanted in (
            (access.enroll, line, State.THERE),
            (access.enroll, None, State.TOLD),
            (access.remove, line, State.TOLD),
            (access.remove, "- rolearn: another", State.THERE),
            (access.remove, None, State.TOLD),
        ):
            self.assertEqual(does(old, stack(), None, aws_auth).state, wanted, (does, aws_auth))


ROLE_OBJECT = {"kind": "ClusterRole", "metadata": {"name": "spillway"}, "rules": [{"verbs": ["get"]}]}
OLDER = {**ROLE_OBJECT, "rules": [{"verbs": ["get", "list"]}]}
US = (objects.MANAGER, "Apply")
FILE = objects.DEPLOY / "rbac.yaml"


class AnObject(unittest.TestCase):
    def test_absent_object_is_applied_without_force(self) -> None:
        step = objects.enroll(ROLE_OBJECT, FILE, None, None)
        self.assertEqual(told(step), ("to do", ["kubectl apply --server-side --field-manager=spillway-enroll --filename=-"]))

    def test_own_object_is_updated_and_no_other(self) -> None:
        foreign = [("kubectl-client-side-apply", "Update"), ("kustomize-controller", "Apply"), ("terraform", "Update")]
        for live, after, state in (
            (managed(OLDER, US), managed(ROLE_OBJECT, US), State.TO_DO),
            (managed(ROLE_OBJECT, US), {**managed(ROLE_OBJECT, US), "status": {}}, State.THERE),
            (managed(OLDER, US, ("kubectl-edit", "Update")), "conflict with kubectl-edit", State.TOLD),
            *((managed(ROLE_OBJECT, who), None, State.THERE) for who in foreign),
            *((managed(OLDER, who), None, State.TOLD) for who in foreign),
        ):
            step = objects.enroll(ROLE_OBJECT, FILE, live, after)
            self.assertEqual((step.state, isinstance(after, str)), (state, "kubectl-edit" in step.why), live)

    def test_default_of_the_server_is_no_difference(self) -> None:
        self.assertTrue(objects.covers({"a": [{"b": 1, "default": 2}], "status": {}}, {"a": [{"b": 1}]}))
        self.assertFalse(objects.covers({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}]}), "a right more")
        self.assertFalse(objects.covers({"a": 1}, {"b": 1}))

    def test_object_without_other_manager_is_deleted(self) -> None:
        status, edited = ("api-priority-and-fairness-config-consumer-v1", "Apply", "status"), ("kubectl-edit", "Update")
        self.assertEqual(told(objects.remove(managed(ROLE_OBJECT, US, status, edited))), ("to do", ["kubectl delete ClusterRole spillway"]))
        by_hand = ("kubectl-client-side-apply", "Update")
        for managers in ((US, ("kustomize-controller", "Apply")), (by_hand,), (US, by_hand)):
            self.assertEqual(objects.remove(managed(ROLE_OBJECT, *managers)).state, State.TOLD, managers)

    def test_parameters_decide_which_files_are_applied(self) -> None:
        def names(extra: list[str], **parameters: str) -> set[str]:
            return {file.name for file, wanted in objects.files(stack(**parameters), extra).items() if wanted}

        there = {*objects.DEPLOY.glob("*.yaml"), *objects.DEPLOY.glob("optional/*.yaml")}
        self.assertEqual(set(objects.files(stack(), [])), there)
        self.assertEqual(names([]), {"rbac.yaml"})
        with_all = {"rbac.yaml", "node-events.yaml", "karpenter.yaml"}
        self.assertEqual(names([], NodeEvents="true", Karpenter="nodeclaim"), with_all)
        self.assertEqual(names(["flow-control.yaml"], NodeEvents="false"), {"rbac.yaml", "flow-control.yaml"})


class AHook(unittest.TestCase):
    PUT = (
        "aws autoscaling put-lifecycle-hook --auto-scaling-group-name workers --lifecycle-hook-name spillway "
        "--lifecycle-transition autoscaling:EC2_INSTANCE_TERMINATING --heartbeat-timeout 600 --default-result CONTINUE"
    )

    def decided(self, *hooks: dict[str, Any], **parameters: str) -> list[tuple[str, list[str]]]:
        return [told(step) for step in groups.enroll(group(), list(hooks), stack(**parameters))]

    def test_hook_is_put_under_the_stacks_first_name(self) -> None:
        self.assertEqual(self.decided(), [("to do", [self.PUT])])
        other = hook("another-tools")
        self.assertEqual(self.decided(other, Hooks="drain, spillway"), [("to do", [self.PUT.replace("name spillway", "name drain")])])
        self.assertEqual(self.decided(hook("b"), Hooks="a,b"), [("there", [])])

    def test_hook_with_other_values_is_left(self) -> None:
        launch = {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}
        for values in ({"HeartbeatTimeout": 60}, {"DefaultResult": "ABANDON"}, {"NotificationTargetARN": "arn:aws:sqs:::q"}, launch):
            ((state, _),) = self.decided(hook(**values))
            self.assertEqual(state, "told", values)

    def test_retaining_group_gets_abandon(self) -> None:
        triggers = {"RetentionTriggers": {"TerminateHookAbandon": "retain"}}
        keeps = Group.of({"AutoScalingGroupName": "workers", "InstanceLifecyclePolicy": triggers})
        (step,) = groups.enroll(keeps, [], stack())
        self.assertEqual(told(step), ("to do", [self.PUT.replace("CONTINUE", "ABANDON")]))
        for default, enrolled, removed in (("ABANDON", State.THERE, State.TO_DO), ("CONTINUE", State.TOLD, State.TOLD)):
            (step,) = groups.enroll(keeps, [hook(DefaultResult=default)], stack())
            self.assertEqual(step.state, enrolled, "CONTINUE ends an instance that the group would keep")
            (step,) = groups.remove(keeps, [hook(DefaultResult=default)], stack())
            self.assertEqual(step.state, removed)

    def test_group_without_managed_tag_is_skipped(self) -> None:
        """A hook that nobody completes delays the end of each instance."""
        with_tag = Group("g", {"kubernetes.io/cluster/prod": "owned", "spillway/managed": "no"})
        for asked, one, wanted in (
            ("spillway/managed", group(), State.TOLD),
            ("spillway/managed", with_tag, State.TO_DO),
            ("spillway/managed=yes", with_tag, State.TOLD),
            ("spillway/managed=no", with_tag, State.TO_DO),
            ("spillway/managed=", with_tag, State.TOLD),
        ):
            (step,) = groups.enroll(one, [], stack(ManagedTag=asked))
            self.assertEqual(step.state, wanted, asked)
            self.assertTrue(step.state is State.TO_DO or "ManagedTag" in step.why)

    def test_needs_one_cluster(self) -> None:
        of_two = Group("g", {"kubernetes.io/cluster/prod": "owned", "kubernetes.io/cluster/stage": "shared"})
        (step,) = groups.enroll(of_two, [], stack())
        self.assertEqual(step.state, State.TOLD)
        self.assertIn("prod and stage", step.why)

    def test_hook_group_tag_comes_before_the_hook(self) -> None:
        tag, _ = self.decided(HookGroupTag="team=shop")
        self.assertEqual(tag[0], "to do")
        put = json.loads(groups.enroll(group(), [], stack(HookGroupTag="team=shop"))[0].commands[0].arguments[-1])
        self.assertEqual({one["Key"]: one["Value"] for one in put}, {"team": "shop", "spillway/enrolled": "spillway"})
        others = Group("g", {"kubernetes.io/cluster/prod": "owned", "team": "kitchen"})
        self.assertEqual(groups.enroll(others, [], stack(HookGroupTag="team=shop"))[0].state, State.TOLD)

    def test_replacement_tag_reaches_instances_and_is_removed(self) -> None:
        tag, hook_put = groups.enroll(group(), [], stack(), replace_first=True)
        self.assertEqual((tag.what, tag.state), ("tag spillway:replace=true of group workers", State.TO_DO))
        self.assertIn('"PropagateAtLaunch": true', str(tag.commands))
        self.assertEqual(hook_put.what, "hook spillway of group workers")
        tagged = Group("workers", {"spillway:replace": "true"})
        self.assertEqual(groups.enroll(tagged, [], stack(), replace_first=True)[0].state, State.THERE)
        self.assertEqual([step.what for step in groups.enroll(tagged, [], stack())], ["hook spillway of group workers"])
        self.assertEqual([step.what for step in groups.remove(tagged, [], stack())], ["tag spillway:replace of group workers"])

    def test_own_hook_without_waiting_instance_is_deleted(self) -> None:
        delete = "aws autoscaling delete-lifecycle-hook --auto-scaling-group-name workers --lifecycle-hook-name spillway"
        (step,) = groups.remove(group(), [hook(), hook("others")], stack())
        self.assertEqual(told(step), ("to do", [delete]))
        for values in ({"HeartbeatTimeout": 300}, {"LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING"}):
            (step,) = groups.remove(group(), [hook(**values)], stack())
            self.assertEqual((step.state, step.drains), (State.TOLD, False), values)
        (step,) = groups.remove(group(instances={"i-1": "Terminating:Wait"}), [hook()], stack())
        self.assertEqual((step.state, step.drains), (State.TOLD, True))
        (step,) = groups.remove(group(instances={"i-1": "Terminating:Retained"}), [hook()], stack())
        self.assertEqual(told(step), ("to do", [delete]), "the group keeps it")

    def test_leaves_no_tag_of_ours_and_takes_none_of_others(self) -> None:
        marked = Group("g", {"team": "shop", "spillway/enrolled": "spillway"})
        (step,) = groups.remove(marked, [], stack(HookGroupTag="team=shop"))
        self.assertEqual([one["Key"] for one in json.loads(step.commands[0].arguments[-1])], ["team", "spillway/enrolled"])
        self.assertEqual(groups.remove(Group("g", {"team": "shop"}), [], stack(HookGroupTag="team=shop")), [])
        drains = Group("g", marked.tags, {"i-1": "Terminating:Wait"})
        states = [step.state for step in groups.remove(drains, [hook()], stack(HookGroupTag="team=shop"))]
        self.assertEqual(states, [State.TOLD, State.TOLD], "IAM lets no hook of a group without the tag be completed")

    def test_group_belongs_to_a_cluster_by_tags_else_by_its_nodes(self) -> None:
        key, up = "kubernetes.io/cluster/prod", {"i-1": "InService"}
        for tags in ({key: "owned"}, {key: "shared"}, {"eks:cluster-name": "prod"}, {"aws:eks:cluster-name": "prod"}):
            self.assertTrue(Group("g", tags).is_of("prod", set()), tags)
            self.assertFalse(Group("g", tags, up).is_of("stage", {"i-1"}), tags)
        self.assertFalse(Group("g", {key: "no"}).is_of("prod", set()))
        for instance, belongs in (("i-1", True), ("i-3", False)):
            self.assertEqual(Group("g", {}, up).is_of("prod", {instance, "i-2"}), belongs)


NOW = datetime(2026, 11, 24, 12, tzinfo=timezone.utc)
UP = Instance("running", "InService")


def node(notice: str, cordoned_by: str = "spillway", **claim: Any) -> dict[str, Any]:
    text = json.dumps({"event": "e", "request": "r", "notice": notice, "cordoned": True, **claim})
    fields = {"manager": cordoned_by, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    metadata = {"name": "n", "resourceVersion": "7", "annotations": {"spillway/claim": text}, "managedFields": [fields], "labels": {}}
    return {"metadata": metadata, "spec": {"providerID": "aws:///eu-central-1a/i-1", "unschedulable": True, "taints": []}}


class ANode(unittest.TestCase):
    def decided(self, one: dict[str, Any], instance: Instance) -> tuple[State, bool]:
        step = nodes.remove(one, instance, NOW)
        return step.state, step.drains

    def test_is_given_back_if_its_instance_stays(self) -> None:
        back, drains, over = (State.TO_DO, False), (State.TOLD, True), (State.THERE, False)
        late, soon = "2026-11-24T11:00:00Z", "2026-11-24T12:01:00.5Z"
        for one, instance, wanted in (
            (node("rebalance recommendation", until=soon), UP, back),
            (node("rebalance recommendation"), Instance("running"), back),
            (node("rebalance recommendation"), Instance("running", "Terminating:Wait"), drains),
            (node("rebalance recommendation"), Instance("shutting-down"), drains),
            (node("scheduled maintenance"), UP, back),
            (node("scheduled maintenance"), Instance("running", "InService", True), drains),
            (node("spot interruption", until=soon), UP, drains),
            (node("spot interruption", until=late), UP, back),
            (node("terminate lifecycle action"), Instance("running", "Terminating:Wait"), drains),
            (node("terminate lifecycle action"), UP, back),
            (node("instance stopping"), Instance("stopped", "InService"), over),
            (node("spot interruption"), Instance(), over),
        ):
            with self.subTest(claim=one["metadata"]["annotations"], instance=instance):
                self.assertEqual(self.decided(one, instance), wanted)

    def test_unreadable_claim_is_reported(self) -> None:
        one = node("x")
        for text in ("{", "[]", "{}"):
            one["metadata"]["annotations"]["spillway/claim"] = text
            self.assertEqual(self.decided(one, UP), (State.TOLD, False))

    def paths(self, one: dict[str, Any]) -> list[str]:
        (command,) = nodes.remove(one, UP, NOW).commands
        patch = json.loads(command.arguments[-1].removeprefix("--patch="))  # type: ignore[union-attr]
        self.assertEqual(patch[0], {"op": "test", "path": "/metadata/resourceVersion", "value": "7"})
        return [operation["path"] for operation in patch[1:]]

    def test_loses_our_marks_and_keeps_those_of_others(self) -> None:
        claim, cordon = "/metadata/annotations/spillway~1claim", "/spec/unschedulable"
        one = node("rebalance recommendation", taints=["spillway/a=b:NoSchedule", "k:NoSchedule"])
        self.assertEqual(self.paths(one), [claim, cordon])
        one["spec"]["taints"] = [
            {"key": "spillway/a", "value": "b", "effect": "NoSchedule"},
            {"key": "theirs", "effect": "NoSchedule"},
            {"key": "k", "effect": "NoSchedule"},
        ]
        one["metadata"]["labels"] = {nodes.EXCLUDED: "spillway"}
        label = "/metadata/labels/node.kubernetes.io~1exclude-from-external-load-balancers"
        self.assertEqual(self.paths(one), ["/spec/taints/2", "/spec/taints/0", claim, label, cordon])
        one["metadata"]["labels"] = {nodes.EXCLUDED: "theirs"}
        self.assertNotIn(label, self.paths(one))

    def test_foreign_cordon_is_kept(self) -> None:
        self.assertNotIn("/spec/unschedulable", self.paths(node("rebalance recommendation", cordoned=False)))
        self.assertNotIn("/spec/unschedulable", self.paths(node("rebalance recommendation", cordoned_by="kubectl-cordon")))


if __name__ == "__main__":
    unittest.main()
