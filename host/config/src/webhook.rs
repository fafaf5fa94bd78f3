//! `[webhook]`: the addresses that events are sent to.

use ipnet::IpNet;
use serde::Deserialize;

/// The addresses that webhooks may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookConfig {
    /// Whether URLs with `http://` are accepted. Default false: events and names of instances would be
    /// readable on the way.
    pub http: bool,
    /// Networks that webhooks may reach although they are not public, such as `["10.0.0.0/8"]`. Default:
    /// none.
    ///
    /// Wharf sends the requests, so a network in this list is open to requests of every user.
    pub allow: Vec<IpNet>,
}
