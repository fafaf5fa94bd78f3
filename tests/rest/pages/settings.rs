//! The section `[pages]`: refused values, and the warnings of `wharf check`.

use super::{DOMAIN, NAVIGATION, PAGES, answered, ask_for, page};
use crate::check::checked;
use crate::{free_port, has};
use wharf_tests::{Authority, Ports, Server, simulated_node, wharf_binary};

/// The output of `wharf check` for these settings.
fn check(settings: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wharf.toml");
    let listen = "listen = \"127.0.0.1:8080\"\ndata_dir = \"data\"\n";
    let rest = format!("{}{}", Ports::take().settings(), simulated_node("one", ""));
    checked(&wharf_binary(), &file, &format!("{listen}{settings}{rest}")).1
}

fn pages(more: &str) -> String {
    format!("[pages]\ndomain = \"pages.example\"\nlisten = \"127.0.0.1:8443\"\n{more}")
}

/// Pages with a certificate from an authority.
fn acme(more: &str, pages: &str) -> String {
    format!(
        "{pages}[pages.acme]\ndirectory = \"https://ca.example/dir\"\naccept_terms = true\n\
         hook = [\"/bin/true\"]\n{more}"
    )
}

#[test]
fn settings_that_would_mix_pages_and_the_console_are_refused() {
    for (settings, words) in [
        (
            format!("base_url = \"https://pages.example\"\n{}", pages("")),
            "`pages.domain`",
        ),
        (
            format!("base_url = \"https://wharf.Pages.example\"\n{}", pages("")),
            "`pages.domain`",
        ),
        (
            format!("ssh_host = \"ssh.pages.example\"\n{}", pages("")),
            "`ssh_host`",
        ),
        (pages("cert = \"a\"\n"), "`pages.key`"),
        (
            format!("{}[session]\nenabled = false\n", pages("")),
            "`session.enabled`",
        ),
        (pages("").replace("8443", "8080"), "`pages.listen`"),
        (
            pages("").replace("pages.example", "example"),
            "pages.domain",
        ),
        (pages("colour = 1\n"), "colour"),
        (
            acme("", &pages("cert = \"a\"\nkey = \"b\"\n")),
            "`pages.acme`: must not be set with `pages.cert` and `pages.key`",
        ),
        (
            acme("", &pages("")).replace("https:", "http:"),
            "`pages.acme.directory`",
        ),
        (
            acme("", &pages("")).replace("true", "false"),
            "`pages.acme.accept_terms`",
        ),
        (
            acme("", &pages("")).replace("/bin/", ""),
            "`pages.acme.hook`",
        ),
        (
            acme("contact = \"a\"\n", &pages("")),
            "`pages.acme.contact`",
        ),
        (
            acme("hook_timeout_s = 0\n", &pages("")),
            "`pages.acme.hook_timeout_s`",
        ),
        (
            acme("propagation_s = 3601\n", &pages("")),
            "`pages.acme.propagation_s`",
        ),
    ] {
        let said = check(&settings);
        assert!(said.contains(words), "{settings}\n{said}");
        assert!(!said.contains("has no errors"), "{settings}\n{said}");
    }
}

#[test]
fn a_check_warns_of_a_shared_site_and_of_pages_in_clear_text() {
    let of_site = "is below the host of the console";
    let clear = "pages are served over plain HTTP";
    let retired = "`pages.threads`: it has no effect any more";
    let https = "base_url = \"https://wharf.example\"\ntrusted_proxies = [\"127.0.0.1\"]\n";
    for (settings, expected) in [
        (format!("{https}{}", pages("")), &[][..]),
        (format!("{https}{}", pages("threads = 0\n")), &[retired]),
        (
            format!(
                "{https}{}",
                pages("").replace("pages.example", "apps.wharf.example")
            ),
            &[of_site],
        ),
        (pages(""), &[clear]),
        (pages("").replace("pages.example", "apps.localhost"), &[]),
    ] {
        let said = check(&settings);
        for words in [of_site, clear, retired] {
            let is_said = said.contains(words);
            assert_eq!(is_said, expected.contains(&words), "{settings}\n{said}");
        }
    }
}

#[test]
fn a_check_reads_the_certificate_of_the_pages() {
    let authority = Authority::new().unwrap();
    for (names, expired, words) in [
        (&["*.pages.example"][..], false, "has no errors"),
        (&["pages.example"], false, "is not for *.pages.example"),
        (&["*.pages.example"], true, "has expired"),
    ] {
        let made = if expired {
            authority.issue_expired("pages", names)
        } else {
            authority.issue("pages", names)
        };
        let made = made.unwrap();
        let (cert, key) = (made.cert.display(), made.key.display());
        let said = check(&pages(&format!("cert = \"{cert}\"\nkey = \"{key}\"\n")));
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_server_does_not_start_with_a_certificate_that_cannot_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none.crt");
    let path = path.display();
    let settings = format!(
        "{}{}{}",
        pages(&format!("cert = \"{path}\"\nkey = \"{path}\"\n")).replace("8443", "0"),
        Ports::take().settings(),
        simulated_node("one", "")
    );
    has(Server::refused(&settings).unwrap(), "pages.cert");
}

#[test]
fn a_check_warns_of_two_users_with_pages_over_plain_http() {
    let (server, _, _) = super::start();
    let warns = || {
        server
            .cli(&["check"])
            .unwrap()
            .contains("users have pages over plain HTTP")
    };
    assert!(!warns());
    server.user("bob@example.com").unwrap();
    assert!(warns());
}

#[test]
fn behind_a_proxy_pages_have_addresses_of_its_port_and_visitors_those_that_it_names() {
    let port = free_port();
    let pages = PAGES.replace(":0", &format!(":{port}"));
    let top = format!(
        "base_url = \"https://wharf.example\"\ntrusted_proxies = [\"127.0.0.1\"]\n{pages}{}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    let server = crate::serve(&top);
    let ann = server.user("ann@example.com").unwrap();
    let made = page(&ann, "marimo", "demo");
    assert_eq!(made["webapp_url"], format!("https://demo.{DOMAIN}/"));
    let visitor = format!("{NAVIGATION}X-Forwarded-For: 198.51.100.7, 192.0.2.9\r\n");
    let asked = answered(ask_for(port, &format!("demo.{DOMAIN}"), "/", &visitor));
    assert_eq!(asked.status, 303, "{asked:?}");
    let to = asked.header("location").unwrap();
    assert!(to.starts_with("https://wharf.example/"), "{to}");
    let cookies = asked.header("set-cookie").unwrap();
    assert!(cookies.contains("Secure"), "{cookies}");
    // The proxy adds the last one, and a visitor may have sent the others.
    has(server.log(), "client=192.0.2.9");
}
