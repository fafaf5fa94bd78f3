//! `s3_endpoint_url`.

use std::net::Ipv6Addr;

const WRONG: &str =
    "must be an http or https URL without credentials, such as https://s3.example.org";
const CREDENTIALS: &str =
    "must not contain credentials; give them in s3_access_key_id and s3_secret_access_key";

/// An http or https URL with a host, and without credentials, query or fragment. Says what is
/// wrong without repeating it.
pub(super) fn check(text: &str) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").ok_or(WRONG)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if authority.contains('@') {
        return Err(CREDENTIALS.to_owned());
    }
    let (host, port) = match authority.rfind(':') {
        // Not a colon inside an IPv6 address.
        Some(at) if !authority.ends_with(']') => {
            let (host, port) = authority.split_at(at);
            (host, port.strip_prefix(':'))
        }
        _ => (authority, None),
    };
    let known = ["http", "https"]
        .iter()
        .any(|s| scheme.eq_ignore_ascii_case(s));
    if known && is_host(host) && port.is_none_or(is_port) && path.bytes().all(is_of_path) {
        Ok(())
    } else {
        Err(WRONG.to_owned())
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return inside.parse::<Ipv6Addr>().is_ok();
    }
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = host.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}

fn is_port(port: &str) -> bool {
    let digits = !port.starts_with('0') && port.bytes().all(|b| b.is_ascii_digit());
    digits && port.parse::<u16>().is_ok()
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/._~!$&'()*+,;=:@%-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn http_and_https_with_a_host() {
        for good in [
            "http://s3.example.org",
            "https://s3.example.org:9000/",
            "HTTPS://10.0.0.1/tenant-a",
            "http://[fd00::1]:9000",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "s3.example.org",
            "ftp://s3.example.org",
            "//s3.example.org",
            "http://",
            "http:///x",
            "http://:80",
            "http://s3.example.org:0",
            "http://s3.example.org:99999",
            "http://s3.example.org:x",
            "http://s3.example.org:",
            "http://s3.example.org:080",
            "http://s3.example.org:+80",
            "http://[fd00::g]",
            "http://s3.example.org/a|b",
            "http://s3 .example.org",
            "http://s3.example.org/?a=b",
            "http://s3.example.org/#a",
            "http://key:secret@s3.example.org",
            "http://@s3.example.org",
            "http://s3.example.org\n",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert!(
            !check("http://key:secret@h")
                .unwrap_err()
                .contains("secret@")
        );
    }
}
