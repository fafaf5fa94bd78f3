//! The operator's accounts at registries, for the bases of images.

use crate::build_output::follow;
use crate::http::{HttpClient, Request};
use crate::rootfs::percent_encode;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use wharf_domain::image::Registry;

/// The header with the account at one registry.
pub(crate) const OF_ONE: &str = "X-Registry-Auth";
/// The header of a build, with the accounts at all registries.
pub(crate) const OF_BUILDS: &str = "X-Registry-Config";
/// Enough for a large image over a slow network.
const PULL_LIMIT: Duration = Duration::from_secs(3600);

/// Values of headers with accounts. `Debug` shows the registries alone.
#[derive(Clone, Default)]
pub struct Accounts {
    /// The value for each registry.
    pub of_one: BTreeMap<Registry, String>,
    /// The value for builds.
    pub of_builds: Option<String>,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.of_one.keys()).finish()
    }
}

impl Accounts {
    /// The header of a request for one image, if there is an account.
    pub(crate) fn header(&self, image: &str) -> Option<(&'static str, &str)> {
        let value = self.of_one.get(&Registry::of(image))?;
        Some((OF_ONE, value))
    }

    /// The header of a build, if there are accounts.
    pub(crate) fn header_of_builds(&self) -> Option<(&'static str, &str)> {
        Some((OF_BUILDS, self.of_builds.as_deref()?))
    }

    /// Pulls the base of an image with the account of its registry, if there is one. A build pulls any other base.
    pub(crate) fn pull(&self, engine: &HttpClient, image: &str) -> Result<()> {
        let Some(header) = self.header(image) else {
            return Ok(());
        };
        // An engine pulls all tags of a name without one.
        let last = image.rsplit('/').next().unwrap_or(image);
        let tag = if last.contains([':', '@']) {
            ""
        } else {
            "&tag=latest"
        };
        let path = format!("/images/create?fromImage={}{tag}", percent_encode(image));
        let request = Request::new("POST", &path).timeout(PULL_LIMIT);
        follow(engine, request.header(Some(header)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Endpoint;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_base_is_pulled_with_the_account_of_its_registry_alone() {
        let accounts = Accounts {
            of_one: [(
                Registry::new(Some("registry.example")),
                "c2VjcmV0".to_owned(),
            )]
            .into(),
            of_builds: Some("YWxs".to_owned()),
        };
        assert!(!format!("{accounts:?}").contains("c2VjcmV0"));
        assert_eq!(accounts.header("registry.example.evil/base:1"), None);
        assert_eq!(accounts.header("base:1"), None);
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let engine = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).unwrap();
            let body = "{\"errorDetail\":{\"message\":\"denied\"}}\n";
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            String::from_utf8(head[..length].to_vec()).unwrap()
        });
        let client = HttpClient::new(Endpoint::Unix(socket));
        accounts.pull(&client, "base:1").unwrap();
        let refused = accounts
            .pull(&client, "registry.example/base:1")
            .unwrap_err();
        assert!(format!("{refused:#}").contains("denied"), "{refused:#}");
        let head = engine.join().unwrap().to_lowercase();
        assert!(
            head.starts_with("post /images/create?fromimage=registry.example%2fbase%3a1 "),
            "{head}"
        );
        assert!(head.contains("x-registry-auth: c2vjcmv0"), "{head}");
    }
}
