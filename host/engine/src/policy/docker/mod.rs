//! The policy for the Docker Engine API of Docker and Podman.

mod container;
mod exec;
mod filters;
mod learned;
mod libpod_create;
mod network;
mod replacement;
mod required;
mod settings;
#[cfg(test)]
mod tests;
mod volume;

use super::path::Target;
use super::{Refusal, Sent};
use crate::scope::{CallScope, Creation, Subject};
use http::Method;
use settings::Settings;
use std::fmt::Display;

pub use learned::learn;
pub use replacement::transfer;

/// Prefix of the names of this installation's objects.
const PREFIX: &str = "wharf-";

/// The one file that may be read, for the health of a virtual machine's node.
const ACCELERATION: &str = "/var/lib/wharf/machine/acceleration";

/// The policy of one node.
#[derive(Debug)]
pub struct Docker {
    settings: Settings,
}

impl Docker {
    /// Reads the settings that bind the driver.
    pub fn new(settings: &serde_json::Value) -> Result<Self, String> {
        Settings::read(settings).map(|settings| Self { settings })
    }

    /// Allows one request, or refuses it with a reason.
    pub fn check(
        &self,
        scope: &CallScope,
        method: &Method,
        target: &Target<'_>,
        body: &Sent,
        job: bool,
    ) -> Result<(), Refusal> {
        let (version, segments) = versioned(target);
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if !reads && !scope.changes {
            return Err(refuse(format!("{method} in a call that changes nothing")));
        }
        let pull = method == Method::POST && segments == ["images", "create"];
        if job && !pull {
            return Err(refuse("a job; only an image pull may be one"));
        }
        match segments {
            ["libpod", rest @ ..] if version => self.libpod(scope, method, rest, target, body),
            ["containers", rest @ ..] => self.containers(scope, method, rest, target, body),
            ["networks", rest @ ..] => self.networks(scope, method, rest, target, body),
            ["volumes", rest @ ..] => volume::check(scope, method, rest, target, body),
            ["exec", rest @ ..] => exec::run(scope, method, rest, target, body),
            ["images", rest @ ..] => self.images(scope, method, rest, target, body),
            ["_ping"] | ["version"] | ["info"] if reads => {
                target.only(&[])?;
                body.nothing()
            }
            _ => Err(unlisted(method)),
        }
    }

    fn containers(
        &self,
        scope: &CallScope,
        method: &Method,
        rest: &[&str],
        target: &Target<'_>,
        body: &Sent,
    ) -> Result<(), Refusal> {
        match (method.as_str(), rest) {
            ("GET", ["json"]) => {
                target.only(&["all", "filters", "limit", "size"])?;
                filters::owned(target, scope)?;
                body.nothing()
            }
            ("POST", ["create"]) => {
                target.only(&["name", "platform"])?;
                let name = target
                    .get("name")
                    .ok_or_else(|| refuse("name is required"))?;
                replacement::made_as(scope, name)?;
                container::create(body.json()?, scope, &self.settings)
            }
            ("GET", [name, "json"]) => {
                own_container(scope, name)?;
                target.only(&["size"])?;
                body.nothing()
            }
            ("GET", [name, "stats"]) => {
                own_container(scope, name)?;
                target.only(&["stream", "one-shot"])?;
                target.fixed("stream", "false")?;
                target
                    .get("stream")
                    .ok_or_else(|| refuse("stream=false is required"))?;
                body.nothing()
            }
            ("GET", [name, "top"]) => {
                own_container(scope, name)?;
                target.only(&["ps_args"])?;
                target.fixed("ps_args", "rss")?;
                target
                    .get("ps_args")
                    .ok_or_else(|| refuse("ps_args=rss is required"))?;
                body.nothing()
            }
            ("GET", [name, "archive"]) => {
                if !scope.listed.iter().any(|id| id == name) {
                    return Err(refuse(format!("container {name:?} was not listed")));
                }
                target.only(&["path"])?;
                target.fixed("path", ACCELERATION)?;
                target
                    .get("path")
                    .ok_or_else(|| refuse("path is required"))?;
                body.nothing()
            }
            ("PUT", [name, "archive"]) => {
                own_container(scope, name)?;
                target.only(&["path", "noOverwriteDirNonDir"])?;
                target.fixed("path", "/")?;
                body.archive(&creation(scope)?.files)
            }
            ("POST", [name, "start"]) => {
                own_container(scope, name)?;
                target.only(&[])?;
                body.nothing()
            }
            ("POST", [name, "stop"]) => {
                own_container(scope, name)?;
                target.only(&["t"])?;
                body.nothing()
            }
            ("POST", [name, "update"]) => {
                own_container(scope, name)?;
                target.only(&[])?;
                container::update(body.json()?, scope)
            }
            ("POST", [name, "exec"]) => {
                own_container(scope, name)?;
                target.only(&[])?;
                exec::create(body.json()?, scope)
            }
            ("POST", [name, "rename"]) => {
                target.only(&["name"])?;
                replacement::renamed(scope, name, target.get("name"))?;
                body.nothing()
            }
            ("DELETE", [name]) => {
                replacement::own(scope, name)?;
                target.only(&["force", "v"])?;
                body.nothing()
            }
            _ => Err(unlisted(method)),
        }
    }

    fn networks(
        &self,
        scope: &CallScope,
        method: &Method,
        rest: &[&str],
        target: &Target<'_>,
        body: &Sent,
    ) -> Result<(), Refusal> {
        match (method.as_str(), rest) {
            ("GET", []) => {
                target.only(&["filters"])?;
                if scope.survey.is_none() {
                    filters::owned(target, scope)?;
                }
                body.nothing()
            }
            ("POST", ["create"]) => {
                target.only(&[])?;
                network::create(body.json()?, scope)
            }
            ("GET" | "DELETE", [name]) => {
                network::own(scope, name)?;
                target.only(&[])?;
                body.nothing()
            }
            ("POST", [name, verb @ ("connect" | "disconnect")]) => {
                let network = network::joined(scope, name, &self.settings)?;
                target.only(&[])?;
                network::attach(body.json()?, scope, network)?;
                match *verb {
                    "connect" => network::addressed(body.json()?),
                    _ => Ok(()),
                }
            }
            _ => Err(unlisted(method)),
        }
    }

    fn images(
        &self,
        scope: &CallScope,
        method: &Method,
        rest: &[&str],
        target: &Target<'_>,
        body: &Sent,
    ) -> Result<(), Refusal> {
        body.nothing()?;
        match (method.as_str(), rest) {
            ("GET", [name @ .., "json" | "history"]) if !name.is_empty() => {
                target.only(&[])?;
                let images = match &scope.survey {
                    Some(images) => images,
                    None => &creation(scope)?.images,
                };
                self.settings.image(&name.join("/"), images)
            }
            ("POST", ["create"]) => {
                target.only(&["fromImage", "tag", "platform"])?;
                let image = target
                    .get("fromImage")
                    .ok_or_else(|| refuse("fromImage is required"))?;
                let whole = target
                    .get("tag")
                    .map_or_else(|| image.to_owned(), |tag| format!("{image}:{tag}"));
                self.settings.image(&whole, &creation(scope)?.images)
            }
            _ => Err(unlisted(method)),
        }
    }

    /// Checks Podman's own paths, for features that its Docker-compatible paths lack.
    fn libpod(
        &self,
        scope: &CallScope,
        method: &Method,
        rest: &[&str],
        target: &Target<'_>,
        body: &Sent,
    ) -> Result<(), Refusal> {
        target.only(&[])?;
        match (method.as_str(), rest) {
            ("POST", ["containers", "create"]) => {
                let body = libpod_create::as_docker(body.json()?, scope)?;
                container::create(&body, scope, &self.settings)
            }
            ("POST", ["containers", name, "update"]) => {
                own_container(scope, name)?;
                container::libpod_update(body.json()?, scope)
            }
            ("POST", ["networks", "create"]) => network::create_libpod(body.json()?, scope),
            ("GET", ["info" | "version" | "_ping"]) => body.nothing(),
            _ => Err(unlisted(method)),
        }
    }
}

/// Splits off the version of the interface, if the path has one.
fn versioned<'a, 'b>(target: &'b Target<'a>) -> (bool, &'b [&'a str]) {
    match target.segments.as_slice() {
        [version, rest @ ..] if is_version(version) => (true, rest),
        all => (false, all),
    }
}

/// `v1.41`, `v4.3.1`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|digits| {
        digits.len() <= 12
            && digits.split('.').count() >= 2
            && digits
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn subject(scope: &CallScope) -> Result<&Subject, Refusal> {
    scope
        .subject
        .as_ref()
        .ok_or_else(|| refuse("a call about the whole node touches no instance"))
}

fn creation(scope: &CallScope) -> Result<&Creation, Refusal> {
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
    if subject(scope)?.containers.iter().any(|id| id == name) {
        return Ok(());
    }
    own_name(scope, name)
}

fn unlisted(method: &Method) -> Refusal {
    refuse(format!("{method} on this path"))
}

fn refuse(why: impl Display) -> Refusal {
    Refusal::new(why.to_string())
}
