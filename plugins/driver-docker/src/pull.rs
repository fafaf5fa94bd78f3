//! The state of an image pull. The engine reports it as a stream of JSON lines with a success
//! status; a failure is one of the lines.

use serde::Deserialize;

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;

/// The beginning of names of images that no registry has.
const LOCAL: &str = "localhost/";
/// Words of a registry that refuses the account, or its absence.
const REFUSED: [&str; 5] = [
    "denied",
    "unauthorized",
    "authentication required",
    "no basic auth credentials",
    "incorrect username or password",
];
/// Words of other failures that last until somebody mends the image's name or the engine.
const LASTING: [&str; 9] = [
    "no space left on device",
    "disk quota exceeded",
    "not found",
    "manifest unknown",
    "name unknown",
    "unknown authority",
    "no matching manifest",
    "invalid reference",
    "http response to https client",
];
/// The word of a registry's limit on pulls, which may speak of a denied access.
const PASSING: &str = "toomanyrequests";

/// Whether an image is on nodes alone.
pub fn is_local(image: &str) -> bool {
    image.starts_with(LOCAL)
}

/// Whether another pull of this image would fail for this reason too. A registry that is out of reach, slow or busy may
/// answer later.
pub fn is_lasting(image: &str, why: &str) -> bool {
    let why = why.to_lowercase();
    let lasts = LASTING.iter().any(|words| why.contains(words)) || is_refused(&why);
    is_local(image) || lasts && !why.contains(PASSING)
}

/// Whether the registry refuses the account of a pull, or wants one.
pub fn is_refused(why: &str) -> bool {
    let why = why.to_lowercase();
    !why.contains(PASSING) && REFUSED.iter().any(|words| why.contains(words))
}

/// A pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pull {
    /// In progress, with a description.
    Running(String),
    /// The image is on the node.
    Done,
    /// The pull failed, with the engine's message.
    Failed(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    status: String,
    id: String,
    progress_detail: Option<Progress>,
    error: Option<String>,
    error_detail: Option<Detail>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Progress {
    current: u64,
    total: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Detail {
    message: String,
}

impl Pull {
    /// A pull in progress, with the last line of the stream.
    pub fn running(line: Option<&str>) -> Self {
        let line = line
            .and_then(|line| serde_json::from_str::<Line>(line).ok())
            .unwrap_or_default();
        Self::Running(match line.progress_detail {
            Some(Progress { current, total }) if total > 0 => {
                format!(
                    "{} {}: {} of {} MiB",
                    line.status,
                    line.id,
                    current / MIB,
                    total / MIB
                )
            }
            _ if line.status.is_empty() => "waiting for the registry".into(),
            _ => format!("{} {}", line.status, line.id).trim_end().to_owned(),
        })
    }

    /// A pull that has ended, with the end of the stream, which may begin within a line.
    pub fn ended(body: &[u8]) -> Self {
        body.split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Line>(line).ok())
            .find_map(|line| {
                line.error_detail
                    .map(|detail| detail.message)
                    .or(line.error)
            })
            .map_or(Self::Done, Self::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pull, is_lasting};

    #[test]
    fn only_a_registry_that_may_answer_later_is_asked_again() {
        let image = "registry.example/team/tools:1";
        for why in [
            "Get \"https://registry.example/v2/\": dial tcp: lookup registry.example: no such host",
            "dial tcp 192.0.2.1:443: connect: connection refused",
            "net/http: request canceled while waiting for connection (Client.Timeout exceeded)",
            "received unexpected HTTP status: 503 Service Unavailable",
            "toomanyrequests: You have reached your unauthenticated pull rate limit; access denied",
            "unexpected EOF",
            "filesystem layer verification failed for digest sha256:00",
            "",
        ] {
            assert!(!is_lasting(image, why), "{why}");
            assert!(is_lasting("localhost/wharf/base:1", why), "{why}");
        }
        for why in [
            "pull access denied for team/tools, repository does not exist or may require 'docker login'",
            "Head \"https://registry.example/v2/x\": unauthorized: incorrect username or password",
            "Get \"http://registry.example/v2/x\": no basic auth credentials",
            "manifest for registry.example/team/tools:1 not found: manifest unknown: manifest unknown",
            "reading manifest 1 in registry.example/team/tools: name unknown",
            "no matching manifest for linux/arm64/v8 in the manifest list entries",
            "http: server gave HTTP response to HTTPS client",
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ] {
            assert!(is_lasting(image, why), "{why}");
        }
    }

    #[test]
    fn progress_is_described() {
        let words = |line| match Pull::running(line) {
            Pull::Running(words) => words,
            other => panic!("{other:?}"),
        };
        let line = r#"{"status":"Downloading","progressDetail":{"current":12582912,"total":52428800},"id":"ab12"}"#;
        assert_eq!(words(Some(line)), "Downloading ab12: 12 of 50 MiB");
        assert_eq!(
            words(Some(
                r#"{"status":"Pull complete","progressDetail":{},"id":"ab12"}"#
            )),
            "Pull complete ab12"
        );
        assert_eq!(words(Some("{\"sta")), "waiting for the registry");
        assert_eq!(words(None), "waiting for the registry");
    }

    #[test]
    fn a_failure_within_the_stream_is_found() {
        let body = b"tus\":\"x\"}\n{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"denied\"},\"error\":\"denied!\"}\n";
        assert_eq!(Pull::ended(body), Pull::Failed("denied".into()));
        assert_eq!(
            Pull::ended(b"{\"error\":\"no\"}"),
            Pull::Failed("no".into())
        );
        assert_eq!(
            Pull::ended(b"{\"status\":\"Status: Downloaded newer image\"}\r\n"),
            Pull::Done
        );
        assert_eq!(Pull::ended(b""), Pull::Done);
    }
}
