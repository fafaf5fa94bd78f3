//! Conversions to a driver's errors.

use crate::types::{EngineError, Error, FieldError, Shortage};

impl Error {
    /// Creates an error about one field of the request.
    #[must_use]
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(FieldError {
            field: field.to_owned(),
            message: message.into(),
        })
    }
}

/// The words of engines about a port or an address that something else has.
const IN_USE: [&str; 3] = [
    "address already in use",
    "port is already allocated",
    "already allocated to container",
];

impl Error {
    /// Returns the error for an engine's message about a port or an address of the instance that
    /// something else has; none for other messages. The host knows which of the numbers in the message is
    /// a port of the instance.
    #[must_use]
    pub fn taken(message: &str) -> Option<Self> {
        let words = message.to_lowercase();
        if !IN_USE.iter().any(|text| words.contains(text)) {
            return None;
        }
        let port = |part: &str| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            // An address follows a colon too.
            let is_address = rest.strip_prefix('.').is_some_and(begins_with_digit);
            let digits = part.strip_suffix(rest).filter(|_| !is_address)?;
            digits.parse::<u16>().ok()
        };
        let ports: Vec<_> = words.split(':').skip(1).filter_map(port).collect();
        Some(Self::Insufficient(if ports.is_empty() {
            vec![held("lan_ipv4", 1)]
        } else {
            let ports = ports.into_iter();
            ports.map(|port| held("node_port", port.into())).collect()
        }))
    }

    /// Returns the error for a port of the node that something else has.
    #[must_use]
    pub fn held_port(port: u16) -> Self {
        Self::Insufficient(vec![held("node_port", port.into())])
    }

    /// Returns the error for a thing that something else has: see `shortage` in the WIT.
    #[must_use]
    pub fn held(field: &str) -> Self {
        Self::Insufficient(vec![held(field, 1)])
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn held(field: &str, requested: u64) -> Shortage {
    Shortage {
        field: field.to_owned(),
        requested,
        available: 0,
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(why) => {
                Self::Unsupported(format!("the host refuses this request: {why}"))
            }
            EngineError::Unreachable(why) => Self::Unreachable(why),
            EngineError::Timeout => Self::Unreachable("no complete answer in time".into()),
            EngineError::TooLarge(limit) => {
                Self::Other(format!("the engine's answer is longer than {limit} bytes"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    fn fields(message: &str) -> Option<Vec<(String, u64)>> {
        match Error::taken(message)? {
            Error::Insufficient(short) => {
                Some(short.into_iter().map(|s| (s.field, s.requested)).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_of_engines_about_ports_and_addresses_are_recognised() {
        let ports = [
            "driver failed programming external connectivity on endpoint wharf-a (3f2e): Error starting \
             userland proxy: listen tcp4 0.0.0.0:16002: bind: address already in use",
            "driver failed programming external connectivity on endpoint wharf-a (3f2e): Bind for \
             0.0.0.0:16002 failed: port is already allocated",
            "failed to set up container networking: driver failed programming external connectivity on \
             endpoint wharf-a: failed to bind host port 0.0.0.0:16002/tcp: address already in use",
            "rootlessport listen tcp 127.0.0.1:16002: bind: address already in use",
            "cannot listen on the TCP port: listen tcp4 :16002: bind: address already in use",
        ];
        for message in ports {
            let found = fields(message).unwrap();
            assert_eq!(found, [("node_port".to_owned(), 16002)], "{message}");
        }
        let both =
            "failed to bind host port for 0.0.0.0:16002:10.1.0.2:22/tcp: address already in use";
        let wanted = [
            ("node_port".to_owned(), 16002),
            ("node_port".to_owned(), 22),
        ];
        assert_eq!(fields(both).unwrap(), wanted);
        for address in [
            "failed to set up container networking: Address already in use",
            "IPAM error: requested ip address 10.1.0.2 is already allocated to container ID 12",
        ] {
            assert_eq!(fields(address).unwrap(), [("lan_ipv4".to_owned(), 1)]);
        }
        assert_eq!(fields("no such container: 16002"), None);
    }
}
