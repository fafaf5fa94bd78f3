//! The endpoint of a node's engine in the configuration.

use std::path::PathBuf;

/// A parsed `endpoint` of a `[[node]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `unix:///path/to/engine.sock`
    Unix(PathBuf),
    /// `simulated:` (kept in memory) or `simulated:///path/to/file` (survives the process).
    Simulated(Option<PathBuf>),
}

/// An invalid endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "endpoint: {0:?} is not one of unix:///path/to/socket, simulated:, simulated:///path/to/file"
)]
pub struct EndpointError(String);

impl Endpoint {
    /// Parses the form in the configuration. Paths are absolute.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix://") {
            return absolute(path).map(Self::Unix).ok_or_else(wrong);
        }
        match text.strip_prefix("simulated:") {
            Some("" | "//") => Ok(Self::Simulated(None)),
            Some(rest) => rest
                .strip_prefix("//")
                .and_then(absolute)
                .map(|path| Self::Simulated(Some(path)))
                .ok_or_else(wrong),
            None => Err(wrong()),
        }
    }
}

fn absolute(path: &str) -> Option<PathBuf> {
    (path.starts_with('/') && path.len() > 1 && !path.contains('\0')).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(
            Endpoint::parse("unix:///run/e.sock"),
            Ok(Endpoint::Unix("/run/e.sock".into()))
        );
        assert_eq!(Endpoint::parse("simulated:"), Ok(Endpoint::Simulated(None)));
        assert_eq!(
            Endpoint::parse("simulated:///var/s.log"),
            Ok(Endpoint::Simulated(Some("/var/s.log".into())))
        );
        for wrong in [
            "",
            "unix://",
            "unix://relative",
            "simulated:x",
            "tcp://1.2.3.4:2375",
            "http://h",
        ] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }
}
