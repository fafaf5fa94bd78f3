//! The way in, and the pages that a visitor sees instead of a page.

use crate::house::{DOMAIN, HOST, Running};
use crate::page::{Server, value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Notify;
use wharf_pages::PageInBrowser;
use wharf_pages::directory::{PageState, Visitor};

const WINDOW: [&str; 2] = ["sec-fetch-mode: navigate", "sec-fetch-dest: document"];

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn a_stranger_learns_nothing_and_a_person_is_sent_to_the_sign_in() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let other = running.cookie("other").await;
    // A second window has the state of the first.
    let state = "x".repeat(32);
    let window = format!("cookie: __Host-wharf-enter={state}");
    let again = running
        .ask("GET", "/", &[&window, "accept: text/html"])
        .await;
    let location = value(&again, "location").unwrap();
    assert!(location.contains(&format!("&state={state}&")), "{location}");
    for label in ["demo", "unknown"] {
        for cookie in [other.as_str(), "x: y"] {
            let request = |lines: &str| {
                format!(
                    "GET /lab?x=1 HTTP/1.1\r\nhost: {label}.{DOMAIN}\r\nconnection: close\r\n{cookie}\r\n{lines}\r\n"
                )
            };
            for lines in [
                "accept: text/html\r\n".to_owned(),
                format!("{}\r\n{}\r\n", WINDOW[0], WINDOW[1]),
            ] {
                let answer = running.exchange(request(&lines).as_bytes()).await;
                assert_eq!(status(&answer), "303", "{answer}");
                let location = value(&answer, "location").unwrap();
                let start = format!("https://wharf.example/auth/page/?host={label}&state=");
                assert!(location.starts_with(&start), "{location}");
                assert!(location.ends_with("&to=%2Flab%3Fx%3D1"), "{location}");
                assert!(answer.contains("cache-control: no-store"), "{answer}");
                assert!(answer.contains("referrer-policy: no-referrer"), "{answer}");
            }
            let refused = running.exchange(request("").as_bytes()).await;
            assert_eq!(status(&refused), "401", "{refused}");
            assert!(refused.contains("www-authenticate"), "{refused}");
            // A browser would show its own window in the middle of a page.
            let refused = running
                .exchange(request("sec-fetch-site: same-origin\r\n").as_bytes())
                .await;
            assert_eq!(status(&refused), "401", "{refused}");
            assert!(!refused.contains("www-authenticate"), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_ticket_opens_one_page_in_one_browser_once() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let state = "x".repeat(32);
    let issue = || {
        let visitor = Visitor::Session("owner".to_owned());
        let way = running
            .gateway
            .entrance(
                visitor,
                PageInBrowser {
                    label: "demo",
                    state: &state,
                },
                "//evil.example",
            )
            .unwrap();
        way.expose()
            .strip_prefix("https://demo.pages.example")
            .unwrap()
            .to_owned()
    };
    let own = format!("cookie: __Host-wharf-enter={state}");
    let path = issue();
    let entered = running
        .ask(
            "GET",
            &path,
            &[&own, "sec-fetch-site: cross-site", WINDOW[0], WINDOW[1]],
        )
        .await;
    assert_eq!(
        (status(&entered), value(&entered, "location")),
        ("303", Some("/")),
        "{entered}"
    );
    assert!(
        entered.contains("; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax"),
        "{entered}"
    );
    assert_eq!(status(&running.ask("GET", &path, &[&own]).await), "403");
    let other = format!("cookie: __Host-wharf-enter={}", "y".repeat(32));
    for cookie in [other.as_str(), "x: y"] {
        assert_eq!(
            status(&running.ask("GET", &issue(), &[cookie]).await),
            "403"
        );
    }
    let elsewhere = format!(
        "GET {} HTTP/1.1\r\nhost: other.{DOMAIN}\r\nconnection: close\r\n{own}\r\n\r\n",
        issue()
    );
    assert_eq!(status(&running.exchange(elsewhere.as_bytes()).await), "403");
    assert_eq!(
        status(
            &running
                .ask("GET", "/.wharf/enter?ticket=x&to=/", &[&own])
                .await
        ),
        "403"
    );
    // The cookie of one page opens no other.
    let cookie = running.cookie("owner").await;
    running.house.answers.lock().pages.insert(
        "two".to_owned(),
        crate::house::page("two", wharf_domain::ids::UserId(1), &server),
    );
    for (label, expected) in [("demo", "200"), ("two", "401")] {
        let request = format!(
            "GET / HTTP/1.1\r\nhost: {label}.{DOMAIN}\r\nconnection: close\r\n{cookie}\r\n\r\n"
        );
        assert_eq!(
            status(&running.exchange(request.as_bytes()).await),
            expected,
            "{label}"
        );
    }
}

#[tokio::test]
async fn a_page_that_cannot_be_shown_says_why() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    let lines = [cookie.as_str(), "accept: text/html"];
    let running_state = running.house.answers.lock().pages["demo"].state.clone();
    running.change(|page| page.state = PageState::Stopped);
    let stopped = running.ask("GET", "/", &lines).await;
    assert_eq!(status(&stopped), "503");
    assert!(
        stopped.contains("<a href=\"https://wharf.example/"),
        "{stopped}"
    );
    running.change(|page| page.state = PageState::Starting);
    let starting = running.ask("GET", "/", &lines).await;
    assert_eq!(
        (status(&starting), value(&starting, "retry-after")),
        ("502", Some("2"))
    );
    assert!(starting.contains("http-equiv=\"refresh\""), "{starting}");
    running.change(|page| page.state = running_state.clone());
    running.change(|page| page.moved_to = Some("new".to_owned()));
    let moved = running.ask("GET", "/lab?x", &lines).await;
    assert_eq!(
        value(&moved, "location"),
        Some("https://new.pages.example/lab?x"),
        "{moved}"
    );
    let stranger = running.ask("GET", "/lab", &["accept: text/html"]).await;
    assert!(
        value(&stranger, "location")
            .unwrap()
            .starts_with("https://wharf.example/")
    );
    running.change(|page| page.moved_to = None);
    drop(server);
    let refused = running.ask("GET", "/", &lines).await;
    assert_eq!(
        (status(&refused), value(&refused, "retry-after")),
        ("502", Some("2")),
        "{refused}"
    );
    assert!(
        running
            .ask("GET", "/", &[&cookie])
            .await
            .contains("text/plain")
    );
}

#[tokio::test]
async fn a_public_page_needs_no_sign_in_and_is_hidden_from_search() {
    let server = Server::telling().await;
    let running = Running::start(&server).await;
    running.change(|page| page.is_public = true);
    let answer = running.ask("GET", "/", &[]).await;
    assert_eq!(
        (status(&answer), value(&answer, "x-robots-tag")),
        ("200", Some("noindex"))
    );
    let foreign = running
        .ask("GET", "/", &["sec-fetch-site: same-site"])
        .await;
    assert_eq!(status(&foreign), "403", "{foreign}");
    assert!(answer.contains(&format!("host: {HOST}")));
    // Its visitors stay strangers, whose connections end first if there are too many.
    assert_eq!(running.house.welcomed.load(Ordering::Relaxed), 0);
    let cookie = running.cookie("owner").await;
    running.ask("GET", "/", &[&cookie]).await;
    assert_eq!(running.house.welcomed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn wrong_passwords_tell_nobody_which_pages_exist() {
    let server = Server::telling().await;
    let statuses = async |host: &str| {
        let running = Running::start(&server).await;
        let wrong = "authorization: Basic dXNlcjp3cm9uZw==";
        let request =
            format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{wrong}\r\n\r\n");
        let mut statuses = Vec::new();
        for _ in 0..8 {
            let answer = running.exchange(request.as_bytes()).await;
            statuses.push(status(&answer).to_owned());
        }
        statuses
    };
    let of_page = statuses(HOST).await;
    assert!(of_page.contains(&"429".to_owned()), "{of_page:?}");
    assert_eq!(statuses("none.pages.example").await, of_page);
}

#[tokio::test]
async fn each_answer_is_reported_once_without_its_path() {
    let asked_for_ever = Arc::new(Notify::new());
    let noted = Arc::clone(&asked_for_ever);
    let server = Server::start(move |mut io| {
        let noted = Arc::clone(&noted);
        async move {
            let asked = crate::page::head(&mut io).await?.unwrap_or_default();
            if asked.contains("/never") {
                noted.notify_one();
                std::future::pending::<()>().await;
            }
            crate::page::respond(&mut io, "201 Created", "", b"").await
        }
    })
    .await;
    let running = Running::start(&server).await;
    let cookie = running.cookie("owner").await;
    running.ask("GET", "/secret?x", &[&cookie]).await;
    running.ask("GET", "/secret?x", &[]).await;
    running
        .exchange(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await;
    let mut gone = running.tls.connect(running.address).await;
    let request = format!("GET /never HTTP/1.1\r\nhost: {HOST}\r\n{cookie}\r\n\r\n");
    gone.send(request.as_bytes()).await;
    asked_for_ever.notified().await;
    drop(gone);
    let all = [
        "GET Some(\"demo\") Some(303) None",
        "GET Some(\"demo\") Some(201) Some(1)",
        "GET Some(\"demo\") Some(401) None",
        "GET None Some(421) None",
        "GET Some(\"demo\") None Some(1)",
    ];
    for _ in 0..40 {
        if running.house.reports.lock().len() == all.len() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(*running.house.reports.lock(), all);
}
