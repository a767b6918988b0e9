"""Stage A: AWS' own judgement of what the release would deploy. No cluster, and nothing of it is deployed."""

import json
import time
from collections.abc import Iterator
from typing import Any

from bed_aws.ruler import Ruler
from bed_aws.template import read

from smoke.aws import wait
from smoke.resolve import Resolver
from smoke.run import TAG, Run
from smoke.step import SmokeError, Step

# What a change set ends as.
MADE, REFUSED = "CREATE_COMPLETE", "FAILED"
# How a query ends.
ANSWERED = "Complete"


def steps() -> list[Step[Run]]:
    return [
        Step("package", "makes a bucket and has sam put the release's packages there", package),
        Step("change sets", "has CloudFormation plan six sets of parameters, executes none", change_sets, minutes=3),
        Step("patterns", "asks EventBridge which rule lets which sample of events/ through", patterns, minutes=2),
        Step("policies", "asks IAM Access Analyzer about each policy", policies),
        Step("dashboard", "puts the dashboard, reads what CloudWatch says of it, deletes it", dashboard),
        Step("queries", "runs each saved query on an empty log group", queries, minutes=2, usd=0.01),
    ]


def package(run: Run) -> None:
    where = (
        {} if run.aws.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": run.aws.region}}
    )
    run.aws.call("s3", "CreateBucket", Bucket=run.bucket, **where)
    run.aws.call("s3", "PutBucketTagging", Bucket=run.bucket, Tagging={"TagSet": run.tags})
    packaged = run.folder / "packaged.yaml"
    run.programs.run(run.bundle, "sam", "package", "--s3-bucket", run.bucket, "--output-template-file", str(packaged))
    run.aws.call("s3", "PutObject", Bucket=run.bucket, Key="packaged.yaml", Body=packaged.read_bytes())


def parameter_sets(run: Run) -> dict[str, dict[str, str]]:
    """Six deployments that differ in what they make."""
    network = run.aws.call("ec2", "DescribeSubnets", Filters=[{"Name": "default-for-az", "Values": ["true"]}])[
        "Subnets"
    ]
    if not network:
        raise SmokeError(f"{run.aws.region} has no default VPC, whose subnets a change set is to name")
    filters = [{"Name": "vpc-id", "Values": [network[0]["VpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    groups = run.aws.call("ec2", "DescribeSecurityGroups", Filters=filters)["SecurityGroups"]
    topic = f"arn:{run.partition}:sns:{run.aws.region}:{run.account}:{TAG}"
    # A change set asks IAM for none of them.
    roles = [f"arn:{run.partition}:iam::{run.account}:role/{TAG}-{name}" for name in ("drain", "schedules", "announcer")]
    return {
        "default": {},
        "vpc": {"SubnetIds": network[0]["SubnetId"], "SecurityGroupIds": groups[0]["GroupId"]},
        "webhook": {"Webhook": f"/{TAG}/webhook"},
        "topics": {"TopicArn": topic, "AlarmTopicArn": topic},
        "cordon-only": {"DrainOn": "off", "CordonOn": "spot,terminate", "DryRun": "true"},
        "roles": {"RoleArns": ",".join(roles)},
    }


def change_sets(run: Run) -> None:
    url = f"https://s3.{run.aws.region}.amazonaws.com{'.cn' if run.partition == 'aws-cn' else ''}/{run.bucket}/packaged.yaml"
    for name, parameters in parameter_sets(run).items():
        stack = f"{TAG}-{name}"
        run.aws.call(
            "cloudformation",
            "CreateChangeSet",
            StackName=stack,
            ChangeSetName=name,
            ChangeSetType="CREATE",
            TemplateURL=url,
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Tags=run.tags,
        )
        try:
            _until_made(run, stack, name)
            if name == "default":
                body = run.aws.call(
                    "cloudformation", "GetTemplate", StackName=stack, ChangeSetName=name, TemplateStage="Processed"
                )["TemplateBody"]
                # As the model has it, text; boto3 reads it where it is JSON.
                run.template = json.loads(body) if isinstance(body, str) else body
        finally:
            # A stack that has only a change set has nothing in it.
            run.aws.call("cloudformation", "DeleteStack", StackName=stack)


def _until_made(run: Run, stack: str, name: str) -> None:
    def look() -> dict[str, Any] | None:
        seen = run.aws.call("cloudformation", "DescribeChangeSet", StackName=stack, ChangeSetName=name)
        return seen if seen["Status"] in (MADE, REFUSED) else None

    seen = wait(f"the change set {name}", 300, look, run.pause)
    if seen["Status"] == REFUSED:
        raise SmokeError(f"the change set {name}: {seen.get('StatusReason')}")
    run.say(f"    {name}: {len(seen.get('Changes', []))} resources")


def patterns(run: Run) -> None:
    read = {path.stem: json.loads(path.read_text()) for path in sorted((run.bundle / "events").glob("*.json"))}
    # What the function tells itself is no event.
    samples = {name: {**event, "account": run.account} for name, event in read.items() if "source" in event}
    wrong, asked = [], 0
    for rule, properties in _of_type(run, "AWS::Events::Rule"):
        if "EventPattern" not in properties:
            continue
        pattern = properties["EventPattern"]
        ruler = Ruler({rule: pattern})
        for name, event in samples.items():
            asked += 1
            asking = {"EventPattern": json.dumps(pattern), "Event": json.dumps(event)}
            theirs = run.aws.call("events", "TestEventPattern", **asking)["Result"]
            # What the tests of this project count on.
            if theirs != (rule in ruler.rules_for(event)):
                wrong.append(f"{rule}: {name} {'passes' if theirs else 'does not pass'}")
    if wrong:
        raise SmokeError("EventBridge sees it otherwise than the tests: " + "; ".join(wrong))
    run.say(f"    {asked} answers as expected")


def policies(run: Run) -> None:
    found = []
    for name, kind, document in _policies(run):
        answer = run.aws.call("accessanalyzer", "ValidatePolicy", policyDocument=json.dumps(document), **kind)
        for finding in answer["findings"]:
            line = f"{name}: {finding['findingType']} {finding['issueCode']}: {finding['findingDetails']}"
            run.say(f"    {line}")
            if finding["findingType"] in ("ERROR", "SECURITY_WARNING"):
                found.append(line)
    if found:
        raise SmokeError("; ".join(found))


IDENTITY = {"policyType": "IDENTITY_POLICY"}
RESOURCE = {"policyType": "RESOURCE_POLICY"}
# A trust policy names no resource.
TRUST = {**RESOURCE, "validatePolicyResourceType": "AWS::IAM::AssumeRolePolicyDocument"}


def _policies(run: Run) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Each policy of the template, with what Access Analyzer is to take it for."""
    for name, role in _of_type(run, "AWS::IAM::Role"):
        yield f"{name}'s trust", TRUST, role["AssumeRolePolicyDocument"]
        for policy in role.get("Policies", []):
            yield f"{name}/{policy['PolicyName']}", IDENTITY, policy["PolicyDocument"]
    for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        for name, policy in _of_type(run, kind):
            yield name, IDENTITY, policy["PolicyDocument"]
    for name, policy in _of_type(run, "AWS::SQS::QueuePolicy"):
        yield name, RESOURCE, policy["PolicyDocument"]


def dashboard(run: Run) -> None:
    for _, properties in _of_type(run, "AWS::CloudWatch::Dashboard", _of_dashboard(run)):
        name = f"{run.name}-dashboard"
        body = properties["DashboardBody"]
        said = run.aws.call("cloudwatch", "PutDashboard", DashboardName=name, DashboardBody=body).get(
            "DashboardValidationMessages", []
        )
        run.aws.call("cloudwatch", "DeleteDashboards", DashboardNames=[name])
        if said:
            raise SmokeError("; ".join(f"the dashboard's {one.get('DataPath')}: {one.get('Message')}" for one in said))


def queries(run: Run) -> None:
    group = f"/{run.name}/queries"
    run.aws.call("logs", "CreateLogGroup", logGroupName=group, tags={TAG: run.name})
    try:
        for name, properties in _of_type(run, "AWS::Logs::QueryDefinition", _of_dashboard(run)):
            now = int(time.time())
            query = run.aws.call(
                "logs",
                "StartQuery",
                logGroupName=group,
                startTime=now - 3600,
                endTime=now,
                queryString=properties["QueryString"],
            )["queryId"]

            def look(query: str = query) -> str | None:
                status: str = run.aws.call("logs", "GetQueryResults", queryId=query)["status"]
                return status if status not in ("Scheduled", "Running") else None

            if (status := wait(f"the query {name}", 60, look, run.pause)) != ANSWERED:
                raise SmokeError(f"the query {name} ended as {status}")
    finally:
        run.aws.call("logs", "DeleteLogGroup", logGroupName=group)


def _of_dashboard(run: Run) -> dict[str, Any]:
    """The template of the dashboard, with values for its parameters."""
    template = read(run.bundle / "deploy/cloudformation/dashboard.yaml")
    for parameter in template["Parameters"].values():
        parameter["Default"] = "https://queue.example/account/failures" if "https" in parameter.get("AllowedPattern", "") else run.name
    return template


def _of_type(run: Run, kind: str, template: dict[str, Any] | None = None) -> Iterator[tuple[str, Any]]:
    template = template or run.template
    resolver = Resolver(template, run.account, run.aws.region, run.partition, run.name)
    for name, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield name, resolver.of(resource["Properties"])
