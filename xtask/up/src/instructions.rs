//! The next steps, as commands to paste.

use super::account::Account;
use serde_json::Value;
use std::path::Path;
use wharf_testkit::server::Server;

/// Prints the instructions to stdout: they are the result of `up`.
pub(super) fn print(server: &Server, account: &Account, config: &Path, instance: &Value) {
    let url = server.url();
    let key = format!(
        "-H \"Authorization: Bearer $(cat {})\"",
        account.key_file.display()
    );
    let login = match instance.get("ssh_command").and_then(Value::as_str) {
        Some(ssh) => format!("{ssh} -i {}", account.ssh.path().display()),
        None => "(this instance has no SSH)".to_owned(),
    };
    println!(
        "
Wharf is up at {url}   (docs: {url}/api/docs/)

List your instances:
  curl {key} {url}/api/instance/
Log in to the first instance (or without -i, with its original_service_password):
  {login}
Create another instance:
  curl {key} -H 'Content-Type: application/json' {url}/api/instance/ \\
    -d '{{\"resource_type\":\"container\",\"n_vcpus\":1,\"mem_gib\":1,\"disk_size_gib\":10}}'
Stop, restart or delete it:
  curl {key} -X POST {url}/api/instance/hello/stop/
  curl {key} -X POST {url}/api/instance/hello/restart/
  curl {key} -X DELETE {url}/api/instance/hello/

Configuration: {config}
Ctrl-C stops Wharf and its instances; their disks stay for the next time.
",
        config = config.display(),
    );
}
