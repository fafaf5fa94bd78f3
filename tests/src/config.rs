//! Configurations of test servers.

use crate::share;
use anyhow::Result;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A range of ports for one server, so that concurrent servers do not collide.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// First port.
    pub from: u16,
    /// Last port.
    pub to: u16,
}

const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;
const EACH: u16 = 40;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// How long a port may take to refuse a connection.
const REFUSAL: Duration = Duration::from_millis(500);

/// Whether nothing has a port. Incus forwards some without a socket, by rules of the packet filter, and a connection
/// to one leads to an instance, or nowhere.
fn is_free(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let has_socket = TcpListener::bind(address).is_err();
    if has_socket {
        return false;
    }
    match TcpStream::connect_timeout(&address, REFUSAL) {
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

impl Ports {
    /// Returns a range that no other server of a test has.
    pub fn take() -> Self {
        let (first, count) = share::of((LAST - FIRST) / EACH);
        loop {
            let n = first + NEXT.fetch_add(1, Ordering::Relaxed) % count;
            let from = FIRST + n * EACH;
            let to = from + EACH - 1;
            if (from..=to).all(is_free) {
                return Self { from, to };
            }
        }
    }

    /// The settings `[ssh_ports]` and `[web]`.
    pub fn settings(self) -> String {
        let web = self.from + (self.to - self.from).div_ceil(2);
        format!(
            "[ssh_ports]\nfrom = {}\nto = {}\n[web]\nfrom = {web}\nto = {}\n",
            self.from,
            web - 1,
            self.to
        )
    }
}

/// The settings without rates of requests, for tests of load.
pub const WITHOUT_RATES: &str =
    "[limits]\nrequests_per_second = 0\nrequests_per_second_per_user = 0\n";

/// A `[[node]]` on the simulated engine, with room for a handful of instances.
pub fn simulated_node(name: &str, settings: &str) -> String {
    format!(
        "[[node]]\nname = \"{name}\"\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n\
         capacity = {{ n_vcpus = 16, mem_gib = 32, disk_size_gib = 500 }}\n\
         public_ipv4 = [\"203.0.113.0/28\"]\nsettings = {{ {settings} }}\n"
    )
}

/// The settings of a server without rates whose [`simulated_node`] has room for thousands of instances.
pub fn roomy(node: &str) -> String {
    let node = node.replace(
        "capacity = { n_vcpus = 16, mem_gib = 32, disk_size_gib = 500 }",
        "capacity = { n_vcpus = 10000, mem_gib = 10000, disk_size_gib = 100000 }\n\
         lan_cidr = \"10.0.0.0/12\"\nlan_subnet_prefix = 18",
    );
    // The simulated engine opens no ports.
    let ports = "[ssh_ports]\nfrom = 20000\nto = 29999\n[web]\nfrom = 30000\nto = 30999\n";
    format!("{WITHOUT_RATES}{ports}{node}")
}

/// A [`simulated_node`] with instances that outlive the server, in a file of the returned directory.
pub fn lasting_node(name: &str, settings: &str) -> Result<(String, TempDir)> {
    let dir = tempfile::tempdir()?;
    let endpoint = format!("simulated://{}/engine\"", dir.path().display());
    let node = simulated_node(name, settings).replace("simulated:\"", &endpoint);
    Ok((node, dir))
}

/// A `[[node]]` on a real engine, with networks for its instances' private and public addresses and
/// some more settings for the driver.
pub fn docker_node(name: &str, endpoint: &str, networks: [&str; 2], settings: &str) -> String {
    let [lan_cidr, public_ipv4] = networks;
    format!(
        "[[node]]\nname = \"{name}\"\ndriver = \"docker\"\nendpoint = \"{endpoint}\"\n\
         capacity = {{ n_vcpus = 64, mem_gib = 64, disk_size_gib = 2000 }}\n\
         lan_cidr = \"{lan_cidr}\"\npublic_ipv4 = [\"{public_ipv4}\"]\nsettings = {{ {settings}publish_address = \"127.0.0.1\" }}\n"
    )
}
