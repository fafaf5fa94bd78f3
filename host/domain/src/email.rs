//! E-mail addresses. An address names a user and receives no mail, so each has one canonical form: two
//! spellings of an address are one person.

use precis_profiles::UsernameCaseMapped;
use precis_profiles::precis_core::profile::PrecisFastInvocation;

/// The longest address in bytes, by RFC 5321.
const MAX_BYTES: usize = 254;

/// The punctuation of a local part, by RFC 5322. Quotes, brackets and commas are syntax around addresses.
const PUNCTUATION: &str = ".!#$%&'*+/=?^_`{|}~-";

/// The rule for an address.
pub const RULE: &str = "must be an e-mail address such as ann@example.org, with at most 254 characters \
                        and no spaces, quotes, brackets or invisible characters";

/// Returns an address in its canonical form: in lowercase and composed, with the name of the domain as DNS
/// has it.
pub fn canonical(text: &str) -> Result<String, &'static str> {
    let parsed = || {
        let (local, domain) = text.rsplit_once('@')?;
        let local = mapped(local)?;
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || PUNCTUATION.contains(c);
        let labels: Vec<_> = domain.split('.').map(mapped).collect::<Option<_>>()?;
        let domain = idna::domain_to_ascii_strict(&labels.join(".")).ok()?;
        local
            .chars()
            .all(is_plain)
            .then(|| format!("{local}@{domain}"))
    };
    let fits = |address: &String| text.len() <= MAX_BYTES && address.len() <= MAX_BYTES;
    parsed().filter(fits).ok_or(RULE)
}

/// The name in lowercase and composed; none if it is empty, or has spaces or invisible characters.
fn mapped(name: &str) -> Option<String> {
    let mapped = UsernameCaseMapped::enforce(name).ok()?;
    Some(mapped.into_owned())
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn spellings_of_an_address_have_one_form() {
        for (spelling, address) in [
            ("ann@example.org", "ann@example.org"),
            ("Ann.Lee+x@Example.ORG", "ann.lee+x@example.org"),
            ("ann@localhost", "ann@localhost"),
            ("o'neill_1@a-b.example", "o'neill_1@a-b.example"),
            ("rene\u{301}@example.org", "ren\u{e9}@example.org"),
            ("REN\u{c9}@example.org", "ren\u{e9}@example.org"),
            ("\u{ff41}nn@example.org", "ann@example.org"),
            ("ann@B\u{fc}cher.example", "ann@xn--bcher-kva.example"),
            ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
        ] {
            assert_eq!(canonical(spelling).as_deref(), Ok(address), "{spelling}");
            assert_eq!(canonical(address).as_deref(), Ok(address), "{address}");
        }
        for wrong in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "<ann@example.org>",
            "Ann <ann@example.org>",
            "\"ann\"@example.org",
            "ann@bob@example.org",
            "ann@[192.0.2.1]",
            "ann@example..org",
            "ann@exa mple.org",
            " ann@example.org",
            "ann,bob@example.org",
            "an\u{200b}n@example.org",
            "an\u{ad}n@example.org",
            "an\u{202e}n@example.org",
            "\u{3164}@example.org",
            "ann@exam\u{200b}ple.org",
            "ann@exam\u{ad}ple.org",
            "ann\t@example.org",
            "ann\0@example.org",
        ] {
            assert!(canonical(wrong).is_err(), "{wrong:?}");
        }
        assert!(canonical(&format!("{}@example.org", "x".repeat(243))).is_err());
    }
}
