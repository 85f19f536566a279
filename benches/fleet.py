#!/usr/bin/env python3
"""Compares pushes over ssh: ccm, ssh alone, scp, Ansible and pyinfra on the same sshd servers.

Usage: fleet.py CCM [--hosts 200] [--page docs/benchmarks.md]

Each host is a network namespace with an sshd and directories of its own. ANSIBLE and PYINFRA name the programs; without one, its
rows are missing. Needs root. Exits with status 1 if a target is missed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

NAME = "ccmbench"
OWN = ["/var/lib/ccm", "/root", "/usr/local/lib", "/opt"]
FILES = 100
START, END = "<!-- begin: make bench-fleet -->", "<!-- end: make bench-fleet -->"


def sh(script, **options):
    return subprocess.run(["sh", "-ec", script], check=True, text=True, capture_output=True, **options).stdout


class Lab:
    """Hosts 10.9.0.1 and following, and a controller in a namespace of its own."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.directory = tempfile.mkdtemp(prefix="ccm-bench-")
        sh(f"""ip netns add {NAME}; ip -n {NAME} link set lo up; ip -n {NAME} link add bridge0 type bridge
            ip -n {NAME} address add 10.9.0.254/24 dev bridge0; ip -n {NAME} link set bridge0 up; mkdir -p /run/sshd
            ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f hostkey; mkdir home""", cwd=self.directory)
        for host in range(1, hosts + 1):
            self.boot(host)
        key = " ".join(self.read("hostkey.pub").split()[:2])
        self.write("known_hosts", "".join(f"10.9.0.{host} {key}\n" for host in range(1, hosts + 1)))
        self.write("ssh_config", f"User root\nIdentityFile {self.directory}/key\nIdentitiesOnly yes\n"
                   f"UserKnownHostsFile {self.directory}/known_hosts\nStrictHostKeyChecking yes\nLogLevel ERROR\n")
        self.write("ssh", f"#!/bin/sh\nexec ssh -F {self.directory}/ssh_config \"$@\"\n")
        os.chmod(f"{self.directory}/ssh", 0o755)

    def boot(self, host):
        root, space = f"{self.directory}/host{host}", f"{NAME}h{host}"
        for own in OWN:
            os.makedirs(root + own, mode=0o700)
        self.write(f"host{host}/sshd_config", f"ListenAddress 10.9.0.{host}\nHostKey {self.directory}/hostkey\nPidFile {root}/pid\n"
                   "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
                   f"MaxStartups 300\nAuthorizedKeysFile {self.directory}/key.pub\nSubsystem sftp internal-sftp\n")
        binds = "; ".join(f"mkdir -p {own}; mount --bind {root}{own} {own}" for own in OWN)
        sh(f"""ip netns add {space}; ip link add {space} netns {NAME} type veth peer name eth0 netns {space}
            ip -n {NAME} link set {space} master bridge0 up; ip -n {space} address add 10.9.0.{host}/24 dev eth0
            ip -n {space} link set eth0 up; ip -n {space} link set lo up
            ip netns exec {space} unshare --mount --uts sh -ec 'hostname host{host}; {binds}; mount -t tmpfs tmpfs /run
            mkdir -p /run/sshd; exec /usr/sbin/sshd -E {root}/log -f {root}/sshd_config'""")

    def read(self, name):
        with open(f"{self.directory}/{name}", encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(f"{self.directory}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def names(self, count):
        return [f"10.9.0.{host}" for host in range(1, count + 1)]

    def run(self, words, statuses=(0,), **environment):
        """Runs a command of the controller: seconds, MiB of the largest process, and its output."""
        before = time.monotonic()
        process = subprocess.Popen(["ip", "netns", "exec", NAME, *words], cwd=self.directory, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**os.environ, "HOME": f"{self.directory}/home", "CCM_STATE_DIR": f"{self.directory}/state",
                                        **environment})
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - before
        if os.waitstatus_to_exitcode(status) not in statuses:
            sys.exit(f"{' '.join(words)[:200]} failed:\n{output[-2000:]}")
        return seconds, usage.ru_maxrss / 1024, output

    def stop(self):
        spaces = [line.split()[0] for line in sh("ip netns list").splitlines() if line.startswith(NAME)]
        for space in spaces:
            sh(f"ip netns pids {space} | xargs -r kill -9; ip netns delete {space}")
        shutil.rmtree(self.directory, ignore_errors=True)


class Bench:
    def __init__(self, lab, ccm):
        self.lab, self.ccm = lab, ccm
        self.rows, self.targets = [], []
        files = "".join(f"    - /opt/files/{number}: {{ content: \"file {number}\\n\" }}\n" for number in range(FILES))
        lab.write("site.yaml", "- file:\n    - defaults: { owner: root, group: root, mode: \"0644\" }\n"
                  f"    - /opt/files: {{ ensure: directory }}\n{files}")

    def push(self, count, *more, manifest="site.yaml", **options):
        hosts = ",".join(self.lab.names(count))
        words = [self.ccm, "apply", manifest, "--on", hosts, "--ssh", f"{self.lab.directory}/ssh", "--parallel", str(min(count, 50))]
        return self.lab.run([*words, *more], **options)

    def row(self, what, seconds, note=""):
        self.rows.append((what, f"{seconds:.2f} s", note))
        print(f"{what}: {seconds:.2f} s {note}", flush=True)

    def target(self, what, found, is_met):
        self.targets.append((what, found, is_met))
        print(f"{'met' if is_met else 'MISSED'}: {what}: {found}", flush=True)

    def first_push(self):
        """The first push to a host without the program, against scp of the compressed program and a run."""
        directory = self.lab.directory
        sh(f"gzip -6 -c {self.ccm} > {directory}/ccm.gz")
        firsts, copies = [], []
        for _ in range(3):
            sh(f"rm -rf {directory}/host1/var/lib/ccm/*")
            firsts.append(self.push(1, manifest="one.yaml")[0])
            run = self.push(1, manifest="one.yaml")[0]
            copy = self.lab.run(["scp", "-q", "-F", "ssh_config", "ccm.gz", "10.9.0.1:/opt/ccm.gz"])[0]
            copies.append(copy + run)
        first, copy = min(firsts), min(copies)
        self.row("first push to a host without ccm", first)
        self.row("scp of the compressed program, and a run", copy)
        self.target("first push ≤ 1.2 × scp and a run", f"{first / copy:.2f} ×", first <= 1.2 * copy)

    def twenty(self):
        hosts = " ".join(self.lab.names(20))
        logins = f"printf '%s\\n' {hosts} | xargs -P20 -I@ ./ssh @ true"
        self.push(20)
        login, push = [], []
        for _ in range(9):
            login.append(self.lab.run(["sh", "-c", logins])[0])
            push.append(self.push(20, "--json")[0])
        best_login, best_push = min(login), min(push)
        self.row("20 hosts: `ssh HOST true`", best_login, f"median {statistics.median(login):.2f} s")
        self.row("20 hosts: ccm, 100 unchanged files each", best_push, f"median {statistics.median(push):.2f} s")
        self.target("20 hosts ≤ 1.3 × ssh", f"{best_push / best_login:.2f} ×", best_push <= 1.3 * best_login)
        return best_push

    def ansible(self, push):
        program = os.environ.get("ANSIBLE", "")
        if not os.path.exists(program):
            return print("Ansible: not installed")
        tasks = [{"name": "directory", "file": {"path": "/opt/files", "state": "directory", "mode": "0755"}}]
        tasks.append({"name": "files", "copy": {"dest": "/opt/files/{{ item }}", "content": "file {{ item }}\n", "owner": "root",
                      "group": "root", "mode": "0644"}, "loop": list(range(FILES))})
        self.lab.write("play.yml", json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        self.lab.write("hosts", "\n".join(self.lab.names(20)) + "\n")
        self.lab.write("ansible.cfg", "[defaults]\nforks = 20\nhost_key_checking = True\ninterpreter_python = /usr/bin/python3\n[ssh_connection]\n"
                       f"pipelining = True\nssh_args = -F {self.lab.directory}/ssh_config -o ControlMaster=auto -o ControlPersist=60s\n")
        seconds, _, output = self.lab.run([program, "-i", "hosts", "play.yml"], ANSIBLE_CONFIG=f"{self.lab.directory}/ansible.cfg",
                                          LC_ALL="C.UTF-8")
        if "changed=0" not in output or "changed=1" in output:
            sys.exit(f"Ansible changed files:\n{output[-2000:]}")
        self.row("20 hosts: Ansible, the same files", seconds, "forks 20, pipelining")
        self.target("20 hosts ≥ 30 × faster than Ansible", f"{seconds / push:.0f} ×", seconds >= 30 * push)

    def pyinfra(self, push):
        program = os.environ.get("PYINFRA", "")
        if not os.path.exists(program):
            return print("pyinfra: not installed")
        self.lab.write("deploy.py", "from io import StringIO\nfrom pyinfra.operations import files\nfiles.directory(path='/opt/files', mode='755')\n"
                       f"for n in range({FILES}):\n    files.put(src=StringIO(f'file {{n}}\\n'), dest=f'/opt/files/{{n}}', user='root', group='root', "
                       "mode='644')\n")
        data = {"ssh_user": "root", "ssh_key": f"{self.lab.directory}/key", "ssh_known_hosts_file": f"{self.lab.directory}/known_hosts"}
        self.lab.write("inventory.py", f"hosts = ({self.lab.names(20)!r}, {data!r})\n")
        seconds, _, output = self.lab.run([program, "-y", "--parallel", "20", "inventory.py", "deploy.py"])
        self.row("20 hosts: pyinfra, the same files", seconds, "parallel 20")
        self.target("20 hosts ≥ 10 × faster than pyinfra", f"{seconds / push:.0f} ×", seconds >= 10 * push)

    def many(self, count):
        """Time and memory against the number of hosts."""
        found = {}
        for hosts in (count // 4, count // 2, count):
            self.push(hosts)
            seconds, mebibytes, _ = self.push(hosts)
            found[hosts] = (seconds, mebibytes)
            self.row(f"{hosts} hosts: ccm, 100 unchanged files each", seconds, f"{mebibytes:.0f} MiB")
        (few, all_), per = (found[count // 4], found[count]), found[count][0] / count / (found[count // 4][0] / (count // 4))
        self.target("time is linear in the number of hosts", f"{per:.2f} × per host", per <= 1.3)
        self.target("controller ≤ 100 MiB", f"{all_[1]:.0f} MiB for {count} hosts", all_[1] <= 100)
        each = max(all_[1] - few[1], 0) / (count - count // 4)
        self.target("controller ≤ 2 MiB per host", f"{each:.2f} MiB", each <= 2)

    def groups(self):
        for host in range(1, 21):
            path = f"{self.lab.directory}/host{host}/opt/motd"
            if os.path.exists(path):
                os.remove(path)
            if host % 3:
                with open(path, "w", encoding="utf-8") as file:
                    file.write("old\n" if host % 3 == 1 else "managed\n")
        _, _, output = self.push(20, "--noop", "--json", manifest="one.yaml")
        groups = json.loads(output.splitlines()[-1])["groups"]
        self.target("dry run with 3 results: 3 groups", f"{len(groups)} groups", len(groups) == 3)

    def section(self):
        version = subprocess.run([self.ccm, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        cores = len(os.sched_getaffinity(0))
        lines = [START, "", "## Many machines over SSH", "",
                 f"`make bench-fleet` measures pushes to real `sshd` servers in network namespaces of one machine ({cores} cores, "
                 f"Linux {os.uname().release}), with {version}. The servers share the processor with the controller.", "",
                 "| | best time | |", "|---|--:|---|"]
        lines += [f"| {what} | {seconds} | {note} |" for what, seconds, note in self.rows]
        lines += ["", "| target | found | |", "|---|--:|---|"]
        lines += [f"| {what} | {found} | {'met' if met else 'missed'} |" for what, found, met in self.targets]
        return "\n".join([*lines, "", END, ""])


def write_page(path, section):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if START in page:
        page = page[:page.index(START)] + section.rstrip("\n") + page[page.index(END) + len(END):]
    else:
        page = page.rstrip("\n") + "\n\n" + section
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ccm")
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--page")
    options = parser.parse_args()
    # Every connection of the controller has three pipes.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    lab = Lab(max(options.hosts, 20))
    try:
        bench = Bench(lab, os.path.abspath(options.ccm))
        lab.write("one.yaml", "- file:\n    - /opt/motd: { content: \"managed\\n\", owner: root, group: root, mode: \"0644\" }\n")
        bench.first_push()
        push = bench.twenty()
        bench.groups()
        bench.many(lab.hosts)
        bench.pyinfra(push)
        bench.ansible(push)
    finally:
        lab.stop()
    if options.page:
        write_page(options.page, bench.section())
    if not all(met for _, _, met in bench.targets):
        sys.exit(1)


main()
