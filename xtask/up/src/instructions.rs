//! The next steps, as commands to paste.

use super::account::Account;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::Path;
use wharf_testkit::server::Server;

/// Prints the instructions to stdout: they are the result of `up`.
pub(super) fn print(
    server: &Server,
    account: &Account,
    link: &str,
    config: &Path,
    host: Ipv4Addr,
    first: Option<&Value>,
) {
    let url = server.url();
    let key = format!(
        "-H \"Authorization: Bearer $(cat {})\"",
        account.key_file.display()
    );
    let login = first.and_then(|first| first.get("ssh_command")?.as_str());
    let name = if first.is_some() { "hello" } else { "NAME" };
    let login = match login {
        Some(ssh) => format!(
            "Log in to the first instance (or without -i, with its original_service_password):\n  \
             {ssh} -i {}\n",
            account.ssh.path().display()
        ),
        None => String::new(),
    };
    let reach = if host.is_loopback() {
        String::new()
    } else {
        format!("Instances are at {host}, an address that only this machine reaches.\n")
    };
    println!(
        "
Wharf is up at {url}   (docs: {url}/api/docs/)

Open the console in a browser; the link is valid once, for 72 hours. It opens pages of instances, too:
  {link}
List your instances:
  curl {key} {url}/api/instance/
{login}{reach}Create another instance:
  curl {key} -H 'Content-Type: application/json' {url}/api/instance/ \\
    -d '{{\"resource_type\":\"container\",\"n_vcpus\":1,\"mem_gib\":1,\"disk_size_gib\":10}}'
Stop, restart or delete an instance:
  curl {key} -X POST {url}/api/instance/{name}/stop/
  curl {key} -X POST {url}/api/instance/{name}/restart/
  curl {key} -X DELETE {url}/api/instance/{name}/

Configuration: {config}
Ctrl-C stops Wharf and its instances; their disks stay for the next time.
",
        config = config.display(),
    );
}
