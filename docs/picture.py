#!/usr/bin/env python3
"""Draws docs/run.svg, the picture in the README, from a real run: `docs/picture.py CCM`.

Everything happens in a new folder, as whoever starts it.
"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MANIFEST = """\
data:
  port: 8080
ccm:
  resources:
    - file:
        - defaults: { owner: "%(uid)d", group: "%(gid)d", mode: "0644" }
        - %(folder)s/app.conf:
            content: "port = ${ Data.port }\\n"
    - exec:
        - reload:
            command: /bin/true
            refresh_only: true
            subscribe: ["file#%(folder)s/app.conf"]
"""

COMMANDS = [
    "ccm apply site.yaml",
    "ccm apply site.yaml",
    "ccm apply site.yaml --noop --data port=8081",
    "sed s/refresh_only/refersh_only/ site.yaml | ccm apply -",
]

COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#76e3ea", "91": "#ffa198", "94": "#79c0ff"}
LINE, CHARACTER, MARGIN = 20, 8.4, 16


def run(ccm, folder):
    """Returns the lines of a terminal in which the commands were typed."""
    tools = pathlib.Path(folder, "tools")
    tools.mkdir()
    tools.joinpath("ccm").write_text(f'#!/bin/sh\nexec {ccm} --color always "$@"\n')
    tools.joinpath("ccm").chmod(0o755)
    site = pathlib.Path(folder, "srv")
    site.mkdir()
    site.joinpath("site.yaml").write_text(MANIFEST % {"folder": site, "uid": os.getuid(), "gid": os.getgid()})
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "CCM_STATE_DIR": f"{folder}/state", "HOME": folder}
    lines = []
    for command in COMMANDS:
        lines.append(f"\x1b[1m$ {command}\x1b[0m")
        done = subprocess.run(
            command, shell=True, cwd=site, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines += done.stdout.replace(str(site), "/etc/app").rstrip("\n").split("\n") + [""]
    return lines[:-1]


def spans(line):
    """Returns a line with its colours as SVG."""
    out, style = "", ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code is None:
            out += f"<tspan{style}>{html.escape(part)}</tspan>" if part else ""
        elif code[1] in COLOURS:
            style += f' fill="{COLOURS[code[1]]}"'
        elif code[1] == "1":
            style += ' font-weight="bold"'
        else:
            style = ""
    return out


def main():
    ccm = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        lines = run(ccm, folder)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    width = int(max(map(len, plain)) * CHARACTER) + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + LINE * at + 14}">{spans(line)}</text>' for at, line in enumerate(lines)
    )
    pathlib.Path(__file__).with_name("run.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<title>{html.escape("; ".join(COMMANDS))}</title>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        '<g fill="#e6edf3" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" '
        f'xml:space="preserve">\n{rows}\n</g>\n</svg>\n'
    )


main()
