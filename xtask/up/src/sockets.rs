//! Engines of a user without root: rootless Podman, rootless Docker, Docker Desktop, or an engine of
//! the machine that the user may use.

use super::engines::socket;
use std::env;
use std::path::PathBuf;
use std::time::Duration;
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_testkit::process::{command, output};
use wharf_testkit::progress;

/// A running engine responds at once.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// Finds the first engine that responds, in the order of the engines' own tools.
pub(super) fn find() -> Option<Endpoint> {
    candidates().into_iter().find(responds)
}

/// Whether an engine responds.
pub(super) fn responds(endpoint: &Endpoint) -> bool {
    let ping = Request::new("GET", "/_ping").timeout(ANSWER_LIMIT);
    HttpClient::new(endpoint.clone())
        .send(ping)
        .is_ok_and(|response| response.status == 200)
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

/// The engine of DOCKER_HOST, if it is a socket.
fn named() -> Option<Endpoint> {
    let text = env::var("DOCKER_HOST")
        .ok()
        .filter(|text| !text.is_empty())?;
    match socket(&text) {
        Ok(endpoint) => Some(endpoint),
        Err(why) => {
            progress::note(&format!("Ignoring DOCKER_HOST={text}: {why:#}."));
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

/// The socket that Podman's client reports, where it is installed.
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
