//! `[pages]`: the domain, and the certificate of the pages.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::path::Path;
use std::time::Duration;
use webpki::{EndEntityCert, Error, KeyUsage};
use wharf_config::{Config, PagesConfig};
use wharf_operations::check::{ConfigFinding, Severity};

const DAY: u64 = 24 * 3600;
/// A renewal that failed several times is noticed in this time.
const SOON: u64 = 14;

/// The findings about pages by name, for a number of users.
pub fn find(config: &Config, users: usize) -> Vec<ConfigFinding> {
    let Some(pages) = &config.pages else {
        return Vec::new();
    };
    let certificate = pages.cert.as_deref();
    let of_certificate = certificate.and_then(|path| of_certificate(path, pages));
    [
        shared_site(config, pages),
        plain_http(config, pages, users),
        of_certificate,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn warning(setting: &str, problem: String, remedy: &str) -> ConfigFinding {
    ConfigFinding {
        severity: Severity::Warning,
        setting: setting.to_owned(),
        problem,
        remedy: remedy.to_owned(),
    }
}

/// Pages below the host of the console are one site with it for browsers.
fn shared_site(config: &Config, pages: &PagesConfig) -> Option<ConfigFinding> {
    let url = config.base_url();
    let above = format!(".{}", url.host());
    let is_below = url.host().contains('.') && pages.domain.as_str().ends_with(&above);
    is_below.then(|| {
        warning(
            "pages.domain",
            format!(
                "{} is below the host of the console, {}: a page can set cookies that the console gets",
                pages.domain,
                url.host()
            ),
            "take a registrable domain of its own",
        )
    })
}

/// Cookies of a page are readable on the way, and go to all ports of its host.
fn plain_http(config: &Config, pages: &PagesConfig, users: usize) -> Option<ConfigFinding> {
    let is_https = config.pages_are_https();
    let is_clear = !is_https && !pages.domain.is_local();
    let is_unnamed = !pages.is_tls() && is_https && config.trusted_proxies.is_empty();
    let problem = if is_clear || is_unnamed {
        format!(
            "pages are served over plain HTTP on {}: cookies of visitors and passwords are readable on the way",
            pages.listen
        )
    } else if !is_https && users > 1 {
        format!(
            "{users} users have pages over plain HTTP on one machine: browsers send the cookie of a page to \
             servers of other users on other ports"
        )
    } else {
        return None;
    };
    Some(warning(
        "pages.cert",
        problem,
        "set `pages.cert` and `pages.key`, or an https `base_url` and `trusted_proxies` of a proxy with TLS",
    ))
}

/// A certificate that browsers refuse, or soon will.
fn of_certificate(path: &Path, pages: &PagesConfig) -> Option<ConfigFinding> {
    let read = CertificateDer::from_pem_file(path);
    let read = read.map_err(|error| error.to_string());
    let found = read.and_then(|certificate| {
        let cert = EndEntityCert::try_from(&certificate).map_err(|error| error.to_string())?;
        let name = format!("name.{}", pages.domain);
        let name = ServerName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        let is_named = cert.verify_is_valid_for_subject_name(&name).is_ok();
        Ok((is_named, days_left(&cert)))
    });
    let (severity, problem) = match found {
        Err(error) => (Severity::Error, format!("{}: {error}", path.display())),
        Ok((false, _)) => (
            Severity::Error,
            format!("the certificate is not for *.{}", pages.domain),
        ),
        Ok((true, Some(0))) => (Severity::Error, "the certificate has expired".to_owned()),
        Ok((true, Some(days))) if days <= SOON => (
            Severity::Warning,
            format!("the certificate expires in {days} days"),
        ),
        Ok(_) => return None,
    };
    Some(ConfigFinding {
        severity,
        setting: "pages.cert".to_owned(),
        problem,
        remedy: format!(
            "renew the certificate for *.{}; a running server reads the new file by itself",
            pages.domain
        ),
    })
}

/// The days until a certificate expires, rounded up; 0 if it has.
fn days_left(cert: &EndEntityCert<'_>) -> Option<u64> {
    // A certificate has expired at a time that is far enough in the future.
    let late = UnixTime::since_unix_epoch(Duration::from_secs(DAY * 365 * 1000));
    let usage = KeyUsage::server_auth();
    let verified = cert.verify_for_usage(&[], &[], &[], late, usage, None, None);
    let Err(Error::CertExpired { not_after, .. }) = verified else {
        return None;
    };
    let left = not_after
        .as_secs()
        .saturating_sub(UnixTime::now().as_secs());
    Some(left.div_ceil(DAY))
}
