//! One simulated container or virtual machine.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// Milliseconds since 1970, or between two times.
pub type Millis = u64;

/// Why a machine ended by itself.
pub const ENDED: &str = "it ended by itself";

/// The specification in `ensure`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Wanted {
    /// The installation.
    pub installation: String,
    /// The incarnation of the instance.
    pub incarnation: u64,
    /// `vm` or `container`.
    pub kind: String,
    /// Its host name.
    pub hostname: String,
    /// Its image.
    pub image: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its published ports on the node.
    pub node_ports: Vec<u16>,
    /// Its GPUs.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Its size.
    #[serde(flatten)]
    pub size: Size,
}

/// A machine's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// vCPUs.
    pub n_vcpus: u32,
    /// RAM, GiB.
    pub mem_gib: u32,
    /// Disk, GiB.
    pub disk_size_gib: u32,
}

/// A machine in a list: incarnation, phase, detail.
pub type Row<'a> = (u64, &'static str, Option<&'a str>);

/// One machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    /// The specification, with the present size.
    pub wanted: Wanted,
    /// Its run.
    pub life: Life,
    /// CPU time of earlier runs, ns.
    pub cpu_ns: u64,
    /// Open ports of a running virtual machine.
    #[serde(default)]
    pub ports: Vec<u16>,
}

/// The fate of a started machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Lives,
    /// It never comes up.
    Fails,
    /// It ends by itself after this time.
    Dies(Millis),
}

/// The run of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Life {
    /// It runs.
    Running {
        /// Time of the start.
        since: Millis,
        /// Time from which on it is ready.
        ready_at: Millis,
        /// Time at which it ends by itself.
        dies_at: Option<Millis>,
    },
    /// It does not run; the reason if it ended by itself.
    Stopped(Option<String>),
    /// It never runs.
    Failed,
}

impl Machine {
    /// Whether two specifications are of one machine. Its size and its name may change.
    pub fn is_as(&self, wanted: &Wanted) -> bool {
        let own = &self.wanted;
        own.installation == wanted.installation
            && own.incarnation == wanted.incarnation
            && own.kind == wanted.kind
            && own.image == wanted.image
            && own.address == wanted.address
            && own.node_ports == wanted.node_ports
            && own.gpus == wanted.gpus
    }

    /// Whether it holds CPU, RAM, GPUs and ports.
    pub fn runs(&self) -> bool {
        matches!(self.life, Life::Running { .. })
    }

    /// The time at which it ended by itself, if it has.
    pub fn ended(&self, now: Millis) -> Option<Millis> {
        match self.life {
            Life::Running {
                dies_at: Some(at), ..
            } if at <= now => Some(at),
            _ => None,
        }
    }

    /// Ends it.
    pub fn halt(&mut self, now: Millis, why: Option<String>) {
        if self.runs() {
            self.cpu_ns = self.cpu_time(now);
            self.ports.clear();
            self.life = Life::Stopped(why);
        }
    }

    /// Its phase, as the driver interface names it.
    pub fn report(&self, now: Millis) -> Value {
        let (_, phase, detail) = self.row(now);
        let again_ms = match self.life {
            Life::Running { ready_at, .. } if phase == "booting" => Some(ready_at - now),
            _ => None,
        };
        json!({ "phase": phase, "detail": detail, "again_ms": again_ms })
    }

    /// Its row in a list.
    pub fn row(&self, now: Millis) -> Row<'_> {
        let (phase, detail) = match &self.life {
            _ if self.ended(now).is_some() => ("stopped", Some(ENDED)),
            Life::Running { ready_at, .. } if now < *ready_at => ("booting", None),
            Life::Running { .. } => ("ready", None),
            Life::Stopped(why) => ("stopped", why.as_deref()),
            Life::Failed => ("failed", Some("simulated failure")),
        };
        (self.wanted.incarnation, phase, detail)
    }

    /// Invented usage: a twentieth of its CPUs, a tenth of its RAM and a tenth of its disk.
    pub fn usage(&self, now: Millis) -> Value {
        let gib = 1_u64 << 30;
        json!({
            "cpu_ns": self.cpu_time(now),
            "at_ns": now.saturating_mul(1_000_000),
            "mem_used_bytes": u64::from(self.wanted.size.mem_gib) * gib / 10,
            "disk_used_bytes": u64::from(self.wanted.size.disk_size_gib) * gib / 10,
        })
    }

    fn cpu_time(&self, now: Millis) -> u64 {
        match self.life {
            Life::Running { since, .. } => {
                let ns = now.saturating_sub(since).saturating_mul(1_000_000);
                self.cpu_ns
                    .saturating_add(ns / 20 * u64::from(self.wanted.size.n_vcpus))
            }
            _ => self.cpu_ns,
        }
    }
}
