"""Stand-in for STS GetCallerIdentity, behind a CONNECT proxy that ends the TLS: aws-iam-authenticator accepts only
STS's own hosts, and moto answers a presigned request as if it were S3's, in XML, whoever signed it.
"""

import json
import ssl
import sys
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from moto.core.request import Request

from bed_aws.call import Call
from bed_aws.credentials import Credentials, user_id
from bed_aws.errors import AwsError
from bed_aws.faults import Faults
from bed_aws.signature import Signed, check

AUTHORITY = "Spillway test bed"


class Tls:
    """TLS as the STS of a Region, with a certificate of an authority that lives as long as this run."""

    def __init__(self, region: str, folder: Path) -> None:
        regional = (f"sts.{region}.amazonaws.com", f"sts-fips.{region}.amazonaws.com", f"sts.{region}.api.aws")
        self.hosts = ("sts.amazonaws.com", *regional)
        authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in self.hosts])
        authority = _certificate(AUTHORITY, authority_key, authority_key, x509.BasicConstraints(True, 0))
        certificate = _certificate("STS", key, authority_key, names)

        self.authority = folder / "sts-proxy-ca.pem"
        self.authority.write_bytes(authority.public_bytes(Encoding.PEM))
        chain = folder / "sts-proxy.pem"
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, authority_key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
) -> x509.Certificate:
    def named(common_name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .sign(authority_key, SHA256())
    )


class _Proxy(ThreadingHTTPServer):
    # Of a burst of sign-ins that does not fit the kernel turns some away, and they come again a second later.
    request_queue_size = 128
    daemon_threads = True


class _Tunnel(BaseHTTPRequestHandler):
    """One connection: a CONNECT in the clear, then requests to STS inside its TLS."""

    protocol_version = "HTTP/1.1"
    host = ""

    def __init__(self, credentials: Credentials, faults: Faults, tls: Tls, *connection: object) -> None:
        self._credentials = credentials
        self._faults = faults
        self._tls = tls
        super().__init__(*connection)

    def do_CONNECT(self) -> None:
        self.host, _, port = self.path.partition(":")
        if self.host not in self._tls.hosts or port != "443":
            self.send_error(403, "this proxy stands in for STS and nothing else")
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        self.connection = self._tls.context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb")
        self.close_connection = False

    def finish(self) -> None:
        super().finish()
        # The server closes only the socket that it accepted, which the TLS has taken over.
        self.connection.close()

    def do_GET(self) -> None:
        status, answer = self._answer()
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self) -> tuple[int, dict[str, object]]:
        request_id = str(uuid.uuid4())
        try:
            if parse_qs(urlsplit(self.path).query).get("Action") != ["GetCallerIdentity"]:
                raise AwsError(400, "InvalidAction", "this stand-in for STS knows GetCallerIdentity only")
            self._faults.strike(Call.of(Request.from_values(self.path)))
            signed = Signed("GET", f"https://{self.host}{self.path}", self.headers, b"")
            role = check(signed, self._credentials, "query")
        except AwsError as refused:
            error = {"Type": "Sender", "Code": refused.code, "Message": refused.message}
            return refused.status, {"Error": error, "RequestId": request_id}
        identity = {"Account": role.account_id, "Arn": role.arn, "UserId": user_id(role)}
        result = {"GetCallerIdentityResult": identity, "ResponseMetadata": {"RequestId": request_id}}
        return 200, {"GetCallerIdentityResponse": result}

    def log_request(self, code: object = "-", size: object = "-") -> None:
        # Without the query: the presigned request is the token.
        print(f"sts proxy: {self.command} {self.host or self.path} {code}", file=sys.stderr)


def proxy(credentials: Credentials, faults: Faults, tls: Tls) -> ThreadingHTTPServer:
    return _Proxy(("127.0.0.1", 0), partial(_Tunnel, credentials, faults, tls))
