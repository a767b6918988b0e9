"""template.yaml, as CloudFormation gets it: what it lets through, what it allows, and what the function is told."""

import json
import re
import sys
import unittest
from pathlib import Path
from typing import Any

import yaml
from bed_aws.intrinsics import Intrinsics
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


def variables(function: str) -> dict[str, Any]:
    """What a function is told."""
    found: dict[str, Any] = properties(function)["Environment"]["Variables"]
    return found


def policies(role: str) -> dict[str, list[dict[str, Any]]]:
    """The statements of a role's own policies by their names, whatever they depend on."""
    found = {}
    for policy in properties(role)["Policies"]:
        (policy,) = (one for one in policy.get("Fn::If", [policy]) if "PolicyDocument" in one)
        found[policy["PolicyName"]] = policy["PolicyDocument"]["Statement"]
    return found


def of_statement(statement: dict[str, Any]) -> list[str]:
    """The actions of a statement, also those that only a setting allows."""
    action = statement["Action"]
    named = [one.get("Fn::If", one) if isinstance(one, dict) else one for one in ([action] if isinstance(action, str) else action)]
    return [next(one for one in each[1:] if isinstance(one, str)) if isinstance(each, list) else each for each in named]


def actions(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in of_statement(statement)}


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
            sent = {key: value for key, value in SAMPLES[sample].items() if key in {"source", "detail-type", "detail"} or len(SAMPLES[sample]) == 1}
            self.assertEqual(json.loads(target["Input"]), sent)

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

    def test_each_rule_has_a_dead_letter_queue(self) -> None:
        for name, rule in self.rules_of_the_function().items():
            with self.subTest(rule=name):
                (target,) = rule["Targets"]
                self.assertEqual(target["DeadLetterConfig"], {"Arn": attribute("Failures", "Arn")})
                self.assertIn("MaximumEventAgeInSeconds", target["RetryPolicy"])
                # EventBridge's most: the age alone ends it.
                self.assertEqual(target["RetryPolicy"]["MaximumRetryAttempts"], 185)
                permission = properties(f"{name}Permission")
                self.assertEqual(permission["SourceArn"], attribute(name, "Arn"))

    def test_unlisted_kinds_do_not_pass(self) -> None:
        for parameters, passed in (
            ({}, {"capacity-block-expiry"}),
            ({"DrainOn": "rebalance"}, {"rebalance-recommendation"}),
            ({"DrainOn": "off", "CordonOn": "rebalance,capacity"}, RULES["DrainCapacityBlockAndRebalance"]),
            ({"DrainOn": "spot,maintenance,state-change,terminate"}, set()),
        ):
            rules_for = Ruler(patterns(parameters)).rules_for
            with self.subTest(parameters=parameters):
                self.assertEqual({name for name in RULES["DrainCapacityBlockAndRebalance"] if rules_for(SAMPLES[name])}, passed)

    def test_stopped_instances_pass_only_with_the_taint_for_them(self) -> None:
        down = {"state-change-stopped", "state-change-terminated"}
        for taints, passed in {"": set(), "spillway": set(), "nth": set(), "out-of-service": down, "nth, out-of-service": down}.items():
            rules_for = Ruler(patterns({"Taints": taints})).rules_for
            with self.subTest(taints=taints):
                self.assertEqual({name for name in RULES["DrainInterruption"] if not rules_for(SAMPLES[name])}, down - passed)


class TheFunctions(unittest.TestCase):
    def test_one_build_makes_them_all(self) -> None:
        built = re.findall(r"--bin (\S+?)\)?(?=\s)", (ROOT / "scripts/sam-build").read_text())
        self.assertCountEqual(built, FUNCTIONS.values())
        written = (ROOT / "template.yaml").read_text()
        self.assertCountEqual(re.findall(r"^        Binary: (\S+)$", written, re.MULTILINE), FUNCTIONS.values())

    def test_every_role_can_be_bounded(self) -> None:
        roles = of_type("AWS::IAM::Role")
        self.assertEqual(set(roles), {"DrainRole", "SchedulesRole", "AnnouncerRole"})
        boundary = {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundary"}, {"Ref": "AWS::NoValue"}]}
        for name, role in roles.items():
            with self.subTest(role=name):
                self.assertEqual(role["PermissionsBoundary"], boundary)

    def test_receipts_outlive_the_stack(self) -> None:
        self.assertEqual(RESOURCES["DrainLogs"]["UpdateReplacePolicy"], "Retain")
        # A stack that was never made leaves nothing behind.
        self.assertEqual(RESOURCES["DrainLogs"]["DeletionPolicy"], "RetainExceptOnCreate")
        self.assertNotIn("LogGroupName", properties("DrainLogs"))

    def test_what_lambda_does_in_a_vpc_no_code_of_a_function_may(self) -> None:
        network = properties("Network")["PolicyDocument"]["Statement"]
        change = {f"ec2:{verb}" for verb in ("AssignPrivateIpAddresses", "UnassignPrivateIpAddresses")}
        change |= {"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface"}
        look = {"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}
        self.assertEqual([actions([statement]) for statement in network], [change, look])
        for statement in network:
            self.assertEqual(statement["Condition"], {"Null": {"lambda:SourceFunctionArn": "true"}})


class TheDrainFunction(unittest.TestCase):

    def test_many_notices_at_once_do_not_wait_for_each_other(self) -> None:
        self.assertNotIn("ReservedConcurrentExecutions", properties("Drain"))

    def test_its_last_error_goes_to_the_failure_queue(self) -> None:
        (config,) = of_type("AWS::Lambda::EventInvokeConfig").values()
        self.assertEqual(config["FunctionName"], {"Ref": "Drain"})
        self.assertEqual((config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]), (2, 3600))
        self.assertEqual(config["DestinationConfig"]["OnFailure"]["Destination"], attribute("Failures", "Arn"))


class TheParameters(unittest.TestCase):
    """Names and defaults of the settings are compared by tests of the functions."""

    def test_refused_setting_fails_before_the_deployment(self) -> None:
        # The page is compared with each function's own table by a test of the function.
        page = (ROOT / "docs/settings.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| `(SPILLWAY_\w+)` \| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
        self.assertEqual(len(rows), len({variable for _, variable, _ in rows}), "each has one row")
        told = {name: value for function in FUNCTIONS for name, value in variables(function).items()}
        template_sets = {
            "SPILLWAY_ANNOUNCEMENTS",
            "SPILLWAY_LOG_GROUP",
            "SPILLWAY_QUEUE_ARN",
            "SPILLWAY_SCHEDULES",
            "SPILLWAY_STACK",
        }
        settings = {name for name in told if name.startswith("SPILLWAY_")} - template_sets
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

    def test_a_list_of_notices_takes_their_words_only(self) -> None:
        for name in ("DrainOn", "CordonOn"):
            pattern = re.compile(PARAMETERS[name]["AllowedPattern"])
            for word in PARAMETERS["DrainOn"]["Default"].split(","):
                self.assertRegex(word, pattern)
            for wrong in ("", "sport", "spot capacity", "Spot", "launch", "none", "+spot", "-spot"):
                self.assertNotRegex(wrong, pattern)

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

    def test_taints_are_ours_or_nths_and_of_stopped_nodes(self) -> None:
        pattern = re.compile(PARAMETERS["Taints"]["AllowedPattern"])
        for good in ("", "off", "spillway", "nth", "out-of-service", "nth,out-of-service", "out-of-service, spillway"):
            self.assertRegex(good, pattern)
        for bad in ("none", "nth,spillway", "nth,", "out-of-service,out-of-service", "NTH"):
            self.assertNotRegex(bad, pattern)

    def test_each_has_a_default_and_none_is_a_secret(self) -> None:
        # sam deploy --guided asks for one without a default, for ever; and a stack's parameters are for many to read.
        self.assertEqual([name for name, parameter in PARAMETERS.items() if "Default" not in parameter], [])
        self.assertEqual([name for name, parameter in PARAMETERS.items() if parameter.get("NoEcho")], [])

    def test_console_and_page_group_parameters_alike(self) -> None:
        interface = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]
        groups = {group["Label"]["default"]: group["Parameters"] for group in interface["ParameterGroups"]}
        six, *advanced = groups
        self.assertEqual((len(groups[six]), [one for one in advanced if not one.startswith("Advanced: ")]), (6, []))
        groups = {label.removeprefix("Advanced: ").capitalize(): names for label, names in groups.items()}
        self.assertCountEqual([name for names in groups.values() for name in names], PARAMETERS)
        documented: dict[str, list[str]] = {}
        page = (ROOT / "docs/settings.md").read_text()
        for question, name in re.findall(r"^###? (.+\?)$|^\| `(\w+)` \| (?:`SPILLWAY_|–)", page, re.MULTILINE):
            if question:
                names = documented.setdefault(question.capitalize(), [])
            else:
                names.append(name)
        self.assertEqual(documented, groups)

    def test_the_applications_version_is_that_of_the_code(self) -> None:
        application = TEMPLATE["Metadata"]["AWS::ServerlessRepo::Application"]
        (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
        self.assertEqual((application["SemanticVersion"], TEMPLATE["Outputs"]["Version"]["Value"]), (version, version))
        for file in (application["LicenseUrl"], application["ReadmeUrl"]):
            self.assertTrue((ROOT / file).is_file(), file)

    def test_a_list_of_which_sam_has_cut_the_end_off_is_refused(self) -> None:
        for name, good, cut in (
            ("Clusters", ["", "a", "a,b", "a, b"], ["a,", "a, ", ",a", "a,,b"]),
            ("Hooks", ["spillway", "a/b,c", "a, b"], ["", "a,", ",a", "a,,b"]),
            ("NodeSelector", ["", "team=shop,tier in (web,api),!legacy", "a=b, c=d"], ["team=shop,", "a=b "]),
        ):
            pattern = re.compile(PARAMETERS[name]["AllowedPattern"])
            with self.subTest(parameter=name):
                self.assertEqual([value for value in good if not pattern.search(value)], [])
                self.assertEqual([value for value in cut if pattern.search(value)], [])

    def test_an_address_is_checked_before_the_deployment(self) -> None:
        secret = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:"
        for name, good, bad in (
            ("Webhook", ["", "/spillway/webhook", f"{secret}a/b-AbCd12"], ["a", "/a/", f"{secret}a", "https://a"]),
            ("SubnetIds", ["", "subnet-0a1"], ["vpc-1", "subnet-1 "]),
            ("PermissionsBoundary", ["", "arn:aws:iam::123456789012:policy/a/b"], ["b", "arn:aws:iam::1:role/a"]),
            ("HookGroupTag", ["", "team=shop", "k8s.io/cluster-autoscaler/enabled=true"], ["team", "team=", "=x", "a=b=c", 'a"b=c', "a=*", "a=b c"]),
            ("TopicArn", ["", "arn:aws:sns:eu-central-1:123456789012:drains"], ["drains"]),
        ):
            pattern = re.compile(PARAMETERS[name]["AllowedPattern"])
            with self.subTest(parameter=name):
                self.assertEqual([value for value in good if not pattern.search(value)], [])
                self.assertEqual([value for value in bad if pattern.search(value)], [])

    def test_each_resource_type_exists_in_each_region(self) -> None:
        # CloudFormation validates types before conditions, for a stack set also of resources whose condition is false.
        used = {resource["Type"] for resource in RESOURCES.values()}
        for region in REGIONS:
            there = set(PROVIDER_SCHEMA_MANAGER.get_resource_types(region))
            if "AWS::Lambda::Function" in there:
                self.assertEqual(used - there, set(), region)

    def test_every_parameter_is_described_to_who_deploys(self) -> None:
        pages = "".join((ROOT / f"docs/{page}.md").read_text() for page in ("install", "settings"))
        for name, parameter in PARAMETERS.items():
            with self.subTest(parameter=name):
                self.assertTrue(parameter["Description"].strip())
                self.assertIn(f"`{name}`", pages)


class TheRights(unittest.TestCase):
    def setUp(self) -> None:
        self.policies = policies("DrainRole")

    @staticmethod
    def actions(statement: dict[str, Any]) -> list[str]:
        return of_statement(statement)

    def allowed(self, policy: str) -> set[str]:
        return actions(self.policies[policy])

    def test_only_itself_and_scheduler_invoke_the_function(self) -> None:
        itself = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": attribute("Drain", "Arn")}
        invoking = (policy for policy in of_type("AWS::IAM::RolePolicy").values() if policy["PolicyName"] == "invoke")
        of_roles = {policy["RoleName"]["Ref"]: policy["PolicyDocument"]["Statement"] for policy in invoking}
        self.assertEqual(of_roles, {"DrainRole": [itself], "SchedulesRole": [itself]})
        self.assertEqual(properties("Drain")["RecursiveLoop"], "Allow")
        # Nobody else but the rules: no other permission. test_lock.py has the policy that refuses all others.
        permitted = {name: one["Principal"] for name, one in of_type("AWS::Lambda::Permission").items()}
        self.assertEqual(set(permitted), {f"{rule}Permission" for rule in (*RULES, *SCHEDULES)})
        self.assertEqual(set(permitted.values()), {"events.amazonaws.com"})

    def test_scheduler_may_keep_what_it_could_not_deliver(self) -> None:
        role = properties("SchedulesRole")
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        self.assertEqual(trust["Principal"], {"Service": "scheduler.amazonaws.com"})
        self.assertEqual(
            trust["Condition"],
            {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}, "ArnLike": {"aws:SourceArn": attribute("Schedules", "Arn")}},
        )
        (policy,) = role["Policies"]
        keep = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": attribute("Failures", "Arn")}
        self.assertEqual(policy["PolicyDocument"]["Statement"], [keep])

    def test_no_right_is_wider_than_aws_makes_it(self) -> None:
        network = properties("Network")["PolicyDocument"]["Statement"]
        for statements in (*self.policies.values(), *policies("AnnouncerRole").values(), network):
            for statement in statements:
                with self.subTest(actions=self.actions(statement)):
                    self.assertEqual("NotResource" in statement, statement["Effect"] == "Deny")
                    self.assertNotIn("*", "".join(self.actions(statement)))
                    if statement.get("Resource") == "*":
                        # These know no resources, but a condition narrows them.
                        self.assertIn("Condition", statement)
                        reading = re.compile(":(Describe|Get|List)")
                        self.assertTrue(all(reading.search(action) for action in self.actions(statement)))

    def test_only_our_rules_may_write_to_the_failure_queue(self) -> None:
        allow, deny = properties("FailuresPolicy")["PolicyDocument"]["Statement"]
        rules = [attribute(rule, "Arn") for rule in (*RULES, *SCHEDULES)]
        self.assertCountEqual(allow["Condition"]["ArnEquals"]["aws:SourceArn"], rules)
        self.assertEqual((allow["Principal"], allow["Action"]), ({"Service": "events.amazonaws.com"}, "sqs:SendMessage"))
        self.assertEqual(deny["Effect"], "Deny")

    def test_kubectl_folder_has_what_every_cluster_needs(self) -> None:
        # kubectl apply -f deploy/ takes every such file of the folder itself, and no folder in it.
        taken = [path.name for path in (ROOT / "deploy").iterdir() if path.suffix in (".json", ".yaml", ".yml")]
        self.assertEqual(taken, ["rbac.yaml"])

    def test_cluster_role_and_flow_schemas_name_one_group(self) -> None:
        role, binding = yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text())
        rights = {(rule["resources"][0], *rule["verbs"]) for rule in role["rules"]}
        self.assertEqual(
            rights,
            {
                ("nodes", "get", "list", "patch", "watch"),
                ("pods", "list", "watch", "delete"),
                ("pods/eviction", "create"),
                ("poddisruptionbudgets", "list", "watch"),
                ("csinodes", "list"),
                ("volumeattachments", "get"),
                ("persistentvolumes", "get"),
            },
        )
        (subject,) = binding["subjects"]
        self.assertEqual(subject["name"], "spillway")
        level, *flows = yaml.safe_load_all((ROOT / "deploy/optional/flow-control.yaml").read_text())
        for flow in flows:
            self.assertEqual(flow["spec"]["priorityLevelConfiguration"]["name"], level["metadata"]["name"])
            (rule,) = flow["spec"]["rules"]
            self.assertEqual([group["group"]["name"] for group in rule["subjects"]], [subject["name"]])
        role, binding, flow = yaml.safe_load_all((ROOT / "deploy/optional/node-events.yaml").read_text())
        (rule,) = role["rules"]
        self.assertEqual((rule["apiGroups"], rule["resources"], rule["verbs"]), (["events.k8s.io"], ["events"], ["create"]))
        self.assertEqual(binding["subjects"], [subject])
        karpenters, its_binding = yaml.safe_load_all((ROOT / "deploy/optional/karpenter.yaml").read_text())
        (claims,) = karpenters["rules"]
        self.assertEqual((claims["resources"], claims["verbs"]), (["nodeclaims"], ["get", "patch", "delete"]))
        self.assertEqual(its_binding["subjects"], [subject])
        disruptions, its_binding, its_policy, _ = yaml.safe_load_all((ROOT / "deploy/optional/disruption-target.yaml").read_text())
        (conditions,) = disruptions["rules"]
        self.assertEqual((conditions["resources"], conditions["verbs"]), (["pods/status"], ["patch"]))
        self.assertEqual(its_binding["subjects"], [subject])
        policy, _ = yaml.safe_load_all((ROOT / "deploy/optional/admission-policy.yaml").read_text())
        for one in (policy, its_policy):
            conditions = [condition["expression"] for condition in one["spec"]["matchConditions"]]
            self.assertEqual(conditions, [f"'{subject['name']}' in request.userInfo.groups"])
        # Before the flows that take everything, and out of the drains' room.
        self.assertLess(flow["spec"]["matchingPrecedence"], min(flow["spec"]["matchingPrecedence"] for flow in flows))
        self.assertNotEqual(flow["spec"]["priorityLevelConfiguration"]["name"], level["metadata"]["name"])
        (rule,) = flow["spec"]["rules"]
        self.assertEqual([group["group"]["name"] for group in rule["subjects"]], [subject["name"]])


if __name__ == "__main__":
    unittest.main()
