//! The state of an image pull. The engine reports it as a stream of JSON lines with a success
//! status; a failure is one of the lines.

use serde::Deserialize;

/// Bytes in a MiB.
const MIB: u64 = 1 << 20;

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
    use super::Pull;

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
