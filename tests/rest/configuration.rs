//! Error messages of a wrong configuration.

use crate::has;
use wharf_tests::{Server, simulated_node};

#[test]
fn errors_name_the_setting_and_the_valid_values() {
    let node = simulated_node("one", "");
    for (settings, expected) in [
        (String::new(), "node"),
        (format!("listne = 1\n{node}"), "listne"),
        (format!("{node}colour = 1\n"), "colour"),
        (format!("[limits]\nanswer_wait = 1\n{node}"), "answer_wait"),
        // A retired setting is accepted, and lines have their numbers nevertheless.
        (
            format!("[limits]\nstreams_per_connection = 1\nanswer_wait = 1\n{node}"),
            " | answer_wait",
        ),
        (
            format!("[limits]\nidle_timeout_ms = 0\n{node}"),
            "`limits.idle_timeout_ms`: must be at least 1",
        ),
        (format!("{node}{node}"), "twice"),
        (
            node.replace("settings", "cpu_overcommit = 0.5\nsettings"),
            "`node.one.cpu_overcommit`: must be from 1 to 100",
        ),
        (
            node.replace("settings", "private_address = \"0.0.0.0\"\nsettings"),
            "`node.one.private_address`: must be one address of the node",
        ),
        (
            simulated_node("one", "publish_cidr = \"198.18.64.0/18\"")
                .replace("settings", "private_address = \"127.0.0.1\"\nsettings"),
            "`node.one.private_address`: has no use with `settings.publish_cidr`",
        ),
        (format!("login_user = \"root\"\n{node}"), "login_user"),
        (
            format!("[ssh_ports]\nfrom = 40000\nto = 41000\n{node}"),
            "ip_local_port_range",
        ),
        (
            format!("[ssh_ports]\nfrom = 3000\nto = 2000\n{node}"),
            "ssh_ports",
        ),
        (
            format!("[web]\nfrom = 29000\nto = 30000\n{node}"),
            "overlap",
        ),
        (
            format!("[rates.general-purpose]\nvcpu = -1\n{node}"),
            "vcpu",
        ),
        (node.replace("\"simulated\"", "\"floppy\""), "floppy"),
        (node.replace("simulated:", "http://1.2.3.4"), "endpoint"),
        (
            simulated_node("one", "ready = 1"),
            "`node.one`: settings: unknown field `ready`",
        ),
        (
            node.replace(
                "settings",
                "gpus = [{ model = \"X1\", count = 1 }]\nsettings",
            ),
            "X1",
        ),
    ] {
        let message = Server::refused(&settings).unwrap();
        has(&message, expected);
        assert!(!message.contains("panicked"), "{message}");
    }
}
