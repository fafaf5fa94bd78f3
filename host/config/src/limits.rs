//! `[limits]`: bounds on time, size and number.

use serde::Deserialize;

/// Limits on time, size and number. The defaults suit one server for a team.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Maximum number of open connections, and of authenticated requests in progress. Default 10000.
    /// A further connection replaces one that has sent no valid key, or waits if there is none; further
    /// requests get a 503. All loopback addresses together, and each trusted proxy, may hold nine tenths.
    pub max_connections: usize,
    /// Maximum number of connections from one IPv4 address or IPv6 /64 network. Default 500.
    ///
    /// Further connections are closed, so that one client cannot use up `max_connections`. Raise the
    /// limit for a reverse proxy on another machine.
    pub connections_per_peer: usize,
    /// Maximum number of requests per second with one API key or session, and ten times as many in a burst.
    /// Default 100, the whole rate of its user; 0 means no limit of its own. Further requests get a 429.
    pub requests_per_second: u32,
    /// Maximum number of requests per second of one user, with all API keys and sessions together, and ten
    /// times as many in a burst. Default 100, a four-hundredth of the reads that two cores answer; 0 means
    /// no limit. Further requests get a 429.
    pub requests_per_second_per_user: u32,
    /// Maximum number of open event streams of one user. Default 200. A further one gets a 429.
    pub event_streams_per_user: usize,
    /// Maximum time in ms from one request on a connection until the head of the next is received. Default
    /// 180000.
    ///
    /// A proxy that keeps connections must close them first, or some of its requests get no response. The
    /// default exceeds the 60 s of nginx and of most load balancers, the 90 s of Traefik, and the 120 s of
    /// Caddy.
    pub idle_timeout_ms: u64,
    /// Maximum time in ms for a client to read 64 KiB of a response. Default 30000.
    ///
    /// Slower connections are closed. The default allows for a modem.
    pub write_timeout_ms: u64,
    /// Maximum size in MiB of all requests that wait for their bodies, and of bodies in use. Default 128.
    ///
    /// Further requests get a 503. A user has an eighth, all clients without a key together a quarter, and
    /// a network of them a sixty-fourth: 200 requests without a key, or 200 bodies of a user at the size
    /// limit.
    pub bodies_mib: u64,
    /// Maximum size in MiB of all responses that clients have not read yet. Default 256.
    ///
    /// Authenticated requests get a 503 above it. A user has an eighth, a connection a thirty-second, all
    /// clients without a key together a quarter, and a network of them a sixty-fourth. The default holds
    /// twelve lists of 3000 instances for each user.
    pub unsent_mib: u64,
    /// Maximum time in ms that a stop, restart, resize or port change waits for the node. Default
    /// 15000. The response then reports the state in the database.
    pub answer_wait_ms: u64,
    /// Grace period in ms for stopping a container. Default 10000.
    pub stop_grace_ms: u64,
    /// Grace period in ms for stopping a VM. Default 30000, longer than for a container because an
    /// operating system shuts down.
    pub vm_stop_grace_ms: u64,
    /// Interval in ms between two observations of a node. Default 2000.
    pub observe_every_ms: u64,
    /// Interval in ms between two probes of a node's features. Default 60000. A node is also probed when
    /// it becomes reachable again.
    pub probe_every_ms: u64,
    /// Maximum time in ms to read an instance's usage. Default 15000. It is for an engine that is slow; one
    /// that answers no request for 3 s is out of reach.
    pub stats_timeout_ms: u64,
    /// Interval in ms between two readings of the usage of an instance that a user has looked at in the
    /// last two minutes. Default 2000. Looks are answered from the last reading.
    pub stats_every_ms: u64,
    /// Maximum number of concurrent driver calls per node that change something. Default 32. Read-only
    /// calls have a limit of their own.
    pub calls_per_node: usize,
    /// Maximum wall-clock time in ms of one driver call. Default 90000.
    pub call_timeout_ms: u64,
    /// Maximum CPU time in ms of one plugin call. Default 2000. Time spent waiting does not count.
    pub call_cpu_ms: u64,
    /// Maximum memory in MiB of one wasm guest. Default 64.
    pub guest_memory_mib: usize,
    /// Maximum number of open terminals. Default 200. Each holds up to 4 MiB of memory if its client or
    /// its shell does not read. Further ones get a 503. 0 switches terminals off.
    pub terminals: usize,
    /// Maximum number of open terminals of one user. Default 20. Further ones get a 429. 0 switches
    /// terminals off.
    pub terminals_per_user: usize,
    /// Time in s after which a terminal without a client ends. Default 120, enough for a reload of its
    /// page or a change of networks.
    pub terminal_unattended_s: u64,
    /// Maximum number of open tunnels of one user. Default 100. Each holds up to 1 MiB of memory if its client
    /// or its port does not read. Further ones get a 429. 0 switches tunnels off.
    pub tunnels_per_user: usize,
    /// Free space in MiB on the disk of `data_dir` below which changes are refused that free nothing.
    /// Default 256, which is room for months of deletions and events. 0 switches it off.
    pub disk_reserve_mib: u64,
    /// Maximum number of rows that the changes of one user leave in a day: records of the audit log,
    /// events, ledger entries, keys, and idempotency keys. Default 200000, about 60 MiB and 20000 lives of
    /// instances; 0 means no limit. Further changes get a 429; the budget is regained evenly.
    pub records_per_user_per_day: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            connections_per_peer: 500,
            requests_per_second: 100,
            requests_per_second_per_user: 100,
            event_streams_per_user: 200,
            idle_timeout_ms: 180_000,
            write_timeout_ms: 30_000,
            bodies_mib: 128,
            unsent_mib: 256,
            answer_wait_ms: 15_000,
            stop_grace_ms: 10_000,
            vm_stop_grace_ms: 30_000,
            observe_every_ms: 2_000,
            probe_every_ms: 60_000,
            stats_timeout_ms: 15_000,
            stats_every_ms: 2_000,
            calls_per_node: 32,
            call_timeout_ms: 90_000,
            call_cpu_ms: 2_000,
            guest_memory_mib: 64,
            terminals: 200,
            terminals_per_user: 20,
            terminal_unattended_s: 120,
            tunnels_per_user: 100,
            disk_reserve_mib: 256,
            records_per_user_per_day: 200_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LimitsConfig;

    #[test]
    fn proxies_close_their_idle_connections_before_the_default() {
        let idle_ms = LimitsConfig::default().idle_timeout_ms;
        for (proxy, seconds) in [("nginx", 60), ("Traefik", 90), ("Caddy", 120)] {
            assert!(idle_ms > seconds * 1000, "{proxy}: {idle_ms}");
        }
    }
}
