//! Images of registries, which an engine pulls.

use crate::build_output::follow;
use crate::failure::Failure;
use crate::http::{HttpClient, Quiet, Request};
use crate::rootfs::percent_encode;
use crate::sources::{Alternative, Sources};
use crate::{Recipes, progress, record};
use anyhow::{Result, anyhow};
use serde_json::Value;
use std::time::Duration;

/// Enough for a large image over a slow network.
const PULL_LIMIT: Duration = Duration::from_secs(3600);
/// Enough for the first answer of a registry that works, and for the unpacking of a large layer without a report.
const QUIET: Quiet = Quiet {
    first: Duration::from_secs(20),
    next: Duration::from_secs(120),
};
/// Words of an engine that got another content than the digest's.
const WRONG: [&str; 4] = [
    "verification failed",
    "not match",
    "mismatch",
    "unexpected commit digest",
];
/// Words of a registry that refuses an account.
const REFUSED: [&str; 3] = ["denied", "unauthorized", "incorrect username or password"];
/// The word of a registry's limit on pulls, which may speak of a denied access.
const LIMITED: &str = "toomanyrequests";

/// An image to build on.
pub(crate) struct Base {
    /// The name in the engine, with the digest if the image has one.
    pub name: String,
    /// The digest that a registry gave to the image. One that was loaded from a file has none.
    pub digest: Option<String>,
}

/// The digest that an alternative's image must have: the one of the file, or else the recorded one.
pub(crate) fn pin(recipes: &Recipes, alternative: &Alternative) -> Result<Option<String>> {
    match (&alternative.image, &alternative.digest) {
        (Some(name), None) => record::digest_of(recipes, name),
        (_, digest) => Ok(digest.clone()),
    }
}

/// Gets images of registries into an engine.
pub(crate) struct Puller<'a> {
    pub engine: &'a HttpClient,
    pub recipes: &'a Recipes,
    pub sources: &'a Sources,
}

impl Puller<'_> {
    /// The image `name` of an alternative, which the engine pulls unless it has it. `renews` takes the present image
    /// of the name in place of the recorded one.
    pub fn take(
        &self,
        alternative: &Alternative,
        name: &str,
        renews: bool,
    ) -> Result<Base, Failure> {
        let at = self.sources.mirrored(name);
        let earlier = pin(self.recipes, alternative)?;
        let is_renewed = renews && alternative.digest.is_none();
        if let Some(digest) = earlier.clone().filter(|_| !is_renewed) {
            return self.take_exact(&at, digest);
        }
        let pulls = is_renewed || found(self.engine, &at)?.is_none();
        if pulls {
            // The recorded image stays if the present one cannot be pulled.
            self.pull(&at).map_err(|failure| match failure {
                Failure::Passed(error) if earlier.is_some() => Failure::Ends(error),
                failure => failure,
            })?;
        }
        let image = found(self.engine, &at)?;
        let Some(digest) = image.and_then(|image| digest_in(&image, repository(&at))) else {
            if pulls {
                return Err(anyhow!("{at}: the engine names no digest of it").into());
            }
            return Ok(Base {
                name: at,
                digest: None,
            });
        };
        record::set(self.recipes, name, earlier.as_deref(), &digest)?;
        if let Some(earlier) = earlier.filter(|earlier| *earlier != digest) {
            progress::note(&format!("{name}: {digest} in place of {earlier}"));
        }
        Ok(Base {
            name: format!("{}@{digest}", repository(&at)),
            digest: Some(digest),
        })
    }

    fn take_exact(&self, image: &str, digest: String) -> Result<Base, Failure> {
        let name = format!("{}@{digest}", repository(image));
        if found(self.engine, &name)?.is_none() {
            self.pull(&name)?;
        }
        Ok(Base {
            name,
            digest: Some(digest),
        })
    }

    /// Pulls an image with the account of its registry, if there is one.
    pub fn pull(&self, image: &str) -> Result<(), Failure> {
        // An engine pulls all tags of a name without one.
        let tag = if repository(image) == image {
            "&tag=latest"
        } else {
            ""
        };
        let path = format!("/images/create?fromImage={}{tag}", percent_encode(image));
        let account = self.recipes.accounts.header(image);
        let request = Request::new("POST", &path).timeout(PULL_LIMIT).quiet(QUIET);
        let pulled = follow(self.engine, request.header(account));
        pulled.map_err(|error| {
            // The names of request and engine are of no use for a person.
            let text = error.root_cause().to_string();
            let says = |words: &[&str]| {
                let text = text.to_lowercase();
                words.iter().any(|word| text.contains(word))
            };
            let is_wrong = image.contains('@') && says(&WRONG);
            let error = anyhow!("{image}: {text}");
            let is_refused = says(&REFUSED) && !says(&[LIMITED]);
            if is_wrong || account.is_some() && is_refused {
                Failure::Ends(error)
            } else {
                Failure::Passed(error)
            }
        })
    }
}

/// The engine's description of an image, if it has the image.
pub(crate) fn found(engine: &HttpClient, image: &str) -> Result<Option<Value>> {
    let path = format!("/images/{image}/json");
    let response = engine.send(Request::new("GET", &path))?;
    if response.status == 404 {
        return Ok(None);
    }
    response.ok()?.json().map(Some)
}

/// The name without its tag or digest.
pub(crate) fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let tag = name.get(last..).and_then(|last| last.find(':'));
    tag.and_then(|tag| name.get(..last + tag)).unwrap_or(name)
}

/// The digest of an image in its repository. Engines shorten the names of their own registry, or write them in full.
fn digest_in(image: &Value, repository: &str) -> Option<String> {
    let all = image.pointer("/RepoDigests")?.as_array()?.iter();
    all.filter_map(|one| one.as_str()?.split_once('@'))
        .find(|(name, _)| {
            let rest = repository
                .strip_suffix(name)
                .or_else(|| name.strip_suffix(repository));
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        })
        .map(|(_, digest)| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Endpoint;
    use serde_json::json;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;
    use wharf_domain::image::Registry;

    /// Pulls an image from an engine that fails for a reason, and returns the request's head.
    fn failed(recipes: &Recipes, image: &str, reason: &str) -> (String, Failure) {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let body = json!({ "errorDetail": { "message": reason } }).to_string();
        let engine = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).unwrap();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head[..length].to_vec())
                .unwrap()
                .to_lowercase()
        });
        let puller = Puller {
            engine: &HttpClient::new(Endpoint::Unix(socket)),
            recipes,
            sources: &Sources::default(),
        };
        let failure = puller.pull(image).err();
        (engine.join().unwrap(), failure.unwrap())
    }

    #[test]
    fn a_refused_account_and_a_wrong_content_end_the_command() {
        let mut recipes = Recipes::new("recipes".into(), "cache".into());
        let registry = Registry::new(Some("registry.example"));
        recipes.accounts.of_one = [(registry, "c2VjcmV0".to_owned())].into();
        let (head, failure) = failed(&recipes, "registry.example/base:1", "access denied");
        assert!(
            head.starts_with("post /images/create?fromimage=registry.example%2fbase%3a1 "),
            "{head}"
        );
        assert!(head.contains("x-registry-auth: c2vjcmv0"), "{head}");
        assert!(matches!(failure, Failure::Ends(error) if error.to_string().contains("denied")));
        let (head, failure) = failed(&recipes, "base", "access denied");
        assert!(
            head.starts_with("post /images/create?fromimage=base&tag=latest "),
            "{head}"
        );
        assert!(!head.contains("x-registry-auth"), "{head}");
        assert!(matches!(failure, Failure::Passed(_)));
        let (_, failure) = failed(
            &recipes,
            "base@sha256:1",
            "manifest verification failed for digest",
        );
        assert!(matches!(failure, Failure::Ends(_)));
        let (_, failure) = failed(&recipes, "registry.example/base:1", "unexpected EOF");
        assert!(matches!(failure, Failure::Passed(_)));
    }

    #[test]
    fn a_repository_is_a_name_without_tag_and_digest() {
        for (image, name) in [
            ("python", "python"),
            ("python:3", "python"),
            ("host:5000/a/b", "host:5000/a/b"),
            ("host:5000/a/b:1", "host:5000/a/b"),
            ("host:5000/a/b@sha256:00", "host:5000/a/b"),
            ("a/b:1@sha256:00", "a/b"),
        ] {
            assert_eq!(repository(image), name, "{image}");
        }
    }

    #[test]
    fn the_digest_is_that_of_the_repository() {
        let image =
            json!({ "RepoDigests": ["other/ython@sha256:1", "python@sha256:2", "h/a/b@sha256:3"] });
        let digest = |repository| digest_in(&image, repository);
        assert_eq!(digest("hub/library/python").as_deref(), Some("sha256:2"));
        assert_eq!(digest("h/a/b").as_deref(), Some("sha256:3"));
        assert_eq!(digest("hub/library/cpython"), None);
        assert_eq!(digest_in(&json!({ "RepoDigests": null }), "python"), None);
    }
}
