//! The operations of the console's pages: refusals of other sites and of wrong bodies.
//! `tests/rest/sign_in.rs` and its neighbours have the others.

use serde_json::{Value, json};
use wharf_tests::{Api, Ports, Server, documented, simulated_node};

const PREFIX: &str = "/auth/";
const JSON: &str = "application/json";

#[test]
fn every_operation_of_a_page_refuses_other_sites_and_wrong_bodies() {
    let node = simulated_node("one", "");
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let page = Api::new(server.base_url(), "");
    let (cookie, part) = session(&server, &page);
    let document = documented().unwrap();
    let mut tried = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        if !path.starts_with(PREFIX) {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            if method == "get" || method == "parameters" {
                continue;
            }
            let method = method.to_uppercase();
            let path = path.replace("{id}", "none");
            let has = |status: &str| operation["responses"].get(status).is_some();
            let send = |site: &str, content_type: &str, body: &[u8]| {
                let headers = [
                    ("Sec-Fetch-Site", site),
                    ("Cookie", cookie.as_str()),
                    ("Wharf-Session", part.as_str()),
                ];
                let body = Some((content_type, body));
                let answer = page.raw_with(&method, &path, &headers, body).unwrap();
                assert!(answer.body.is_object(), "{method} {path}: {answer:?}");
                answer.status
            };
            assert!(has("403") && has("413"), "{method} {path}");
            assert_eq!(send("cross-site", JSON, b"{}"), 403, "{method} {path}");
            assert_eq!(send("same-origin", JSON, &[b' '; 70 * 1024]), 413, "{path}");
            if operation["requestBody"] != Value::Null {
                assert!(has("400") && has("415"), "{method} {path}");
                assert_eq!(send("same-origin", "text/plain", b"{}"), 415, "{path}");
                assert_eq!(send("same-origin", JSON, b"{"), 400, "{method} {path}");
            }
            tried += 1;
        }
    }
    assert!(tried >= 18, "{tried}");
    server.finish().unwrap();
}

/// The cookie of a session that an invitation began, and the part of the token that it lacks.
fn session(server: &Server, page: &Api) -> (String, String) {
    let link = server.cli(&["user", "invite", "ann@example.com"]).unwrap();
    let (_, token) = link.trim().split_once('#').unwrap();
    let body = json!({ "token": token, "password": "a long enough password" });
    let headers = [("Sec-Fetch-Site", "same-origin")];
    let accepted = page.send_with("POST", "/auth/invite/accept/", &headers, &body);
    let accepted = accepted.unwrap();
    let cookie = accepted.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let part = accepted.header("wharf-session").unwrap();
    (cookie, part.to_owned())
}
