"""The command line: reads the stack, works on the clusters side by side, prints what came of it."""

from __future__ import annotations

import argparse
import sys

from cli import Failed, counted, stack
from cli import options as common
from cli.aws import Aws
from cli.stack import Stack

from . import clusters, doctor, objects, table
from .clusters import side_by_side
from .enrolment import Result, Work, visit
from .groups import Group
from .step import Part, State

DESCRIPTION = """\
Lets the function of a stack into EKS clusters: the access entry and the objects of deploy/, and with --groups the terminate
hook on each self-managed Auto Scaling group. It works with your own rights (deploy/iam/enroller-policy.json, and the right to
administer each cluster). At the end it asks the doctor. A second run changes nothing. With --plan or the answer no, exit code
3 means that something would be changed. docs/install.md"""
FINE, NOT_FINE, WOULD_CHANGE = 0, 1, 3


def run(options: argparse.Namespace) -> int:
    if options.replace and not options.groups:
        raise Failed("--replace tags groups: give --groups as well")
    asks = not (options.plan or options.yes)
    if asks and (options.output == "json" or not sys.stdin.isatty()):
        raise Failed("it asks before it changes anything, and there is no terminal: give --yes, or look with --plan")
    deployed = stack.read(Aws(options.region), options.stack)
    aws = Aws(deployed.region)
    found = clusters.find(aws, deployed, options)
    remarks = clusters.remarks(found, deployed)
    if sys.stderr.isatty():
        print(f"reading {counted(len(found), 'cluster')} …", file=sys.stderr)
    groups = [Group.of(one) for one in aws.call("autoscaling", "describe-auto-scaling-groups")["AutoScalingGroups"]]

    def one(cluster: clusters.Cluster, plan: bool) -> Result:
        result = visit(Work(aws, deployed, groups, options, plan), cluster)
        if not plan and not options.remove:
            result.verdict = doctor.verdict(aws, deployed, cluster.name, result.is_fresh)
        if options.output == "text":
            print(table.steps(result) + "\n", flush=True)
        return result

    if asks:
        planned = side_by_side(lambda cluster: one(cluster, plan=True), found)
        is_needed = any(step.state is State.TO_DO for result in planned for step in result.steps)
        if is_needed and not common.agreed("Carry out what is marked ~?", options.yes):
            print("Nothing was changed.")
            return WOULD_CHANGE
    results = side_by_side(lambda cluster: one(cluster, options.plan), found)
    code = exit_code(results)
    print(table.as_json(results, remarks, code) if options.output == "json" else _closing(results, remarks, options, deployed))
    return code


def exit_code(results: list[Result]) -> int:
    states = {step.state for result in results for step in result.steps}
    if {State.FAILED, State.TOLD} & states or not all(doctor.is_green(one.verdict) for one in results if one.verdict):
        return NOT_FINE
    return WOULD_CHANGE if State.TO_DO in states else FINE


def _closing(results: list[Result], remarks: list[str], options: argparse.Namespace, deployed: Stack) -> str:
    lines = [*(f"Note: {remark}" for remark in remarks), *([""] if remarks else [])]
    if not options.remove:
        lines.append(table.table(results))
    if options.plan:
        lines += ["", "Nothing was changed: ~ is what a run without --plan would do."]
    elif options.remove and all(result.is_fine(*Part) for result in results):
        lines.append("Nothing in these clusters waits for Spillway any longer. If they were the last:")
        lines.append(f"sam delete --stack-name {deployed.name} --region {deployed.region}")
    elif options.remove:
        lines.append("Not all is taken away: see what is marked ! or x above, and run it again.")
    elif not all(doctor.is_green(result.verdict) for result in results):
        lines += ["", f"What the doctor found, with what to do: tools/spillway doctor --stack {deployed.name} CLUSTER"]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    made = common.parser("enroll", DESCRIPTION, "spillway enroll --cluster sandbox --groups --plan")
    which = made.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="the clusters that the parameter Clusters names, or all of the Region")
    which.add_argument("--cluster", metavar="NAME", nargs="+", action="extend", help="these clusters")
    which.add_argument("--tag", metavar="KEY=VALUE", type=_tag, help="the clusters with this tag")
    made.add_argument("--groups", action="store_true", help="put the terminate hook on the groups of these clusters, too")
    made.add_argument("--replace", action="store_true", help="with --groups: tag the groups, so that they replace instances first")
    extra = f"apply this file of deploy/optional/ although no parameter needs it: {', '.join(objects.OPTIONAL)}"
    made.add_argument("--with", dest="extra", metavar="FILE", action="append", default=[], choices=objects.OPTIONAL, help=extra)
    made.add_argument("--plan", action="store_true", help="change nothing, and show what would be changed")
    made.add_argument("--yes", action="store_true", help="do not ask before the changes: for a pipeline")
    made.add_argument("--remove", action="store_true", help="take away what this tool has made, hooks first")
    return made


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no KEY=VALUE")
    return key, value
