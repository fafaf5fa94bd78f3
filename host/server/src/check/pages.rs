//! `[pages]`: the domain, and the certificate of the pages.

use crate::{acme, certificate_dates};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;
use wharf_config::{Config, Domain, PagesConfig};
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
    let of_certificate = match acme::section(config) {
        Some((_, domain)) => of_authority(config, domain),
        None => certificate.and_then(|path| of_certificate(path, pages)),
    };
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
        let is_named = certificate_dates::is_for(&certificate, &pages.domain)?;
        let validity = certificate_dates::validity(&certificate);
        Ok((is_named, validity.map(|(_, end)| days_left(end))))
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

/// The days until a time, rounded up; 0 if it has passed.
fn days_left(end: u64) -> u64 {
    end.saturating_sub(acme::now()).div_ceil(DAY)
}

/// A certificate that the authority does not issue.
fn of_authority(config: &Config, domain: &Domain) -> Option<ConfigFinding> {
    let state = acme::state(config)?;
    let error = state.error?;
    let present = acme::present(config);
    let left = present.map_or(0, |present| days_left(present.not_after));
    let next = acme::in_words(state.not_before.saturating_sub(acme::now()));
    let severity = if left == 0 {
        Severity::Error
    } else {
        Severity::Warning
    };
    Some(ConfigFinding {
        severity,
        setting: "pages.acme".to_owned(),
        problem: format!(
            "no certificate for *.{domain} after attempt {}: {error}",
            state.failures
        ),
        remedy: format!("mend the cause and reload; the next attempt is in {next} otherwise"),
    })
}

/// The certificate of the pages in words, if there is one.
pub fn certificate(config: &Config) -> Option<String> {
    let pages = config.pages.as_ref()?;
    let path = match &pages.cert {
        Some(path) => path.clone(),
        None => acme::section(config).map(|_| acme::certificate_file(config))?,
    };
    let certificate = CertificateDer::from_pem_file(path).ok()?;
    let (_, end) = certificate_dates::validity(&certificate)?;
    Some(format!(
        "the certificate for *.{} is valid for {} days more",
        pages.domain,
        days_left(end)
    ))
}
