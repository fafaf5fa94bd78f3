//! `[limits]`: bounds on time, size and number.

use serde::Deserialize;

/// Each has a default that suits one server of a team.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections served at once, and authenticated requests running at once. Default 10000; further
    /// connections wait to be accepted, further requests get a 503.
    pub max_connections: usize,
    /// Connections from one IPv4 address or one IPv6 /64 network; further ones are closed. Default
    /// 500: far more than one client needs, and a twentieth of all. A reverse proxy on another machine
    /// needs more.
    pub connections_per_peer: usize,
    /// Connections from a loopback address, which usually is a reverse proxy for all clients. Default
    /// 9000, so that some are left for clients that connect directly.
    pub connections_per_local_peer: usize,
    /// Requests running at once on one HTTP/2 connection. Default 100, the least that the standard
    /// recommends.
    pub streams_per_connection: u32,
    /// Time for the head of a request, and for an idle connection, ms. Default 10000.
    pub header_timeout_ms: u64,
    /// Time for the body of a request, ms. Default 20000.
    pub body_timeout_ms: u64,
    /// Time in which a client must read a piece (64 KiB) of a response, ms; later its connection ends.
    /// Default 30000, which a modem keeps to.
    pub write_timeout_ms: u64,
    /// Responses that clients have not read yet, MiB; beyond, authenticated requests get a 503. Default
    /// 256: a hundred lists of 3000 instances.
    pub unsent_mib: u64,
    /// Time that running requests get at shutdown, ms. Default 20000.
    pub shutdown_timeout_ms: u64,
    /// How long stop, restart, resize and port changes wait for the node before they answer what
    /// is durable, ms. Default 15000.
    pub answer_wait_ms: u64,
    /// Time that a container gets to stop gracefully, ms. Default 10000.
    pub stop_grace_ms: u64,
    /// The same for a VM, whose operating system shuts down, ms. Default 30000.
    pub vm_stop_grace_ms: u64,
    /// Time between two looks at a node, ms. Default 2000.
    pub observe_every_ms: u64,
    /// Time between two questions of what a node can do, ms; asked also when it comes back into
    /// reach. Default 60000.
    pub probe_every_ms: u64,
    /// Time to read usage, so that a stats answer is there within 3 s, ms. Default 2900.
    pub stats_timeout_ms: u64,
    /// Driver calls under way per node that change something. Default 32; those that only look have
    /// places of their own.
    pub calls_per_node: usize,
    /// Driver calls waiting per node, of either sort. Default 4096 each.
    pub queue_per_node: usize,
    /// Wall-clock time of one driver call, ms. Default 90000.
    pub call_timeout_ms: u64,
    /// Time that one plugin call computes, ms: what it waits for is not counted. Default 2000.
    pub call_cpu_ms: u64,
    /// Memory of one guest, MiB. Default 64.
    pub guest_memory_mib: usize,
    /// Rendered lists that are cached until one of their instances changes, MiB. Default 64.
    pub answer_cache_mib: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            connections_per_peer: 500,
            connections_per_local_peer: 9_000,
            streams_per_connection: 100,
            header_timeout_ms: 10_000,
            body_timeout_ms: 20_000,
            write_timeout_ms: 30_000,
            unsent_mib: 256,
            shutdown_timeout_ms: 20_000,
            answer_wait_ms: 15_000,
            stop_grace_ms: 10_000,
            vm_stop_grace_ms: 30_000,
            observe_every_ms: 2_000,
            probe_every_ms: 60_000,
            stats_timeout_ms: 2_900,
            calls_per_node: 32,
            queue_per_node: 4_096,
            call_timeout_ms: 90_000,
            call_cpu_ms: 2_000,
            guest_memory_mib: 64,
            answer_cache_mib: 64,
        }
    }
}
