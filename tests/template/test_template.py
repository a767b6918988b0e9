"""template.yaml, as CloudFormation gets it: what it lets through, what it allows, and what the function is told."""

import json
import re
import sys
import unittest
from pathlib import Path
from typing import Any

import yaml
from moto.events.models import EventPattern

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from transform import transform  # noqa: E402

TEMPLATE = transform(ROOT / "template.yaml")
PARAMETERS: dict[str, Any] = TEMPLATE["Parameters"]
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
SAMPLES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
# Which rule lets which sample through.
RULES = {
    "DrainSpotInterruption": {"spot-interruption"},
    "DrainCapacityReservationInterruption": {
        "capacity-reservation-interruption",
        "interruptible-capacity-reservation-interruption",
        "capacity-block-interruption",
    },
    "DrainCapacityBlockExpiry": {"capacity-block-expiry"},
    "DrainRebalanceRecommendation": {"rebalance-recommendation"},
    "DrainScheduledMaintenance": {
        "health-scheduled-maintenance",
        "health-scheduled-maintenance-closed",
        "health-scheduled-maintenance-older-form",
        "health-scheduled-maintenance-page-1",
        "health-scheduled-maintenance-page-2",
        "health-scheduled-reboot",
    },
    "DrainStateChange": {
        "state-change-running",
        "state-change-shutting-down",
        "state-change-stopped",
        "state-change-stopping",
        "state-change-terminated",
    },
    "DrainTerminateLifecycleAction": {
        "terminate-lifecycle-action",
        "terminate-from-warm-pool",
        "return-to-warm-pool",
        "replace-root-volume",
    },
    "DrainLaunchLifecycleAction": {"launch-lifecycle-action", "launch-from-warm-pool", "launch-into-warm-pool"},
    "DrainRootVolumeReplaced": {"root-volume-replaced"},
    "DrainContinueDrain": {"drain-continuation", "undo-check"},
}


def properties(logical_id: str) -> dict[str, Any]:
    return RESOURCES[logical_id]["Properties"]


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


def matches(rule: dict[str, Any], event: dict[str, Any]) -> bool:
    return EventPattern.load(json.dumps(rule["EventPattern"])).matches_event(event)


def attribute(logical_id: str, name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [logical_id, name]}


class TheRules(unittest.TestCase):
    def rules_for(self, event: dict[str, Any]) -> list[str]:
        rules = of_type("AWS::Events::Rule")
        return [name for name, rule in rules.items() if matches(rule, event)]

    def test_each_notice_passes_exactly_one_rule(self) -> None:
        self.assertEqual(set(RULES), set(of_type("AWS::Events::Rule")))
        passed = {name: self.rules_for(event) for name, event in SAMPLES.items()}
        self.assertEqual(passed, {name: [rule] for rule, names in RULES.items() for name in names})

    def test_the_neighbours_of_a_notice_pass_none(self) -> None:
        def neighbour(sample: str, detail: dict[str, Any] | None = None, **envelope: Any) -> dict[str, Any]:
            event = SAMPLES[sample]
            return {**event, **envelope, "detail": {**event["detail"], **(detail or {})}}

        transition = {"LifecycleTransition": "autoscaling:TEST_NOTIFICATION"}
        for event in (
            neighbour("spot-interruption", source="my.ec2"),
            neighbour("spot-interruption", **{"detail-type": "EC2 Spot Instance Request Fulfillment"}),
            neighbour("capacity-block-expiry", **{"detail-type": "Capacity Block Reservation Delivered"}),
            neighbour("capacity-block-expiry", **{"detail-type": "EC2 Capacity Reservation Expired"}),
            neighbour("health-scheduled-maintenance", {"service": "RDS"}),
            neighbour("health-scheduled-maintenance", {"eventTypeCategory": "issue"}),
            neighbour("health-scheduled-maintenance", {"eventTypeCategory": "accountNotification"}),
            neighbour("health-scheduled-maintenance", **{"detail-type": "AWS Health Abuse Event"}),
            neighbour("state-change-running", {"state": "pending"}),
            neighbour("terminate-lifecycle-action", transition),
            neighbour("terminate-lifecycle-action", **{"detail-type": "EC2 Instance Terminate Successful"}),
            neighbour("launch-lifecycle-action", transition),
            neighbour("root-volume-replaced", transition),
            neighbour("launch-lifecycle-action", **{"detail-type": "EC2 Instance Launch Successful"}),
            neighbour("drain-continuation", **{"detail-type": "Spillway Receipt"}),
            neighbour("drain-continuation", source="somebody"),
        ):
            with self.subTest(event=event):
                self.assertEqual(self.rules_for(event), [])

    def test_what_aws_words_anew_passes_all_the_same(self) -> None:
        for name, field in (
            ("spot-interruption", "instance-action"),
            ("capacity-reservation-interruption", "instance-action"),
            ("health-scheduled-maintenance", "statusCode"),
            ("terminate-lifecycle-action", "Destination"),
            ("replace-root-volume", "Action"),
            ("root-volume-replaced", "Action"),
        ):
            with self.subTest(notice=name):
                event = SAMPLES[name]
                unknown = {**event, "detail": {**event["detail"], field: "evaporate"}}
                self.assertEqual(self.rules_for(unknown), self.rules_for(event))

    def test_each_rule_invokes_the_function_and_keeps_what_it_cannot_deliver(self) -> None:
        for name, rule in of_type("AWS::Events::Rule").items():
            with self.subTest(rule=name):
                (target,) = rule["Targets"]
                self.assertEqual(target["Arn"], attribute("Drain", "Arn"))
                self.assertEqual(target["DeadLetterConfig"], {"Arn": attribute("Failures", "Arn")})
                self.assertIn("MaximumEventAgeInSeconds", target["RetryPolicy"])
                permission = properties(f"{name}Permission")
                self.assertEqual(permission["SourceArn"], attribute(name, "Arn"))

    def test_no_notice_is_delivered_when_it_is_of_no_use_any_more(self) -> None:
        def age(rule: str) -> int:
            (target,) = properties(rule)["Targets"]
            return target["RetryPolicy"]["MaximumEventAgeInSeconds"]

        self.assertEqual(
            {rule: age(rule) for rule in RULES},
            {
                "DrainSpotInterruption": 120,
                "DrainCapacityReservationInterruption": 120,
                "DrainCapacityBlockExpiry": 600,
                "DrainRebalanceRecommendation": 600,
                "DrainScheduledMaintenance": 86_400,
                "DrainStateChange": 120,
                "DrainTerminateLifecycleAction": 3600,
                "DrainLaunchLifecycleAction": 3600,
                "DrainRootVolumeReplaced": 3600,
                "DrainContinueDrain": 3600,
            },
        )

    def test_a_setting_switches_the_rule_of_each_notice(self) -> None:
        switches = {
            "DrainSpotInterruption": "Spot",
            "DrainCapacityReservationInterruption": "Capacity",
            "DrainCapacityBlockExpiry": "Capacity",
            "DrainRebalanceRecommendation": "Rebalance",
            "DrainScheduledMaintenance": "Maintenance",
            "DrainStateChange": "StateChange",
            "DrainTerminateLifecycleAction": "Terminate",
            "DrainLaunchLifecycleAction": "Launch",
            # What was drained for its root volume is given back, whoever completes launch hooks.
            "DrainRootVolumeReplaced": "Terminate",
        }
        self.assertEqual({*switches, "DrainContinueDrain"}, set(RULES))
        self.assertNotIn("State", properties("DrainContinueDrain"))
        for rule, parameter in switches.items():
            with self.subTest(rule=rule):
                condition = f"Handles{parameter}"
                self.assertEqual(properties(rule)["State"], {"Fn::If": [condition, "ENABLED", "DISABLED"]})
                ignored = {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, "ignore"]}]}
                self.assertEqual(TEMPLATE["Conditions"][condition], ignored)


class TheFunction(unittest.TestCase):
    def test_it_runs_where_it_was_built_for(self) -> None:
        function = properties("Drain")
        self.assertEqual(function["Runtime"], "provided.al2023")
        self.assertEqual(function["Handler"], "bootstrap")
        self.assertEqual(function["Architectures"], [{"Ref": "Architecture"}])

    def test_many_notices_at_once_do_not_wait_for_each_other(self) -> None:
        self.assertNotIn("ReservedConcurrentExecutions", properties("Drain"))

    def test_a_drain_that_goes_on_again_and_again_is_not_taken_for_a_loop(self) -> None:
        self.assertEqual(properties("Drain")["RecursiveLoop"], "Allow")

    def test_it_has_lambdas_longest_time(self) -> None:
        self.assertEqual(properties("Drain")["Timeout"], 900)

    def test_its_last_error_goes_to_the_failure_queue(self) -> None:
        (config,) = of_type("AWS::Lambda::EventInvokeConfig").values()
        self.assertEqual(config["FunctionName"], {"Ref": "Drain"})
        self.assertEqual(config["DestinationConfig"]["OnFailure"]["Destination"], attribute("Failures", "Arn"))

    def test_no_log_level_hides_the_receipts(self) -> None:
        logging = properties("Drain")["LoggingConfig"]
        self.assertEqual(logging["LogFormat"], "JSON")
        self.assertEqual(logging["ApplicationLogLevel"], {"Ref": "LogLevel"})
        self.assertTrue({"WARN", "ERROR", "FATAL"}.isdisjoint(PARAMETERS["LogLevel"]["AllowedValues"]))


class TheParameters(unittest.TestCase):
    """Names and defaults of the settings are compared in functions/drain/src/settings.rs."""

    def test_a_setting_that_the_function_would_refuse_is_refused_before_the_deployment(self) -> None:
        # The page is compared with the function's own table by a test of the function.
        page = (ROOT / "docs/settings.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| `(SPILLWAY_\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
        variables = properties("Drain")["Environment"]["Variables"]
        self.assertGreater(len(rows), 20)
        for name, variable, words in rows:
            with self.subTest(setting=variable):
                parameter = PARAMETERS[name]
                self.assertEqual(variables[variable], {"Ref": name})
                if "AllowedValues" in parameter:
                    self.assertEqual(set(parameter["AllowedValues"]), set(re.split(r", | or ", words)))
                elif "MinValue" in parameter:
                    self.assertIn(f"from {parameter['MinValue']} to {parameter['MaxValue']}", words)
                elif "AllowedPattern" in parameter:
                    self.assertEqual(parameter["ConstraintDescription"], words)
                else:
                    self.assertEqual(parameter["Default"], "", "anything goes, so that nothing must be good")

    def test_a_metrics_namespace_is_checked_before_the_deployment(self) -> None:
        pattern = re.compile(PARAMETERS["MetricsNamespace"]["AllowedPattern"])
        for good in ("Spillway", "Team/Nodes", "a.b-c_d#e:f", "n" * 255):
            self.assertRegex(good, pattern)
        for bad in ("", ":a", "AWS/Lambda", "a b", "n" * 256):
            self.assertNotRegex(bad, pattern)

    def test_every_parameter_is_described_to_who_deploys(self) -> None:
        pages = "".join((ROOT / f"docs/{page}.md").read_text() for page in ("install", "settings"))
        for name, parameter in PARAMETERS.items():
            with self.subTest(parameter=name):
                self.assertTrue(parameter["Description"].strip())
                self.assertIn(f"`{name}`", pages)


class TheRights(unittest.TestCase):
    def setUp(self) -> None:
        self.policies = {}
        for policy in properties("DrainRole")["Policies"]:
            _, policy, _ = policy.get("Fn::If", (None, policy, None))
            self.policies[policy["PolicyName"]] = policy["PolicyDocument"]["Statement"]

    @staticmethod
    def actions(statement: dict[str, Any]) -> list[str]:
        action = statement["Action"]
        return [action] if isinstance(action, str) else action

    def allowed(self, policy: str) -> set[str]:
        return {action for statement in self.policies[policy] for action in self.actions(statement)}

    def test_the_function_may_call_what_it_calls(self) -> None:
        self.assertEqual(
            self.allowed("drain"),
            {
                "ec2:DescribeInstances",
                "eks:DescribeCluster",
                "autoscaling:CompleteLifecycleAction",
                "autoscaling:DescribeLifecycleHooks",
                "autoscaling:DescribeTags",
                "autoscaling:RecordLifecycleActionHeartbeat",
                "events:PutEvents",
                "iam:PassRole",
                "scheduler:CreateSchedule",
                "scheduler:DeleteSchedule",
                "scheduler:UpdateSchedule",
            },
        )

    def test_the_function_may_schedule_in_its_own_group_only_and_hand_its_role_to_scheduler_only(self) -> None:
        (schedules,) = (s for s in self.policies["drain"] if "scheduler:CreateSchedule" in self.actions(s))
        self.assertTrue(schedules["Resource"]["Fn::Sub"].endswith(":schedule/${Schedules}/*"))
        (hand_over,) = (s for s in self.policies["drain"] if self.actions(s) == ["iam:PassRole"])
        self.assertEqual(hand_over["Resource"], attribute("SchedulesRole", "Arn"))
        self.assertEqual(hand_over["Condition"], {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}})
        variables = properties("Drain")["Environment"]["Variables"]
        self.assertEqual(variables["SPILLWAY_SCHEDULES"], {"Fn::Sub": "${Schedules} ${SchedulesRole.Arn}"})

    def test_scheduler_may_put_the_functions_own_events_on_the_bus_for_the_stacks_group_and_no_more(self) -> None:
        role = properties("SchedulesRole")
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        self.assertEqual(trust["Principal"], {"Service": "scheduler.amazonaws.com"})
        self.assertEqual(
            trust["Condition"]["StringEquals"],
            {"aws:SourceAccount": {"Ref": "AWS::AccountId"}, "aws:SourceArn": attribute("Schedules", "Arn")},
        )
        (policy,) = role["Policies"]
        (statement,) = policy["PolicyDocument"]["Statement"]
        (functions_own,) = (s for s in self.policies["drain"] if self.actions(s) == ["events:PutEvents"])
        self.assertEqual(statement, functions_own)

    def test_the_function_may_put_no_event_but_the_one_that_its_rule_routes_back(self) -> None:
        (statement,) = (s for s in self.policies["drain"] if self.actions(s) == ["events:PutEvents"])
        self.assertTrue(statement["Resource"]["Fn::Sub"].endswith(":event-bus/default"))
        source = statement["Condition"]["StringEquals"]["events:source"]
        self.assertEqual([source], properties("DrainContinueDrain")["EventPattern"]["source"])

    def test_lambda_may_deliver_for_it(self) -> None:
        self.assertEqual(self.allowed("deliver"), {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"})
        self.assertEqual(set(self.policies), {"drain", "deliver", "network"})

    def test_no_right_is_wider_than_aws_makes_it(self) -> None:
        for statements in self.policies.values():
            for statement in statements:
                with self.subTest(actions=self.actions(statement)):
                    self.assertNotIn("*", "".join(self.actions(statement)))
                    if statement["Resource"] == "*":
                        # These know no resources, but a condition narrows them.
                        self.assertIn("Condition", statement)
                        self.assertTrue(all(":Describe" in action for action in self.actions(statement)))

    def test_only_our_rules_may_write_to_the_failure_queue(self) -> None:
        allow, deny = properties("FailuresPolicy")["PolicyDocument"]["Statement"]
        rules = [attribute(rule, "Arn") for rule in of_type("AWS::Events::Rule")]
        self.assertCountEqual(allow["Condition"]["ArnEquals"]["aws:SourceArn"], rules)
        self.assertEqual(deny["Effect"], "Deny")

    def test_a_failed_notice_is_kept_for_two_weeks_and_encrypted(self) -> None:
        queue = properties("Failures")
        self.assertEqual(queue["MessageRetentionPeriod"], 14 * 24 * 3600)
        self.assertTrue(queue["SqsManagedSseEnabled"])

    def test_the_access_entry_the_cluster_role_and_the_flow_schemas_speak_of_one_group(self) -> None:
        role, binding = yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
        rights = {(rule["resources"][0], *rule["verbs"]) for rule in role["rules"]}
        self.assertEqual(
            rights,
            {
                ("nodes", "get", "list", "patch"),
                ("pods", "list", "watch", "delete"),
                ("pods/eviction", "create"),
                ("poddisruptionbudgets", "list", "watch"),
                ("nodeclaims", "get", "patch", "delete"),
            },
        )
        (subject,) = binding["subjects"]
        self.assertEqual([subject["name"]], properties("ClusterAccess")["KubernetesGroups"])
        level, *flows = yaml.safe_load_all((ROOT / "deploy/flow-control.yaml").read_text())
        for flow in flows:
            self.assertEqual(flow["spec"]["priorityLevelConfiguration"]["name"], level["metadata"]["name"])
            (rule,) = flow["spec"]["rules"]
            self.assertEqual([group["group"]["name"] for group in rule["subjects"]], [subject["name"]])
        self.assertEqual(RESOURCES["ClusterAccess"]["Condition"], "HasCluster")


class TheAlarms(unittest.TestCase):
    def test_each_says_what_to_do(self) -> None:
        alarms = of_type("AWS::CloudWatch::Alarm")
        self.assertEqual(set(alarms), {"FailuresAlarm", "ErrorsAlarm", "PodsLeftAlarm", "HooksAlarm"})
        for alarm in alarms.values():
            text = alarm["AlarmDescription"]["Fn::Sub"]
            self.assertIn("aws ", text)
            # CloudWatch's limit, with room for the names that are filled in.
            self.assertLess(len(text), 800)
            # No data is no failure: nothing runs between notices.
            self.assertEqual(alarm["TreatMissingData"], "notBreaching")


if __name__ == "__main__":
    unittest.main()
