//! Engines that a user without root has: rootless Podman, rootless Docker, Docker Desktop, or the
//! machine's own where the user may use it.

use super::choice::socket;
use crate::http::{Client, Endpoint, Request};
use crate::process::{command, output};
use crate::say;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// An engine that is there answers at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// The first engine that answers, in the order in which the engines' own tools look.
pub(super) fn find() -> Option<Endpoint> {
    candidates().into_iter().find(answers)
}

fn answers(endpoint: &Endpoint) -> bool {
    let ping = Request::new("GET", "/_ping").timeout(ANSWER_LIMIT);
    Client::new(endpoint.clone())
        .send(ping)
        .is_ok_and(|answer| answer.status == 200)
}

fn candidates() -> Vec<Endpoint> {
    let sockets = well_known(
        env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        env::var_os("HOME").map(PathBuf::from),
    );
    let present = sockets
        .into_iter()
        .chain(podmans_own())
        .filter_map(|path| path.canonicalize().ok())
        .map(Endpoint::Unix);
    named().into_iter().chain(present).collect()
}

/// What the user's own tools are told to use, if Wharf can use it too.
fn named() -> Option<Endpoint> {
    let text = env::var("DOCKER_HOST")
        .ok()
        .filter(|text| !text.is_empty())?;
    match socket(&text) {
        Ok(endpoint) => Some(endpoint),
        Err(why) => {
            say::note(&format!("DOCKER_HOST={text} is passed over: {why:#}."));
            None
        }
    }
}

fn well_known(runtime: Option<PathBuf>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let own_runtime = format!("/run/user/{}", rustix::process::getuid().as_raw());
    let runtime = runtime.unwrap_or_else(|| own_runtime.into());
    let mut sockets = vec![
        runtime.join("podman/podman.sock"),
        runtime.join("docker.sock"),
    ];
    if let Some(home) = home {
        sockets.push(home.join(".docker/run/docker.sock"));
        sockets.push(home.join(".docker/desktop/docker.sock"));
        sockets.push(home.join(".local/share/containers/podman/machine/podman.sock"));
    }
    sockets.push("/var/run/docker.sock".into());
    sockets
}

/// What Podman's client says, where it is installed.
fn podmans_own() -> Option<PathBuf> {
    let mut podman = command("podman");
    podman.args(["info", "--format", "{{.Host.RemoteSocket.Path}}"]);
    let text = output(&mut podman).ok()?;
    let path = text.trim();
    Some(path.strip_prefix("unix://").unwrap_or(path).into())
}

#[cfg(test)]
mod tests {
    use super::well_known;
    use std::path::Path;

    #[test]
    fn rootless_engines_come_before_the_machines_own() {
        let sockets = well_known(Some("/run/user/7".into()), Some("/home/a".into()));
        let at = |path: &str| sockets.iter().position(|socket| socket == Path::new(path));
        let podman = at("/run/user/7/podman/podman.sock");
        assert_eq!(podman, Some(0));
        assert!(at("/home/a/.docker/desktop/docker.sock").is_some());
        assert_eq!(at("/var/run/docker.sock"), Some(sockets.len() - 1));
    }
}
