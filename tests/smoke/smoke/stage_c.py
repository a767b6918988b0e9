"""Stage C: the lock (Lock=on). Each rule of the stack invokes the function, and a stranger does not, through an update, two
rollbacks and the way back. No cluster is made.
"""

import json
import time
from collections.abc import Callable

from botocore.exceptions import ClientError

from smoke.aws import wait
from smoke.receipts import lines
from smoke.run import TAG, Run
from smoke.stage_b import sam_deploy
from smoke.step import SmokeError, Step
from smoke.teardown import SPILLWAY

# Nobody's: a deployment that is to fail gives it to the stack's roles.
NO_POLICY = "spillway-smoke-there-is-no-such-policy"
ALIAS = "spillway-smoke"
SOURCE = "spillway.smoke"


def steps() -> list[Step[Run]]:
    return [
        Step("unlocked", "has sam deploy the release without the lock: each rule invokes", unlocked, minutes=6),
        Step("first rollback", "deploys the lock so that it is rolled back: each rule invokes", first_rollback, minutes=5),
        Step("locked", "deploys the lock: each rule invokes, nobody else", locked, minutes=5),
        Step("update", "makes itself an operator: it invokes, and so does each rule", update, minutes=4),
        Step("rollback", "has an update rolled back: each rule invokes, nobody else", rollback, minutes=5),
        Step("open", "opens the lock: everybody invokes, and so does each rule", opened, minutes=4),
    ]


def unlocked(run: Run) -> None:
    sam_deploy(run)
    # The run sends what the rules are to let through: nobody may put an event of AWS on the bus.
    for rule in _rules(run):
        pattern = {"source": [SOURCE], "detail": {"rule": [rule]}}
        run.aws.call("events", "PutRule", Name=rule, EventPattern=json.dumps(pattern))
    version = run.aws.call("lambda", "PublishVersion", FunctionName=run.outputs["FunctionName"])["Version"]
    run.aws.call("lambda", "CreateAlias", FunctionName=run.outputs["FunctionName"], Name=ALIAS, FunctionVersion=version)
    _each_rule_invokes(run)
    _invokes(run, ("", "$LATEST", ALIAS))


def first_rollback(run: Run) -> None:
    _fails(run, "Lock=on")
    _each_rule_invokes(run)


def locked(run: Run) -> None:
    sam_deploy(run, "Lock=on")
    _each_rule_invokes(run)
    _is_refused(run)


def update(run: Run) -> None:
    sam_deploy(run, f"Operators={_caller(run)}")
    _invokes(run, ("",))
    _each_rule_invokes(run)


def rollback(run: Run) -> None:
    sam_deploy(run, 'Operators=""')
    _fails(run, f"Operators={_caller(run)}")
    _each_rule_invokes(run)
    _is_refused(run)


def opened(run: Run) -> None:
    sam_deploy(run, "Lock=open")
    _each_rule_invokes(run)
    _invokes(run, ("", "$LATEST", ALIAS))


def _fails(run: Run, *parameters: str) -> None:
    boundary = f"PermissionsBoundary=arn:{run.partition}:iam::{run.account}:policy/{NO_POLICY}"
    try:
        sam_deploy(run, *parameters, boundary)
    except SmokeError as error:
        run.say(f"    as it should: {str(error).splitlines()[0]}")
    status = run.aws.call("cloudformation", "DescribeStacks", StackName=SPILLWAY)["Stacks"][0]["StackStatus"]
    if status != "UPDATE_ROLLBACK_COMPLETE":
        raise SmokeError(f"the deployment that was to be rolled back ended as {status}")


def _rules(run: Run) -> list[str]:
    resources = run.aws.call("cloudformation", "DescribeStackResources", StackName=SPILLWAY)["StackResources"]
    return [one["PhysicalResourceId"] for one in resources if one["ResourceType"] == "AWS::Events::Rule"]


def _each_rule_invokes(run: Run) -> None:
    since, rules = int(time.time() * 1000), _rules(run)
    sent = [{"Source": SOURCE, "DetailType": TAG, "Detail": json.dumps({"rule": rule})} for rule in rules]
    ids: dict[str, str] = {}
    # As many as one call takes.
    for first in range(0, len(sent), 10):
        entries = run.aws.call("events", "PutEvents", Entries=sent[first : first + 10])["Entries"]
        ids |= {one["EventId"]: rule for one, rule in zip(entries, rules[first:], strict=False)}
    # The schedule's target has an input of its own: what it invokes is the doctor.
    missing = {("self-test" if "SelfTest" in rule else one) for one, rule in ids.items()}

    def look() -> bool:
        for line in lines(run, run.outputs["LogGroupName"], startTime=since):
            missing.discard("self-test" if "self_test" in line else line.get("notice", {}).get("event_id"))
        return not missing

    try:
        wait("an invocation by each rule", 300, look, run.pause)
    except SmokeError:
        raise SmokeError(f"these rules do not invoke: {[ids.get(one, one) for one in missing]}") from None


def _invokes(run: Run, qualifiers: tuple[str, ...]) -> None:
    _until(run, "this run may invoke", qualifiers, lambda refused: not refused)


def _is_refused(run: Run) -> None:
    _until(run, "this run is refused", ("", "$LATEST", ALIAS), lambda refused: refused)


def _until(run: Run, what: str, qualifiers: tuple[str, ...], wanted: Callable[[bool], bool]) -> None:
    for qualifier in qualifiers:
        # What has been changed a moment ago is not yet so everywhere.
        by = qualifier or "its name"
        wait(f"{what} by {by}", 120, lambda one=qualifier: wanted(_refused(run, one)), run.pause)  # type: ignore[misc]


def _refused(run: Run, qualifier: str) -> bool:
    by = {"Qualifier": qualifier} if qualifier else {}
    try:
        run.aws.call("lambda", "Invoke", FunctionName=run.outputs["FunctionName"], InvocationType="DryRun", **by)
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDeniedException":
            raise
        return True
    return False


def _caller(run: Run) -> str:
    """The role or user of this run, as a policy names it."""
    arn = run.aws.call("sts", "GetCallerIdentity")["Arn"]
    role = arn.replace(":sts:", ":iam:").replace(":assumed-role/", ":role/")
    return "/".join(role.split("/")[:2]) if role != arn else arn
