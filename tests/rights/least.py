"""Least privilege, by removal: of all that the functions asked for in the whole suite, each action of their roles is taken away
in turn, and each call goes beyond what it was: by its resource, its Region and whatever else IAM sees of it, whether the role
says anything of that or not. What nobody misses, and what lets everybody through, fails by name. The same for whoever enrols
clusters, by deploy/iam/enroller-policy.json.

    python tests/rights/least.py FOLDER [--write]     FOLDER has what the test bed wrote: SPILLWAY_RIGHTS
"""

import argparse
import copy
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bed_aws import template
from bed_aws.evaluator import Asked, Evaluator, Policies
from bed_aws.iam import ENROLLER, Deployed, policies_of
from bed_aws.moto_side import Moto

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/permissions.md"
BEGIN, END = "<!-- least rights: written by tests/rights/least.py -->", "<!-- end of least rights -->"
MOTO = Moto("123456789012", "us-east-1")

# What the functions' own code does not call, so that no call of the suite can need it.
LAMBDAS_OWN = "Lambda's own"
NOT_THE_CODES = {
    "ec2:AssignPrivateIpAddresses": LAMBDAS_OWN,
    "ec2:CreateNetworkInterface": LAMBDAS_OWN,
    "ec2:DeleteNetworkInterface": LAMBDAS_OWN,
    "ec2:DescribeNetworkInterfaces": LAMBDAS_OWN,
    "ec2:DescribeSubnets": LAMBDAS_OWN,
    "ec2:UnassignPrivateIpAddresses": LAMBDAS_OWN,
    "logs:CreateLogStream": LAMBDAS_OWN,
    "logs:PutLogEvents": LAMBDAS_OWN,
    "sqs:DeleteMessage": LAMBDAS_OWN,
    "sqs:GetQueueAttributes": LAMBDAS_OWN,
    "sqs:ReceiveMessage": LAMBDAS_OWN,
    "sqs:SendMessage": "Lambda's and Scheduler's own",
    "kms:Decrypt": "asked for by Parameter Store or Secrets Manager in the function's name, and moto has no keys",
}

# The policies whose right the code itself uses, though another one has the same for Lambda.
THE_CODES = {("sqs:SendMessage", "announce")}

NEEDED = "needed"

REGION = "aws:RequestedRegion"
# What IAM knows of every call: a resource has its Region in its ARN, and who calls has the role.
OF_EVERY_CALL = {REGION, "lambda:SourceFunctionArn"}
# For whatever else IAM sees of a call, something that no role of ours may let through; nor may it that such a thing is not there.
BEYOND: dict[str, Any] = {
    REGION: "eu-west-1",
    "aws:TagKeys": ["karpenter.sh/nodepool"],
    "events:detail-type": ["EC2 Spot Instance Interruption Warning"],
    "events:source": ["aws.ec2"],
    "iam:PassedToService": "lambda.amazonaws.com",
    "eks:accessEntryType": "EC2_LINUX",
    "eks:kubernetesGroups": ["spillway", "admins"],
    "eks:principalArn": f"arn:aws:iam::{MOTO.account}:role/admin",
}
# What a call may do without: an access entry that has no group has no right either, and no tag changes nothing.
HARMLESS_WITHOUT = {"aws:TagKeys", "eks:kubernetesGroups"}
# A group may have any tags, and must have the one that the stack asks for, if it asks for one.
GROUP_TAG = "aws:ResourceTag/"
# A request to replace an instance needs this tag of the group.
TERMINATE, REPLACED = "autoscaling:TerminateInstanceInAutoScalingGroup", "spillway:replace"


class Case:
    """What a function asked for, and was allowed."""

    def __init__(self, line: dict[str, Any], read: dict[str, Any]) -> None:
        self.role = line["role"]
        self.asked = Asked(line["action"], line["resource"], line["context"])
        of_hooks = line["parameters"].get("HookGroupTag", "=").split("=")[0]
        self.group_tag = REPLACED if self.asked.action == TERMINATE else of_hooks
        logical_id = "Announcer" if self.role == "AnnouncerRole" else "Drain"
        deployed = Deployed(logical_id, self.role, line["name"], line["parameters"])
        self.policies = policies_of(read, self.role, deployed, MOTO)


def cases(folder: Path, read: dict[str, Any]) -> list[Case]:
    lines = [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [Case(line, read) for line in lines if line["allowed"]]


def statements(policies: Policies) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those that give a right. What another one denies, no call of the suite has asked for."""
    for policy in policies:
        for number, statement in enumerate(policy["policy"]["Statement"]):
            if statement["Effect"] == "Allow":
                yield f"{policy['name']}[{number}]", statement


def actions(statement: dict[str, Any]) -> list[str]:
    return [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]


def without(policies: Policies, where: str, action: str) -> Policies:
    """The same policies with one action less in one statement."""
    less = copy.deepcopy(policies)
    for place, statement in statements(less):
        if place == where:
            # A statement needs an action: one that nobody asks for.
            statement["Action"] = [one for one in actions(statement) if one != action] or ["s3:ListAllMyBuckets"]
    return less


class Suite:
    """All that was asked for."""

    def __init__(self, read: dict[str, Any], cases: list[Case]) -> None:
        self._evaluator = Evaluator(MOTO.account)
        self._cases = cases
        self._read = read

    def _allows(self, case: Case, policies: Policies, asked: Asked) -> bool:
        return self._evaluator.allows(case.role, policies, asked)

    def _allowed(self, case: Case, **otherwise: Any) -> bool:
        """Whether the call would have been allowed if it had been another one in that."""
        return self._allows(case, case.policies, replace(case.asked, **otherwise))

    def missed(self, role: str, where: str, action: str) -> Case | None:
        """A call that is denied without that right."""
        for case in self._cases:
            if (case.role, case.asked.action) == (role, action):
                if not self._allows(case, without(case.policies, where, action), case.asked):
                    return case
        return None

    def steps_over(self, case: Case) -> Iterator[str]:
        """What a call could have gone beyond without being denied."""
        for key in sorted(case.asked.context.keys() - OF_EVERY_CALL):
            if key.startswith(GROUP_TAG) and key != GROUP_TAG + case.group_tag:
                continue
            if key not in BEYOND and not key.startswith(GROUP_TAG):
                yield f"{key}, which tests/rights/least.py has nothing beyond for"
                continue
            others = {one: value for one, value in case.asked.context.items() if one != key}
            if self._allowed(case, context=others | {key: BEYOND.get(key, "another")}):
                yield key
            elif key not in HARMLESS_WITHOUT and self._allowed(case, context=others):
                yield f"{key}, by having none"
        if case.role == ENROLLER:
            # A file for every account and Region: the rights of a person end at the account by themselves.
            return
        if case.asked.resource == "*":
            if self._allowed(case, context=case.asked.context | {REGION: BEYOND[REGION]}):
                yield "its Region"
            return
        # The same kind of thing, of another account: no resource of ours may match it.
        foreign = case.asked.resource.replace(MOTO.account, "999999999999").replace(":::", ":::foreign-")
        if self._allowed(case, resource=foreign):
            yield f"the resource, to {foreign}"

    def report(self) -> tuple[list[str], list[tuple[str, str, str]]]:
        """What is wrong, and a row for each right."""
        wrong, rows = [], {}
        for role in sorted({case.role for case in self._cases}):
            # Parameters add rights: each that any of the deployments had.
            of_role = [case.policies for case in self._cases if case.role == role]
            parts = {(where, action) for policies in of_role for where, statement in statements(policies) for action in actions(statement)}
            for where, action in sorted(parts):
                if action in NOT_THE_CODES and (action, where.partition("[")[0]) not in THE_CODES:
                    rows.setdefault((role, action), NOT_THE_CODES[action])
                    continue
                case = self.missed(role, where, action)
                if case is None:
                    wrong.append(f"{role}: nobody misses {action} of {where}")
                    continue
                rows[role, action] = NEEDED
                wrong += [f"{role}: {action} of {where} lets a call step over {what}" for what in self.steps_over(case)]
        asked = {case.asked.action for case in self._cases}
        not_asked = NOT_THE_CODES.keys() - {action for action, _ in THE_CODES}
        wrong += [f"{action} is not the code's, and was asked for all the same" for action in sorted(asked & not_asked)]
        return wrong, [(role, action, shown) for (role, action), shown in sorted(rows.items())]


def table(rows: list[tuple[str, str, str]]) -> str:
    """A row for each role."""
    lines = []
    for role in sorted({role for role, _, _ in rows}):
        of_role = [(f"`{action}`", shown) for one, action, shown in rows if one == role]
        needed = ", ".join(action for action, shown in of_role if shown == NEEDED)
        why_not: dict[str, list[str]] = {}
        for action, shown in of_role:
            if shown != NEEDED:
                why_not.setdefault(shown, []).append(action)
        others = "; ".join(f"{', '.join(actions)} ({why})" for why, actions in why_not.items())
        lines.append(f"| `{role}` | {needed} | {others} |")
    head = ["| role | missed by a call of the tests | not shown by them |", "| --- | --- | --- |"]
    return "\n".join([BEGIN, "", *head, *lines, "", END])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="writes the table of docs/permissions.md again")
    options = parser.parse_args()
    read = template.read(ROOT / "template.yaml")
    seen = cases(options.folder, read)
    wrong, rows = Suite(read, seen).report()
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    written = before + table(rows) + rest.split(END)[1]
    if options.write:
        PAGE.write_text(written)
    elif written != page:
        wrong.append("docs/permissions.md has another table: python tests/rights/least.py FOLDER --write")
    shown = sum(row[2] == NEEDED for row in rows)
    print(f"{len(seen)} different rights were asked for; {shown} of {len(rows)} are shown to be needed")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
