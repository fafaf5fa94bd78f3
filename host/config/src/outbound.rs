//! `[webhook]` and `[buckets]`: the addresses that Wharf sends requests of its users to.

use ipnet::IpNet;
use serde::Deserialize;

/// The addresses that webhooks or buckets may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutboundConfig {
    /// Whether URLs with `http://` are accepted. Default false: events, names of instances and the names
    /// of objects would be readable on the way.
    pub http: bool,
    /// Networks that may be reached although they are not public, such as `["10.0.0.0/8"]`. Default:
    /// none.
    ///
    /// Wharf sends the requests, so a network in this list is open to requests of every user.
    pub allow: Vec<IpNet>,
}
