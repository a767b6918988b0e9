"""template.yaml, as CloudFormation gets it: what it lets through, what it allows, and what the function is told."""

import json
import re
import sys
import unittest
from pathlib import Path
from typing import Any

import yaml
from bed_aws.iam import Deployed, policies_of
from bed_aws.intrinsics import Intrinsics
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler
from bed_aws.rules import KNOWN as STACK, WIDEST
from bed_aws.template import TemplateError
from cfnlint.helpers import REGIONS
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from transform import transform  # noqa: E402

TEMPLATE = transform(ROOT / "template.yaml")
PARAMETERS: dict[str, Any] = TEMPLATE["Parameters"]
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
MOTO = Moto("123456789012", "us-east-1")
SAMPLES = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
# Which rule lets which sample through.
RULES = {
    "DrainInterruption": {
        "spot-interruption",
        "capacity-reservation-interruption",
        "interruptible-capacity-reservation-interruption",
        "capacity-block-interruption",
        *(f"state-change-{state}" for state in ("stopping", "stopped", "shutting-down", "terminated", "running")),
    },
    "DrainCapacityBlockAndRebalance": {"capacity-block-expiry", "rebalance-recommendation"},
    "DrainLifecycleAction": {
        "terminate-lifecycle-action",
        "terminate-from-warm-pool",
        "return-to-warm-pool",
        "replace-root-volume",
        "launch-lifecycle-action",
        "launch-into-warm-pool",
        "launch-from-warm-pool",
        "root-volume-replaced",
    },
    "DrainScheduledMaintenance": {
        "health-scheduled-maintenance",
        "health-scheduled-maintenance-closed",
        "health-scheduled-maintenance-older-form",
        "health-scheduled-maintenance-page-1",
        "health-scheduled-maintenance-page-2",
        "health-scheduled-reboot",
        "health-expedited-retirement",
        "health-flexible-reboot",
        "health-dedicated-host",
    },
    "DrainDeployed": {"stack-deployed"},
}
# Rules without a pattern: the schedules, with the sample that each sends.
SCHEDULES = {"DrainSelfTest": "doctor", "DrainMaintenanceLookup": "maintenance-lookup"}
# Samples that no rule lets through: schedules, people and the function itself invoke the function with them.
ASKED = {"doctor", "drain-continuation", "maintenance-lookup", "undo-check"}
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:team/webhook-AbCd12"
# The functions, and what the binary of each is called.
FUNCTIONS = {"Drain": "spillway-drain", "Announcer": "spillway-announce"}


def properties(logical_id: str) -> dict[str, Any]:
    return RESOURCES[logical_id]["Properties"]


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {name: resource["Properties"] for name, resource in RESOURCES.items() if resource["Type"] == kind}


def patterns(parameters: dict[str, str] = WIDEST) -> dict[str, dict[str, Any]]:
    """The pattern of each enabled rule that has one, in a stack with such parameters."""
    stack = Intrinsics(TEMPLATE, parameters, STACK)
    rules = of_type("AWS::Events::Rule").items()
    return {
        name: stack.value(rule["EventPattern"])
        for name, rule in rules
        if name not in SCHEDULES and stack.value(rule.get("State", "ENABLED")) == "ENABLED"
    }


def holds(condition: Any, parameters: dict[str, str]) -> bool:
    """The result of a condition, or of an assertion of a rule, in a stack with such parameters."""
    return Intrinsics(TEMPLATE, parameters, STACK).holds(condition)


def matches(pattern: dict[str, Any], event: dict[str, Any]) -> bool:
    return Ruler({"the": pattern}).rules_for(event) == ["the"]


def statements(role: str, parameters: dict[str, str]) -> list[dict[str, Any]]:
    """All that a role may in a stack with such parameters."""
    function = "Announcer" if role == "AnnouncerRole" else "Drain"
    found = policies_of(TEMPLATE, role, Deployed(function, role, function, parameters), MOTO)
    return [statement for policy in found for statement in policy["policy"]["Statement"]]


def actions(statement: dict[str, Any]) -> list[str]:
    return [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]


def attribute(logical_id: str, name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [logical_id, name]}


def refused_by(parameters: dict[str, str]) -> list[str]:
    """The rules of the template that refuse such parameters."""
    return [
        name
        for name, rule in TEMPLATE["Rules"].items()
        if holds(rule.get("RuleCondition", {"Fn::And": []}), parameters)
        for assertion in rule["Assertions"]
        if not holds(assertion["Assert"], parameters)
    ]


class TheRules(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.rules_for = Ruler(patterns()).rules_for

    def rules_of_the_function(self) -> dict[str, dict[str, Any]]:
        rules = of_type("AWS::Events::Rule")
        return {name: rule for name, rule in rules.items() if rule["Targets"][0]["Arn"] == attribute("Drain", "Arn")}

    def test_each_notice_passes_exactly_one_rule(self) -> None:
        self.assertEqual({*RULES, *SCHEDULES}, set(self.rules_of_the_function()))
        passed = {name: self.rules_for(event) for name, event in SAMPLES.items()}
        by_name = {name: [rule] for rule, names in RULES.items() for name in names}
        self.assertEqual(passed, {**by_name, **{name: [] for name in ASKED}})

    def test_schedules_send_their_samples(self) -> None:
        for name, sample in SCHEDULES.items():
            (target,) = properties(name)["Targets"]
            # A person's sample has the envelope of an event as well.
            self.assertLessEqual(json.loads(target["Input"]).items(), SAMPLES[sample].items())

    def test_unknown_words_of_aws_pass(self) -> None:
        for name, field in (
            ("spot-interruption", "instance-action"),
            ("health-scheduled-maintenance", "statusCode"),
            ("terminate-lifecycle-action", "Destination"),
            ("replace-root-volume", "Action"),
        ):
            event = SAMPLES[name]
            unknown = {**event, "detail": {**event["detail"], field: "evaporate"}}
            self.assertEqual(self.rules_for(unknown), self.rules_for(event), name)

    def test_each_rule_has_a_dead_letter_queue(self) -> None:
        for name, rule in self.rules_of_the_function().items():
            (target,) = rule["Targets"]
            self.assertEqual(target["DeadLetterConfig"], {"Arn": attribute("Failures", "Arn")}, name)
            self.assertIn("MaximumEventAgeInSeconds", target["RetryPolicy"], name)
            # EventBridge's most: the age alone ends it.
            self.assertEqual(target["RetryPolicy"]["MaximumRetryAttempts"], 185, name)

    def test_unlisted_kinds_do_not_pass(self) -> None:
        for parameters, passed in (
            ({}, {"capacity-block-expiry"}),
            ({"DrainOn": "rebalance"}, {"rebalance-recommendation"}),
            ({"DrainOn": "off", "CordonOn": "rebalance,capacity"}, RULES["DrainCapacityBlockAndRebalance"]),
            ({"DrainOn": "spot,maintenance,state-change,terminate"}, set()),
        ):
            rules_for = Ruler(patterns(parameters)).rules_for
            with self.subTest(parameters=parameters):
                samples = RULES["DrainCapacityBlockAndRebalance"]
                self.assertEqual({name for name in samples if rules_for(SAMPLES[name])}, passed)

    def test_stopped_instances_pass_only_with_the_taint_for_them(self) -> None:
        down = {"state-change-stopped", "state-change-terminated"}
        for taints, passed in {"": set(), "nth": set(), "nth, out-of-service": down}.items():
            rules_for = Ruler(patterns({"Taints": taints})).rules_for
            with self.subTest(taints=taints):
                refused = {name for name in RULES["DrainInterruption"] if not rules_for(SAMPLES[name])}
                self.assertEqual(refused, down - passed)


class TheFunctions(unittest.TestCase):
    def test_every_role_can_be_bounded(self) -> None:
        boundary = {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundary"}, {"Ref": "AWS::NoValue"}]}
        for name, role in of_type("AWS::IAM::Role").items():
            self.assertEqual(role["PermissionsBoundary"], boundary, name)

    def test_receipts_outlive_the_stack(self) -> None:
        self.assertEqual(RESOURCES["DrainLogs"]["UpdateReplacePolicy"], "Retain")
        # A stack that was never made leaves nothing behind.
        self.assertEqual(RESOURCES["DrainLogs"]["DeletionPolicy"], "RetainExceptOnCreate")
        self.assertNotIn("LogGroupName", properties("DrainLogs"))

    def test_function_code_cannot_use_lambdas_network_rights(self) -> None:
        for statement in properties("Network")["PolicyDocument"]["Statement"]:
            self.assertEqual(statement["Condition"], {"Null": {"lambda:SourceFunctionArn": "true"}})

    def test_last_error_goes_to_the_failure_queue(self) -> None:
        self.assertNotIn("ReservedConcurrentExecutions", properties("Drain"))
        (config,) = of_type("AWS::Lambda::EventInvokeConfig").values()
        self.assertEqual((config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]), (2, 3600))
        self.assertEqual(config["DestinationConfig"]["OnFailure"]["Destination"], attribute("Failures", "Arn"))

    def test_message_is_hidden_while_it_is_delivered(self) -> None:
        window = properties("AnnouncerAnnouncements")["MaximumBatchingWindowInSeconds"]
        least = 6 * properties("Announcer")["Timeout"] + window
        self.assertGreaterEqual(properties("Announcements")["VisibilityTimeout"], least)


class TheParameters(unittest.TestCase):
    """Names and defaults of the settings are compared by tests of the functions."""

    def test_refused_setting_fails_before_the_deployment(self) -> None:
        # The page is compared with each function's own table by a test of the function.
        page = (ROOT / "docs/settings.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| `(SPILLWAY_\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
        self.assertEqual(len(rows), len({variable for _, variable, _ in rows}), "each has one row")
        variables = [properties(function)["Environment"]["Variables"] for function in FUNCTIONS]
        told = {name: value for of_function in variables for name, value in of_function.items()}
        by_the_template = ("ANNOUNCEMENTS", "LOG_GROUP", "QUEUE_ARN", "SCHEDULES", "STACK")
        settings = {name for name in told if name.startswith("SPILLWAY_")}
        settings -= {f"SPILLWAY_{name}" for name in by_the_template}
        self.assertEqual({variable for _, variable, _ in rows}, settings)
        for name, variable, words in rows:
            with self.subTest(setting=variable):
                parameter = PARAMETERS[name]
                whole, joined = {"Ref": name}, {"Fn::Join": [",", {"Ref": name}]}
                self.assertEqual(told[variable], joined if parameter["Type"] == "CommaDelimitedList" else whole)
                if "AllowedValues" in parameter:
                    self.assertEqual(set(parameter["AllowedValues"]), set(re.split(r", | or ", words)))
                elif "MinValue" in parameter:
                    self.assertIn(f"from {parameter['MinValue']} to {parameter['MaxValue']}", words)
                elif "AllowedPattern" in parameter or "MaxLength" in parameter:
                    self.assertEqual(parameter["ConstraintDescription"], words)
                else:
                    self.assertEqual(parameter["Default"], "", "anything goes, so that nothing must be good")

    def test_values_are_checked_before_the_deployment(self) -> None:
        kinds = PARAMETERS["DrainOn"]["Default"].split(",")
        # A list of which SAM has cut the end off ends with a comma.
        for name, good, bad in (
            ("DrainOn", kinds, ["", "sport", "spot capacity", "Spot", "launch", "none", "+spot"]),
            ("CordonOn", kinds, ["", "sport", "spot capacity", "Spot", "launch", "none", "-spot"]),
            ("Taints", ["", "off", "nth", "out-of-service, spillway"], ["none", "nth,spillway", "nth,"]),
            ("Clusters", ["", "a", "a,b", "a, b"], ["a,", "a, ", ",a", "a,,b"]),
            ("Hooks", ["spillway", "a/b,c", "a, b"], ["", "a,", ",a", "a,,b"]),
            ("NodeSelector", ["", "team=shop,tier in (web,api),!legacy", "a=b, c=d"], ["team=shop,", "a=b "]),
            ("Webhook", ["", "/spillway/webhook", SECRET], ["a", "/a/", SECRET.removesuffix("-AbCd12"), "https://a"]),
            ("SubnetIds", ["", "subnet-0a1"], ["vpc-1", "subnet-1 "]),
            ("PermissionsBoundary", ["", "arn:aws:iam::123456789012:policy/a/b"], ["b", "arn:aws:iam::1:role/a"]),
            ("HookGroupTag", ["", "k8s.io/cluster-autoscaler/enabled=true"], ["team", "team=", "=x", "a=b=c", "a=*"]),
            ("TopicArn", ["", "arn:aws:sns:eu-central-1:123456789012:drains"], ["drains"]),
        ):
            pattern = re.compile(PARAMETERS[name]["AllowedPattern"])
            with self.subTest(parameter=name):
                self.assertEqual([value for value in good if not pattern.search(value)], [])
                self.assertEqual([value for value in bad if pattern.search(value)], [])

    def test_subnets_and_security_groups_are_given_together(self) -> None:
        # The last two are what SAM makes of "subnet-1, subnet-2" without quotes.
        for subnets, groups, good in (
            ("", "", True),
            ("subnet-1,subnet-2", "sg-1", True),
            ("", "sg-1", False),
            ("subnet-1", "", False),
            ("subnet-1,", "sg-1", False),
            ("subnet-1", "sg-1,", False),
        ):
            given = {"SubnetIds": subnets, "SecurityGroupIds": groups}
            self.assertEqual(refused_by(given), [] if good else ["SubnetsAndSecurityGroups"], given)

    def test_a_list_of_notices_that_contradicts_itself_is_refused(self) -> None:
        notices = PARAMETERS["DrainOn"]["Default"].split(",") + ["rebalance"]
        for parameters in (
            *({"DrainOn": word, "CordonOn": word} for word in notices),
            {"CordonOn": "spot"},
            {"DrainOn": "off,spot"},
            {"CordonOn": "rebalance,off"},
        ):
            with self.subTest(parameters=parameters):
                self.assertEqual(refused_by(parameters), ["EachNoticeOnce"])
        for parameters in ({}, {"DrainOn": "off", "CordonOn": ",".join(notices)}, {"DrainOn": ",".join(notices)}):
            self.assertEqual(refused_by(parameters), [])

    def test_each_has_a_default_and_none_is_a_secret(self) -> None:
        # sam deploy --guided asks for one without a default, for ever; and a stack's parameters are for many to read.
        self.assertEqual([name for name, parameter in PARAMETERS.items() if "Default" not in parameter], [])
        self.assertEqual([name for name, parameter in PARAMETERS.items() if parameter.get("NoEcho")], [])

    def test_console_groups_all_parameters(self) -> None:
        groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        self.assertCountEqual([name for group in groups for name in group["Parameters"]], PARAMETERS)

    def test_the_applications_version_is_that_of_the_code(self) -> None:
        application = TEMPLATE["Metadata"]["AWS::ServerlessRepo::Application"]
        (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
        self.assertEqual((application["SemanticVersion"], TEMPLATE["Outputs"]["Version"]["Value"]), (version, version))
        for file in (application["LicenseUrl"], application["ReadmeUrl"]):
            self.assertTrue((ROOT / file).is_file(), file)

    def test_each_resource_type_exists_in_each_region(self) -> None:
        # CloudFormation validates types before conditions, for a stack set also of resources whose condition is false.
        used = {resource["Type"] for resource in RESOURCES.values()}
        for region in REGIONS:
            there = set(PROVIDER_SCHEMA_MANAGER.get_resource_types(region))
            if "AWS::Lambda::Function" in there:
                self.assertEqual(used - there, set(), region)

class TheRights(unittest.TestCase):
    def test_pages_name_an_endpoint_for_each_service(self) -> None:
        service = re.compile(r"`?([a-z0-9]+)`?(?:,|\.| and | for |\))")
        page = (ROOT / "docs/install-variants.md").read_text().split("an interface endpoint for each: ")[1].split(" Without")[0]
        described = TEMPLATE["Parameters"]["SubnetIds"]["Description"].split("or endpoints for ")[1].split(" Empty")[0]
        widest = {**WIDEST, "LoadBalancers": "wait"}
        # These are called by Lambda itself, or are no API of their own.
        others = {"iam", "logs", "xray"}
        needed = {action.split(":")[0] for one in statements("DrainRole", widest) for action in actions(one)} - others
        for text in (page, described):
            self.assertEqual(needed - set(service.findall(" ".join(text.split()))), set())

    def test_only_itself_and_scheduler_invoke_the_function(self) -> None:
        itself = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": attribute("Drain", "Arn")}
        invoking = (policy for policy in of_type("AWS::IAM::RolePolicy").values() if policy["PolicyName"] == "invoke")
        of_roles = {policy["RoleName"]["Ref"]: policy["PolicyDocument"]["Statement"] for policy in invoking}
        self.assertEqual(of_roles, {"DrainRole": [itself], "SchedulesRole": [itself]})
        self.assertEqual(properties("Drain")["RecursiveLoop"], "Allow")

    def test_scheduler_may_keep_what_it_could_not_deliver(self) -> None:
        (policy,) = properties("SchedulesRole")["Policies"]
        keep = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": attribute("Failures", "Arn")}
        self.assertEqual(policy["PolicyDocument"]["Statement"], [keep])

    def test_no_right_is_wider_than_aws_makes_it(self) -> None:
        # Each right is in one of these stacks.
        everything = {"ManagedTag": "x", "LoadBalancers": "wait", "Replace": "spot", "TopicArn": "arn", "Webhook": "/a"}
        for parameters in (everything, {"HookGroupTag": "team=shop", "Webhook": SECRET}):
            for statement in statements("DrainRole", parameters) + statements("AnnouncerRole", parameters):
                named = " ".join(actions(statement))
                with self.subTest(actions=named):
                    self.assertEqual("NotResource" in statement, statement["Effect"] == "Deny")
                    self.assertNotIn("*", named)
                    if statement.get("Resource") == "*":
                        # These know no resources, or the keys have no names here: a condition narrows them.
                        self.assertIn("Condition", statement)
                        self.assertRegex(named, r"^(\S+:(Describe|Get|List)\S+ ?)+$|^kms:Decrypt$")

    def test_announcer_may_call_what_its_sinks_need(self) -> None:
        def allowed(parameters: dict[str, str]) -> set[str]:
            return {action for one in statements("AnnouncerRole", parameters) for action in actions(one)}

        for parameters, needed in (
            ({"Webhook": "/spillway/webhook"}, {"ssm:GetParameter", "kms:Decrypt"}),
            ({"Webhook": SECRET}, {"secretsmanager:GetSecretValue", "kms:Decrypt"}),
            ({"TopicArn": "arn"}, {"sns:Publish"}),
        ):
            self.assertEqual(allowed(parameters) - allowed({}), needed, parameters)

    def test_cluster_role_and_flow_schemas_name_one_group(self) -> None:
        _, binding = objects("rbac")
        (subject,) = binding["subjects"]
        self.assertEqual(subject["name"], "spillway")
        for file in ("node-events", "karpenter", "disruption-target"):
            self.assertEqual(objects(f"optional/{file}")[1]["subjects"], [subject])
        for policy in (objects("optional/admission-policy")[0], objects("optional/disruption-target")[2]):
            conditions = [condition["expression"] for condition in policy["spec"]["matchConditions"]]
            self.assertEqual(conditions, [f"'{subject['name']}' in request.userInfo.groups"])
        level, *flows = objects("optional/flow-control")
        events = objects("optional/node-events")[2]
        for flow in (events, *flows):
            (rule,) = flow["spec"]["rules"]
            self.assertEqual([group["group"]["name"] for group in rule["subjects"]], [subject["name"]])
            # Events are out of the drains' room.
            is_ours = flow["spec"]["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
            self.assertEqual(is_ours, flow is not events)
        # Before the flows that take everything.
        self.assertLess(events["spec"]["matchingPrecedence"], min(flow["spec"]["matchingPrecedence"] for flow in flows))


def objects(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / f"deploy/{file}.yaml").read_text()))


if __name__ == "__main__":
    unittest.main()
