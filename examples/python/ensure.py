#!/usr/bin/env python3
"""Brings files to a state from Python: one ccm process, many requests, one session."""

import json
import subprocess
import sys

REQUEST = "io.choria.ccm.v1.resource.ensure.request"


class Ccm:
    """Speaks with `ccm ensure api serve`: a request per line, an answer per line."""

    def __init__(self, *flags):
        command = ["ccm", "ensure", "api", "serve", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ensure(self, type, name, **properties):
        """The event of the resource; an error when the request could not be attempted."""
        request = {"protocol": REQUEST, "type": type, "properties": {"name": name, **properties}}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["state"]


if __name__ == "__main__":
    folder, owner, group = sys.argv[1:4]
    with Ccm() as ccm:
        mine = {"owner": owner, "group": group}
        events = [
            ccm.ensure("file", folder, ensure="directory", mode="0755", **mine),
            ccm.ensure("file", f"{folder}/app.conf", content="port = 8080\n", mode="0644", require=[f"file#{folder}"], **mine),
        ]
    for event in events:
        word = "failed" if event["failed"] else "skipped" if event["skipped"] else "changed" if event["changed"] else "stable"
        print(word, f"{event['type']}#{event['name']}", *event["error"])
    sys.exit(any(event["failed"] or event["skipped"] for event in events))
