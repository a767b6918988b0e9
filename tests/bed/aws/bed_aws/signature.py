"""SigV4 of a request, checked as AWS checks it; moto checks none. botocore does the arithmetic."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from moto.sts.models import AssumedRole

from bed_aws.credentials import Credentials
from bed_aws.errors import AwsError

MAX_SKEW = timedelta(minutes=5)
# A presigned GetCallerIdentity is good for this long, whatever its X-Amz-Expires says.
MAX_PRESIGNED_AGE = timedelta(minutes=15)

_INVALID_TOKEN = "The security token included in the request is invalid."
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
# Status, code and message in EC2, in a query, and in anything else. EC2 has one answer for an unknown key and a wrong
# signature.
_EC2_FAILURE = (401, "AuthFailure", "AWS was not able to validate the provided access credentials")
_MISSING = {
    "ec2": _EC2_FAILURE,
    "query": (403, "MissingAuthenticationToken", "Request is missing Authentication Token"),
    "": (403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
}
_UNKNOWN = {
    "ec2": _EC2_FAILURE,
    "query": (403, "InvalidClientTokenId", _INVALID_TOKEN),
    "": (403, "UnrecognizedClientException", _INVALID_TOKEN),
}
_WRONG = {
    "ec2": _EC2_FAILURE,
    "query": (403, "SignatureDoesNotMatch", _MISMATCH),
    "": (403, "InvalidSignatureException", _MISMATCH),
}


@dataclass(frozen=True)
class Signed:
    """A request as it was sent: nothing decoded, nothing normalised."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class _Claim:
    """What the request says of its own signature, in its Authorization header or its query."""

    access_key_id: str
    region: str
    service: str
    signed_headers: list[str]
    signature: str
    timestamp: str
    token: str
    max_age: timedelta


def check(signed: Signed, credentials: Credentials, protocol: str) -> AssumedRole:
    """Who signed this; an AwsError when AWS would refuse it."""
    protocol = protocol if protocol in _WRONG else ""
    claim = _claim(signed)
    if claim is None:
        raise AwsError(*_MISSING[protocol])
    role = credentials.find(claim.access_key_id)
    if role is None or not hmac.compare_digest(role.session_token.encode(), claim.token.encode()):
        raise AwsError(*_UNKNOWN[protocol])
    if not (_is_timely(claim) and hmac.compare_digest(_signature(signed, claim, role), claim.signature)):
        raise AwsError(*_WRONG[protocol])
    return role


def _claim(signed: Signed) -> _Claim | None:
    headers = {name.lower(): value for name, value in signed.headers.items()}
    algorithm, _, fields = headers.get("authorization", "").partition(" ")
    try:
        if algorithm == "AWS4-HMAC-SHA256":
            said = dict(field.strip().split("=", 1) for field in fields.split(","))
            timestamp, token, max_age = headers["x-amz-date"], headers.get("x-amz-security-token", ""), MAX_SKEW
        else:
            query = parse_qs(urlsplit(signed.url).query, strict_parsing=True)
            said = {name.removeprefix("X-Amz-"): value for name, [value] in query.items()}
            timestamp, token, max_age = said["Date"], said.get("Security-Token", ""), MAX_PRESIGNED_AGE
        access_key_id, _, region, service, _ = said["Credential"].split("/")
        signed_headers = said["SignedHeaders"].split(";")
        return _Claim(access_key_id, region, service, signed_headers, said["Signature"], timestamp, token, max_age)
    except (KeyError, ValueError):
        return None


def _is_timely(claim: _Claim) -> bool:
    try:
        signed_at = datetime.strptime(claim.timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return abs(datetime.now(UTC) - signed_at) <= claim.max_age


def _signature(signed: Signed, claim: _Claim, role: AssumedRole) -> str:
    url, _, query = signed.url.partition("?")
    unsigned_query = "&".join(part for part in query.split("&") if not part.startswith("X-Amz-Signature="))
    # botocore signs every header it is given. The body is hashed again: what the client says of it proves nothing.
    headers = {name.lower(): value for name, value in signed.headers.items()}
    headers = {name: value for name, value in headers.items() if name in claim.signed_headers}
    if "x-amz-content-sha256" in headers:
        headers["x-amz-content-sha256"] = sha256(signed.body).hexdigest()
    request = AWSRequest(signed.method, f"{url}?{unsigned_query}" if query else url, headers, signed.body)
    request.context["timestamp"] = claim.timestamp
    keys = BotocoreCredentials(role.access_key_id, role.secret_access_key, role.session_token)
    auth = SigV4Auth(keys, claim.service, claim.region)
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
