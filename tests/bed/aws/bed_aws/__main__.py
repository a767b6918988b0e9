"""Starts the AWS side and says in the port file where it listens; runs until SIGTERM or SIGINT."""

import argparse
import contextlib
import json
import os
import signal
from pathlib import Path
from threading import Thread

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from bed_aws import sts
from bed_aws.app import App
from bed_aws.eks import Cluster
from bed_aws.moto_side import Moto
from bed_aws.state import State

SIGNALS = (signal.SIGTERM, signal.SIGINT)
# In a storm 750 functions connect in the same second. Of those that werkzeug's 128 places do not hold, Linux drops the first packets,
# and each tries again after one second, two, four.
CONNECTIONS_THAT_WAIT = 4096
# AWS does not share its processors with those who call it. On two cores 750 functions left it so little that it answered no call within
# the seconds that they wait, and each call was made again. Only root may go first.
GOES_FIRST = -20


class Handler(MotoRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """The journal writes the AWS calls; the bed's own are of no interest."""


def main() -> None:
    options = _options()
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, GOES_FIRST)
    # Before the first thread, so that the signals wait for sigwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    access = options.dir / "access"
    access.mkdir()
    state = State(Moto(options.account, options.region), options.template, access, options.rights)
    for cluster in options.cluster:
        # Its endpoint comes with `put_cluster`, when there is an API server.
        state.eks.put(Cluster(cluster, endpoint="", ca="", status="CREATING"))
    tls = sts.Tls(options.region, options.dir)
    http = make_server("127.0.0.1", 0, App(state), threaded=True, request_handler=Handler)
    proxy = sts.proxy(state.credentials, state.faults, tls)
    for server in (http, proxy):
        server.socket.listen(CONNECTIONS_THAT_WAIT)
        Thread(target=server.serve_forever, daemon=True).start()
    # In one step: whoever waits for the file never reads half of it.
    draft = options.port_file.with_suffix(".draft")
    draft.write_text(json.dumps({"http": http.port, "proxy": proxy.server_port, "proxy_ca": str(tls.authority)}))
    os.replace(draft, options.port_file)
    signal.sigwait(SIGNALS)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bed_aws", description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True, help="written when everything listens, as JSON")
    parser.add_argument("--dir", type=Path, required=True, help="for its own files")
    parser.add_argument("--template", type=Path, required=True, help="the product's: as written, or transformed")
    parser.add_argument("--rights", type=Path, help="a file that each right that was asked for is written to, a line each")
    parser.add_argument("--cluster", action="append", required=True, help="a cluster of this bed")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--account", default="123456789012")
    return parser.parse_args()


if __name__ == "__main__":
    main()
