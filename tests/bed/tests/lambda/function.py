"""A Lambda function that does as its event says: what tests/lambda.rs drives.

It speaks the Runtime API by itself, over one connection, as a runtime for another language would.
"""

import http.client
import json
import os
import subprocess
import sys
import time

api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])


def call(method, path, body=None, headers=None):
    api.request(method, "/2018-06-01/runtime" + path, body=body, headers=headers or {})
    answer = api.getresponse()
    return answer.status, answer.headers, answer.read()


def log(line):
    print(line, flush=True)


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
    event = json.loads(event)
    match event["do"]:
        case "count":
            respond({"invocations": invocations, "pid": os.getpid(), "event": event})
        case "fail":
            body = {"errorType": "Unreadable", "errorMessage": event["message"]}
            call("POST", request + "/error", json.dumps(body))
        case "hang":
            log("hanging")
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
