//! The endpoint of a node's engine in the configuration.

use http::uri::Authority;
use std::path::PathBuf;

/// A parsed `endpoint` of a `[[node]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEndpoint {
    /// `unix:///path/to/engine.sock`
    Unix(PathBuf),
    /// `https://HOST:PORT`
    Https {
        /// DNS name or IP address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// `simulated:` (kept in memory) or `simulated:///path/to/file` (survives the process).
    Simulated(Option<PathBuf>),
}

/// An invalid endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The text has no known form.
    #[error(
        "endpoint: {0:?} is not one of unix:///path/to/socket, https://HOST:PORT, simulated:, \
         simulated:///path/to/file"
    )]
    Form(String),
    /// An API that gives root on the node would be open to the network.
    #[error(
        "endpoint: {0:?} is plain text: an engine on another machine needs TLS with client \
         certificates, and an endpoint https://HOST:PORT"
    )]
    Plain(String),
}

impl EngineEndpoint {
    /// Parses the form in the configuration. Paths are absolute.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let wrong = || EndpointError::Form(text.to_owned());
        if text.starts_with("tcp://") || text.starts_with("http://") {
            return Err(EndpointError::Plain(text.to_owned()));
        }
        if let Some(address) = text.strip_prefix("https://") {
            return https(address).ok_or_else(wrong);
        }
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

/// Parses `HOST:PORT`, with or without a slash at the end.
fn https(address: &str) -> Option<EngineEndpoint> {
    let authority: Authority = address.strip_suffix('/').unwrap_or(address).parse().ok()?;
    let host = authority.host();
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let has_user = authority.as_str().contains('@');
    (!has_user && !host.is_empty()).then_some(())?;
    Some(EngineEndpoint::Https {
        host: unbracketed.unwrap_or(host).to_owned(),
        port: authority.port_u16().filter(|port| *port > 0)?,
    })
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
            EngineEndpoint::parse("unix:///run/e.sock"),
            Ok(EngineEndpoint::Unix("/run/e.sock".into()))
        );
        assert_eq!(
            EngineEndpoint::parse("simulated:"),
            Ok(EngineEndpoint::Simulated(None))
        );
        assert_eq!(
            EngineEndpoint::parse("simulated:///var/s.log"),
            Ok(EngineEndpoint::Simulated(Some("/var/s.log".into())))
        );
        for (text, host) in [
            ("https://engine.example:2376", "engine.example"),
            ("https://10.0.0.5:2376/", "10.0.0.5"),
            ("https://[fd00::5]:2376", "fd00::5"),
        ] {
            let (host, port) = (host.to_owned(), 2376);
            assert_eq!(
                EngineEndpoint::parse(text),
                Ok(EngineEndpoint::Https { host, port })
            );
        }
        for wrong in [
            "",
            "https://",
            "https://no-port",
            "https://h:0",
            "https://h:2376/path",
            "https://user@h:2376",
            "unix://",
            "unix://relative",
            "simulated:x",
        ] {
            let form = Err(EndpointError::Form(wrong.to_owned()));
            assert_eq!(EngineEndpoint::parse(wrong), form, "{wrong}");
        }
        for plain in ["tcp://1.2.3.4:2375", "http://h"] {
            let refused = Err(EndpointError::Plain(plain.to_owned()));
            assert_eq!(EngineEndpoint::parse(plain), refused);
        }
    }
}
