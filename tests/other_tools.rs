//! Options, tasks and playbooks of other tools: the error names the replacement in ccm.

use crate::support::World;

#[test]
fn options_of_other_tools_are_rejected_with_the_option_of_ccm() {
    let world = World::new().manifest("[]");
    for (option, replacement) in [
        (&["--tags", "web"][..], "use `--only tag:NAME`"),
        (&["--skip-tags", "web"], "use `--skip tag:NAME`"),
        (&["--check"], "use `--noop`"),
        (&["-e", "port=80"], "use `--data KEY=VALUE`"),
        (&["--extra-vars=port=80"], "use `--data KEY=VALUE`"),
        (&["--vault-password-file", "x"], "use `--identity FILE`"),
    ] {
        let arguments = [&["apply", "site.yaml"], option].concat();
        world.ccm(arguments).run().exits(2).complains("unexpected argument").complains(replacement);
    }
    // With `ensure exec`, `-e` sets a variable of the command.
    world.ccm(["ensure", "exec", "test $A = b", "--provider", "shell", "-e", "A=b"]).run().exits(0);
}

#[test]
fn ansible_tasks_and_playbooks_are_recognized_once() {
    let task =
        "- name: Install nginx\n  ansible.builtin.apt: { name: nginx, state: present }\n  become: true\n";
    let world = World::new().manifest(&format!("{task}{task}"));
    let outcome = world.validate();
    outcome.exits(2).complains("error[ansible-content]: this is an Ansible task, not a ccm resource");
    outcome.complains("declare `package`");
    assert_eq!(outcome.stderr.matches("error[").count(), 1, "{outcome}");

    let known = World::new().manifest("- name: Create the user\n  user: { name: app }\n");
    known.validate().exits(2).complains("this is an Ansible task").complains("declare `user`");
    let playbook = World::new().manifest("- hosts: all\n  tasks: [{ name: x, command: uptime }]\n");
    playbook.validate().exits(2).complains("this is an Ansible playbook, not a ccm manifest");
    let entry = World::new().manifest("- file: []\n  exec: []\n");
    entry.validate().exits(2).complains("error[malformed-entry]");
}
