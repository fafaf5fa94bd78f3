//! `s3_endpoint_url`.

use http::Uri;

/// An http or https URL with a host, and without credentials, query or fragment. Says what is
/// wrong without repeating it.
pub(super) fn check(text: &str) -> Result<(), String> {
    const WRONG: &str =
        "must be an http or https URL without credentials, such as https://s3.example.org";
    let wrong = || WRONG.to_owned();
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || text.contains(['?', '#']) {
        return Err(wrong());
    }
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err(
            "must not contain credentials; give them in s3_access_key_id and \
                    s3_secret_access_key"
                .to_owned(),
        );
    }
    let port = authority
        .as_str()
        .strip_prefix(authority.host())
        .unwrap_or_default();
    let port_is_right = port.is_empty() || authority.port_u16().is_some_and(|p| p > 0);
    if authority.host().is_empty() || !port_is_right {
        return Err(wrong());
    }
    Ok(())
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
