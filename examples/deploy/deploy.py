#!/usr/bin/env python3
"""An application from its release, from Python: deploy.py URL SHA256"""
import json, pathlib, subprocess, sys

url, checksum = sys.argv[1:]
here = pathlib.Path(__file__).parent
ccm = subprocess.Popen(["ccm", "ensure", "api", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ensure(type, name, **properties):
    request = {"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": type, "properties": {"name": name, **properties}}
    print(json.dumps(request), file=ccm.stdin, flush=True)
    answer = json.loads(ccm.stdout.readline())
    event = answer.get("state") or sys.exit(answer["error"])
    word = "failed" if event["failed"] else "skipped" if event["skipped"] else "changed" if event["changed"] else "stable"
    print(word, f"{type}#{name}", *event["error"])
    if event["failed"] or event["skipped"]:
        sys.exit(1)


root = {"owner": "root", "group": "root"}
archive = "archive#/opt/dl/app.tar.gz"
unit = "/etc/systemd/system/app.service"
ensure("file", "/opt/dl", ensure="directory", mode="0755", **root)
ensure("archive", "/opt/dl/app.tar.gz", url=url, checksum=checksum, extract_parent="/opt/app",
       creates="/opt/app/bin/app", require=["file#/opt/dl"], **root)
ensure("file", "/etc/app.conf", content=(here / "app.conf").read_text(), mode="0644", require=[archive], **root)
ensure("file", unit, content=(here / "app.service").read_text(), mode="0644", **root)
ensure("service", "app", enable=True, require=[archive], subscribe=["file#/etc/app.conf", f"file#{unit}"])
ccm.stdin.close()
sys.exit(ccm.wait())
