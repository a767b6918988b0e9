"""How much a page of an answer holds: AWS may give less than was asked for, and a test may want pages to be turned."""

from urllib.parse import urlencode

from bed_aws.call import Call
from bed_aws.errors import BedError

# DescribeInstances' own, when the caller asks for no number.
INSTANCES_ON_A_PAGE = 1000


class Pages:
    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}

    def put(self, access_key_id: str, size: int) -> None:
        if size < 1:
            raise BedError("a page holds something")
        self._sizes[access_key_id] = size

    def size(self, access_key_id: str, asked: int) -> int:
        return min(asked, self._sizes.get(access_key_id, asked))

    def shortened(self, call: Call) -> bytes:
        """The body of a call to EC2, asking for no more than this caller's pages hold. moto's own pages hold 100."""
        form = call.request.form
        # One that names instances has a single page, and EC2 refuses it a size.
        if call.action != "DescribeInstances" or "InstanceId.1" in form:
            return call.request.get_data()
        size = self.size(call.access_key_id, int(form.get("MaxResults", INSTANCES_ON_A_PAGE)))
        return urlencode({**form, "MaxResults": size}).encode()
