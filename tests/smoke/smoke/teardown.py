"""Taking away all that a run has made, whatever has happened: by name first, and then by the tag."""

from collections.abc import Callable

from botocore.exceptions import ClientError

from smoke.aws import is_gone, wait
from smoke.run import TAG, Run
from smoke.step import SmokeError

CLUSTER, SPILLWAY, DRILL = f"{TAG}-cluster", f"{TAG}-spillway", f"{TAG}-drill"


def everything(run: Run) -> None:
    """Goes on after each failure, and ends with what is left and what failed."""
    failed = []
    # Spillway first: its access entry is in the cluster.
    for what, remove in (
        (f"the stack {DRILL}", lambda: stack(run, DRILL)),
        (f"the stack {SPILLWAY}", lambda: stack(run, SPILLWAY)),
        (f"the stack {CLUSTER}", lambda: stack(run, CLUSTER)),
        (f"the bucket {run.bucket}", lambda: bucket(run)),
    ):
        if failure := _tried(remove):
            failed.append(f"{what}: {failure}")
    # What has been deleted a moment ago is still listed, so it is looked for until there is none.
    left: list[str] = []

    def none_left() -> bool:
        left[:] = tagged(run)
        return not left

    try:
        wait("nothing with the tag", 180, none_left, run.pause)
    except SmokeError:
        failed += [f"{arn}: it is still there" for arn in left]
    if failed:
        raise SmokeError("not taken away, look yourself: " + "; ".join(failed))


def stack(run: Run, name: str) -> None:
    """Twice: a resource that something still held the first time may go the second."""
    for last in (False, True):
        run.aws.call("cloudformation", "DeleteStack", StackName=name)
        status = wait(f"the end of {name}", 1800, lambda: _ended(run, name), run.pause)
        if status == "DELETE_COMPLETE":
            return
        if last:
            raise SmokeError(f"it ended as {status}")


def _ended(run: Run, name: str) -> str | None:
    try:
        status: str = run.aws.call("cloudformation", "DescribeStacks", StackName=name)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if is_gone(error):
            return "DELETE_COMPLETE"
        raise
    return status if status in ("DELETE_COMPLETE", "DELETE_FAILED") else None


def bucket(run: Run) -> None:
    try:
        while keys := run.aws.call("s3", "ListObjectsV2", Bucket=run.bucket).get("Contents"):
            objects = [{"Key": one["Key"]} for one in keys]
            run.aws.call("s3", "DeleteObjects", Bucket=run.bucket, Delete={"Objects": objects})
        run.aws.call("s3", "DeleteBucket", Bucket=run.bucket)
    except ClientError as error:
        if not is_gone(error):
            raise


def tagged(run: Run) -> list[str]:
    """What still has the tag of this run."""
    filters = [{"Key": TAG, "Values": [run.name]}]
    found = run.aws.call("resourcegroupstaggingapi", "GetResources", TagFilters=filters)["ResourceTagMappingList"]
    arns = [one["ResourceARN"] for one in found]
    # Instances are listed for an hour after their end.
    alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
    filters = [{"Name": f"tag:{TAG}", "Values": [run.name]}, alive]
    reservations = run.aws.call("ec2", "DescribeInstances", Filters=filters)["Reservations"]
    instances = {one["InstanceId"] for reservation in reservations for one in reservation["Instances"]}
    return [arn for arn in arns if ":instance/" not in arn or arn.rpartition("/")[2] in instances]


def _tried(remove: Callable[[], None]) -> str | None:
    try:
        remove()
    except (ClientError, SmokeError) as error:
        return str(error)
    return None
