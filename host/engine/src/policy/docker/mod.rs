//! The code behind the policy for the Docker Engine API of Docker and Podman: bodies whose values are
//! computed, and facts from answers. `plugins/driver-docker/policy.toml` lists the requests.

mod container;
mod learned;
mod libpod_create;
mod network;
mod required;
mod settings;
#[cfg(test)]
mod tests;

use super::Refusal;
use super::path::RequestTarget;
pub use learned::Note;
use serde::Deserialize;
use serde_json::Value;
use settings::Settings;
use std::fmt::Display;
use wharf_requests::{CallScope, CreateScope, Subject};

/// Prefix of the names of this installation's objects.
const PREFIX: &str = "wharf-";
/// The name of the listed containers' ids in the policy file.
const CONTAINERS: &str = "container";

/// The placeholders of the policy file that this code resolves, each with its meaning.
pub const PLACEHOLDERS: [(&str, &str); 3] = [
    (
        "code.images",
        "an image of the blueprint, with `image_prefix` of the node's settings",
    ),
    ("code.networks", "a network of the call"),
    (
        "code.joined",
        "a network of the call, or `public_network` of the node's settings",
    ),
];

/// The checks of bodies, as the policy file names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The creation of a container.
    Container,
    /// The creation of a container by Podman's interface.
    ContainerPodman,
    /// The limits of a container.
    Limits,
    /// The limits of a container by Podman's interface.
    LimitsPodman,
    /// The creation of a network.
    Network,
    /// The creation of a network by Podman's interface.
    NetworkPodman,
    /// The connection of a container to the network of the path.
    Connection,
    /// The end of such a connection.
    Disconnection,
}

impl Check {
    /// The checked parts, in words for an operator.
    pub fn words(self) -> &'static str {
        match self {
            Self::Container => "the limits, walls, ports, devices and network of a container",
            Self::ContainerPodman => {
                "the limits, walls, ports, devices and network of a container, in Podman's form"
            }
            Self::Limits => "the size of the call, or the one before",
            Self::LimitsPodman => "the size of the call, or the one before, in Podman's form",
            Self::Network => "the name, bridge and range of a network of the call",
            Self::NetworkPodman => {
                "the name, bridge and range of a network of the call, in Podman's form"
            }
            Self::Connection => "the instance's container and its addresses",
            Self::Disconnection => "the instance's container",
        }
    }
}

/// The code for one node.
#[derive(Debug)]
pub struct Docker {
    settings: Settings,
}

impl Docker {
    /// Reads the settings that bind the driver.
    pub fn new(settings: &Value) -> Result<Self, String> {
        Settings::read(settings).map(|settings| Self { settings })
    }

    /// Whether a setting with this name binds the driver.
    pub fn has_setting(&self, name: &str) -> bool {
        self.settings.has(name)
    }

    /// The values of one of [`PLACEHOLDERS`].
    pub fn values(&self, name: &str, scope: &CallScope) -> Result<Vec<Value>, Refusal> {
        let names = match name {
            "code.images" => {
                let images = match &scope.survey {
                    Some(images) => images,
                    None => &creation(scope)?.images,
                };
                self.settings.images(images)
            }
            "code.networks" => network::names(scope)?,
            _ => network::joined_names(scope, &self.settings)?,
        };
        Ok(names.into_iter().map(Value::from).collect())
    }

    /// Checks a body.
    pub fn check(
        &self,
        check: Check,
        scope: &CallScope,
        target: &RequestTarget<'_>,
        body: &Value,
    ) -> Result<(), Refusal> {
        match check {
            Check::Container => container::create(body, scope, &self.settings),
            Check::ContainerPodman => {
                let body = libpod_create::as_docker(body, scope)?;
                container::create(&body, scope, &self.settings)
            }
            Check::Limits => container::update(body, scope),
            Check::LimitsPodman => container::libpod_update(body, scope),
            Check::Network => network::create(body, scope),
            Check::NetworkPodman => network::create_libpod(body, scope),
            Check::Connection | Check::Disconnection => {
                let [.., name, _] = target.segments.as_slice() else {
                    return Err(refuse("no network in the path"));
                };
                let network = network::joined(scope, name, &self.settings)?;
                network::attach(body, scope, network)?;
                match check {
                    Check::Connection => network::addressed(body),
                    _ => Ok(()),
                }
            }
        }
    }
}

fn subject(scope: &CallScope) -> Result<&Subject, Refusal> {
    scope
        .subject
        .as_ref()
        .ok_or_else(|| refuse("a call about the whole node touches no instance"))
}

fn creation(scope: &CallScope) -> Result<&CreateScope, Refusal> {
    subject(scope)?
        .creation
        .as_ref()
        .ok_or_else(|| refuse("only ensure creates"))
}

/// Checks for the name of the container of the call's instance.
fn own_name(scope: &CallScope, name: &str) -> Result<(), Refusal> {
    let own = format!("{PREFIX}{}", subject(scope)?.tag.instance);
    if name == own {
        return Ok(());
    }
    Err(refuse(format!(
        "container {name:?}; this call is for {own}"
    )))
}

/// Checks for that name, or an id that the engine has listed with the instance's labels.
fn own_container(scope: &CallScope, name: &str) -> Result<(), Refusal> {
    let listed = scope.learnt.get(CONTAINERS);
    if listed.is_some_and(|ids| ids.iter().any(|id| id == name)) {
        return Ok(());
    }
    own_name(scope, name)
}

fn refuse(why: impl Display) -> Refusal {
    Refusal::new(why.to_string())
}
