//! Pebble: a certificate authority with the protocol ACME, and a DNS for it, on this machine.

use crate::{Authority, until};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs::{self, File, Permissions};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use wharf_testkit::packages::{self, Need};

/// A key of an external account, which Pebble asks for.
const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// The way in which the hook works.
#[derive(Debug, Clone, Copy)]
pub enum HookMode {
    /// It sets and removes the record.
    Works,
    /// It fails with words.
    Fails,
    /// It does not end.
    Hangs,
    /// It succeeds, and sets no record.
    Lies,
}

/// The authority, its DNS and a hook. Dropping it ends the processes.
pub struct Pebble {
    dir: TempDir,
    own: Authority,
    processes: [Child; 2],
    listen: u16,
    management: u16,
    dns_management: u16,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Pebble {
    /// Starts the processes. Installs the programs if they are missing, which needs root.
    pub fn start() -> Result<Self> {
        let why = "the tests order certificates from it";
        let need = |program, package| Need {
            program,
            package,
            why,
        };
        packages::ensure(&[need("pebble", "pebble"), need("curl", "curl")])?;
        let dir = tempfile::tempdir()?;
        let own = Authority::new()?;
        let tls = own.issue("pebble", &["127.0.0.1", "localhost"])?;
        let [listen, management, dns, dns_management] = free_ports()?;
        let address = |port: u16| format!("127.0.0.1:{port}");
        let config = json!({ "pebble": {
            "listenAddress": address(listen),
            "managementListenAddress": address(management),
            "certificate": tls.cert,
            "privateKey": tls.key,
            "httpPort": 5002,
            "tlsPort": 5001,
            "externalAccountBindingRequired": true,
            "externalAccountMACKeys": { "kid-1": EXTERNAL_KEY },
        }});
        let path = dir.path().join("pebble.json");
        fs::write(&path, config.to_string())?;
        let key = dir.path().join("external.key");
        crate::write_private(&key, EXTERNAL_KEY.as_bytes())?;
        let log = File::create(dir.path().join("pebble.log"))?;
        let resolver = Command::new("pebble-challtestsrv")
            .args(["-http01", "", "-https01", "", "-tlsalpn01", ""])
            .args(["-dns01", &address(dns), "-management"])
            .arg(address(dns_management))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let authority = Command::new("pebble")
            .args(["-strict", "-dnsserver", &address(dns), "-config"])
            .arg(path)
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()?;
        let pebble = Self {
            dir,
            own,
            processes: [resolver, authority],
            listen,
            management,
            dns_management,
        };
        for port in [listen, management, dns_management] {
            until("a port of pebble", || {
                Ok(TcpStream::connect(("127.0.0.1", port)).ok())
            })?;
        }
        pebble.write_hook()?;
        pebble.set_hook(HookMode::Works)?;
        Ok(pebble)
    }

    fn write_hook(&self) -> Result<()> {
        let dir = self.dir.path().display();
        let dns = format!("http://127.0.0.1:{}", self.dns_management);
        let script = format!(
            "#!/bin/sh\n\
             echo \"$*\" >> {dir}/calls\n\
             case \"$(cat {dir}/mode)-$2\" in\n\
             Fails-present) echo 'no such zone' >&2; exit 3 ;;\n\
             Hangs-present) sleep 600 & echo $! > {dir}/child; wait ;;\n\
             Lies-*) exit 0 ;;\n\
             esac\n\
             case \"$2\" in\n\
             present) curl -sSf -d \"{{\\\"host\\\":\\\"$3.\\\",\\\"value\\\":\\\"$4\\\"}}\" {dns}/set-txt ;;\n\
             cleanup) curl -sSf -d \"{{\\\"host\\\":\\\"$3.\\\"}}\" {dns}/clear-txt ;;\n\
             esac\n"
        );
        let hook = self.dir.path().join("hook");
        fs::write(&hook, script)?;
        Ok(fs::set_permissions(hook, Permissions::from_mode(0o755))?)
    }

    /// Changes the way in which the hook works.
    pub fn set_hook(&self, mode: HookMode) -> Result<()> {
        Ok(fs::write(
            self.dir.path().join("mode"),
            format!("{mode:?}"),
        )?)
    }

    /// The calls of the hook, one a line.
    pub fn hook_calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        calls.lines().map(ToOwned::to_owned).collect()
    }

    /// Whether a process that a hanging hook started still lives.
    pub fn hook_lives(&self) -> Result<bool> {
        let child = fs::read_to_string(self.dir.path().join("child"))?;
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        Ok(stat.is_ok_and(|stat| !stat.contains(") Z ")))
    }

    /// The number of orders that the authority has taken.
    pub fn orders(&self) -> usize {
        let log = fs::read_to_string(self.dir.path().join("pebble.log")).unwrap_or_default();
        log.matches("Added order").count()
    }

    /// The section of a server's configuration.
    pub fn settings(&self) -> String {
        let dir = self.dir.path().display();
        format!(
            "[pages.acme]\ndirectory = \"https://127.0.0.1:{}/dir\"\naccept_terms = true\n\
             contact = \"ops@wharf.example\"\nhook = [\"{dir}/hook\", \"--fast\"]\n\
             hook_timeout_s = 2\npropagation_s = 0\n\
             external_account = {{ key_id = \"kid-1\", key_file = \"{dir}/external.key\" }}\n",
            self.listen
        )
    }

    /// The environment of a server that trusts the authority's own TLS.
    pub fn environment(&self) -> [(String, String); 1] {
        let ca = self.own.ca().to_string_lossy().into_owned();
        [("SSL_CERT_FILE".to_owned(), ca)]
    }

    /// Whether the authority says when to renew certificates (RFC 9773).
    pub fn has_renewal_information(&self) -> Result<bool> {
        let url = format!("https://127.0.0.1:{}/dir", self.listen);
        let mut curl = Command::new("curl");
        let output = (curl.args(["-sSf", &url, "--cacert"]).arg(self.own.ca())).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).contains("renewalInfo"))
    }

    /// The root of the certificates that the authority issues.
    pub fn root(&self) -> Result<PathBuf> {
        let root = self.dir.path().join("root.pem");
        let url = format!("https://127.0.0.1:{}/roots/0", self.management);
        let mut curl = Command::new("curl");
        let curl = curl.args(["-sSf", &url, "--cacert"]).arg(self.own.ca());
        let output = curl.output().context("curl")?;
        fs::write(&root, output.stdout)?;
        Ok(root)
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> Result<[u16; 4]> {
    let mut held = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
