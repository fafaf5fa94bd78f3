//! The addresses of pages: a host for each label, below one domain.

use http::header::HOST;
use http::{Request, Version};

/// The longest label of a host name.
const MAX_LABEL: usize = 63;

/// The public addresses of pages, which a proxy in front may serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    pub is_https: bool,
    /// The domain in lower case, below which each label is a host.
    pub domain: String,
    pub port: u16,
}

impl Addresses {
    /// Returns the origin of the page with a label, as browsers write it.
    pub fn origin(&self, label: &str) -> String {
        let (scheme, domain) = (self.scheme(), &self.domain);
        if self.port == self.default_port() {
            format!("{scheme}://{label}.{domain}")
        } else {
            format!("{scheme}://{label}.{domain}:{}", self.port)
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }

    /// Returns the label of a host with its port; none if it is no address of a page.
    pub(crate) fn label(&self, authority: &str) -> Option<String> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port == self.port.to_string()),
            None => (authority, self.port == self.default_port()),
        };
        let host = host.to_ascii_lowercase();
        let label = host.strip_suffix(&self.domain)?.strip_suffix('.')?;
        let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let right = (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_label);
        (port && right).then(|| label.to_owned())
    }

    fn default_port(&self) -> u16 {
        if self.is_https { 443 } else { 80 }
    }
}

/// Returns the host that a request names; none if it names none or two.
pub(crate) fn authority<B>(request: &Request<B>) -> Option<&str> {
    let target = request.uri().authority().map(http::uri::Authority::as_str);
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next(), target) {
        (Some(host), None, None) => host.to_str().ok(),
        (Some(host), None, Some(target)) => {
            let host = host.to_str().ok()?;
            host.eq_ignore_ascii_case(target).then_some(host)
        }
        (None, None, target) if request.version() == Version::HTTP_2 => target,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Addresses, authority};
    use http::{Request, Version};

    fn addresses(is_https: bool, port: u16) -> Addresses {
        Addresses {
            is_https,
            domain: "pages.example".to_owned(),
            port,
        }
    }

    #[test]
    fn one_label_below_the_domain_is_a_page() {
        let (https, local) = (addresses(true, 443), addresses(false, 8080));
        let long = format!("{}.pages.example", "a".repeat(63));
        assert_eq!(https.label(&long).unwrap().len(), 63);
        for (host, label) in [
            ("demo.pages.example", Some("demo")),
            ("DEMO.Pages.Example", Some("demo")),
            ("demo-8000.pages.example:443", Some("demo-8000")),
            ("demo.pages.example:80", None),
            ("demo.pages.example:0443", None),
            ("demo.pages.example:", None),
            ("demo.pages.example.", None),
            ("a.demo.pages.example", None),
            ("pages.example", None),
            (".pages.example", None),
            ("demopages.example", None),
            ("user@demo.pages.example", None),
            ("user:443@demo.pages.example", None),
            ("de_mo.pages.example", None),
            ("demo.other.example", None),
            ("demo.pages.example, demo.pages.example", None),
            ("", None),
            (&format!("{}.pages.example", "a".repeat(64)), None),
        ] {
            assert_eq!(https.label(host).as_deref(), label, "{host}");
        }
        assert_eq!(local.label("demo.pages.example:8080").unwrap(), "demo");
        assert_eq!(local.label("demo.pages.example"), None);
        assert_eq!(https.origin("demo"), "https://demo.pages.example");
        assert_eq!(local.origin("demo"), "http://demo.pages.example:8080");
    }

    #[test]
    fn a_request_names_one_host() {
        let named = |version, target: &str, hosts: &[&str]| {
            let request = Request::builder().version(version).uri(target);
            let add = |request: http::request::Builder, host: &&str| request.header("host", *host);
            let request = hosts.iter().fold(request, add).body(()).unwrap();
            authority(&request).map(str::to_owned)
        };
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for (version, target, hosts, found) in [
            (one, "/", &["a"][..], Some("a")),
            (one, "/", &[], None),
            (one, "/", &["a", "a"], None),
            (one, "/", &["a", "b"], None),
            (one, "http://a/", &["a"], Some("a")),
            (one, "http://b/", &["a"], None),
            (one, "http://a/", &[], None),
            (Version::HTTP_10, "/", &[], None),
            (two, "https://a/", &[], Some("a")),
            (two, "https://a/", &["a"], Some("a")),
            (two, "https://a/", &["b"], None),
            (two, "https://a/", &["a", "a"], None),
        ] {
            assert_eq!(
                named(version, target, hosts).as_deref(),
                found,
                "{target} {hosts:?}"
            );
        }
    }
}
