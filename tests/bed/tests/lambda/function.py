"""A Lambda function that does as its event says: what tests/lambda.rs drives.

It speaks the Runtime API by itself, over one connection, as a runtime for another language would.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time

api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])


def call(method, path, body=None, headers=None):
    api.request(method, "/2018-06-01/runtime" + path, body=body, headers=headers or {})
    answer = api.getresponse()
    return answer.status, answer.headers, answer.read()


def log(line, stream=sys.stdout):
    print(line, file=stream, flush=True)


match os.environ.get("INIT"):
    case "error":
        log("a setting is wrong")
        call("POST", "/init/error", '{"errorType":"Settings","errorMessage":"SPILLWAY_X is wrong"}')
        sys.exit(1)
    case "exit":
        sys.exit(3)
    case "hang":
        time.sleep(60)

invocations = 0
while True:
    _, headers, event = call("GET", "/invocation/next")
    invocations += 1
    request = "/invocation/" + headers["Lambda-Runtime-Aws-Request-Id"]
    respond = lambda answer: call("POST", request + "/response", json.dumps(answer))[0]
    try:
        event = json.loads(event)
    except ValueError:
        event = {"do": "fail", "message": "not JSON: " + event.decode()}
    match event["do"]:
        case "count":
            respond({"invocations": invocations, "pid": os.getpid(), "event": event})
        case "headers":
            respond(dict(headers))
        case "environment":
            respond(dict(os.environ))
        case "print":
            log("one")
            log("two", sys.stderr)
            log("three")
            respond(None)
            sys.stdout.write("after the answer\nwithout an end")
            sys.stdout.flush()
        case "flood":
            for n in range(20_000):
                print(f"line {n} of more than a pipe holds", flush=False)
            sys.stdout.flush()
            respond(None)
        case "fail":
            body = {"errorType": "Unreadable", "errorMessage": event["message"], "chain": ["because"]}
            call("POST", request + "/error", json.dumps(body))
        case "fail-until":
            if invocations < event["attempt"]:
                call("POST", request + "/error", '{"errorType":"NotYet","errorMessage":"again"}')
            else:
                respond(invocations)
        case "exit":
            log("leaving")
            sys.exit(event["code"])
        case "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        case "hang":
            log("hanging")
            time.sleep(60)
        case "kill-the-test-and-hang":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "answer-and-hang":
            respond("answered")
            time.sleep(60)
        case "wrong-request":
            refused = call("POST", "/invocation/00000000-0000-4000-8000-000000000000/response", "1")
            init = call("POST", "/init/error", "{}")
            respond([refused[0], json.loads(refused[2])["errorType"], init[0]])
        case "answer-twice":
            respond(1)
            log(f"the second was answered {respond(2)}")
        case "start-child":
            child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            respond(child.pid)
        case "tick":
            # Something that goes on between invocations, unless the process is frozen.
            if not os.fork():
                while True:
                    with open(event["file"], "a") as file:
                        file.write(".")
                    time.sleep(0.005)
            respond(None)
