//! A browser with the console open.

use crate::Expected;
use serde_json::{Value, json};
use wharf_tests::{Answer, Api, Server};

pub const ANN: &str = "ann@example.com";
pub const PASSWORD: &str = "correct horse battery";

/// A browser with the console open.
pub struct ConsoleBrowser {
    api: Api,
    pub cookie: String,
    /// The part of the token that the cookie lacks.
    pub part: String,
}

impl ConsoleBrowser {
    /// A browser that is not signed in.
    pub fn new(server: &Server) -> Self {
        Self {
            api: Api::new(server.base_url(), ""),
            cookie: String::new(),
            part: String::new(),
        }
    }

    /// A browser that is signed in by invitation.
    pub fn accepted(server: &Server, email: &str) -> Self {
        let mut browser = Self::new(server);
        browser.accept(server, email);
        browser
    }

    /// Sends a request from a page of the console.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send_from(method, path, &[("Sec-Fetch-Site", "same-origin")], body)
    }

    /// Sends a request of the console with the headers of another page.
    pub fn send_from(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut headers = headers.to_vec();
        if !self.part.is_empty() {
            headers.push(("Wharf-Session", &self.part));
        }
        self.send_bare(method, path, &headers, body)
    }

    /// Sends a request with the cookie alone.
    pub fn send_bare(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut headers = headers.to_vec();
        if !self.cookie.is_empty() {
            headers.push(("Cookie", &self.cookie));
        }
        self.api.send_with(method, path, &headers, body).unwrap()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &Value::Null)
    }

    /// The query of a WebSocket or an event stream, with a new ticket.
    pub fn ticket(&self, query: &str) -> String {
        let issued = self.send("POST", "/auth/ticket/", &Value::Null);
        assert_eq!(issued.header("cache-control"), Some("no-store"));
        let issued = issued.is(200);
        let between = if query.is_empty() { "?" } else { "&" };
        format!(
            "{query}{between}ticket={}",
            issued["ticket"].as_str().unwrap()
        )
    }

    pub fn keep_cookie(&mut self, answer: Answer) {
        let part = answer.header("wharf-session").unwrap_or_default();
        part.clone_into(&mut self.part);
        let cookie = answer.header("set-cookie").unwrap_or_default().to_owned();
        answer.is(204);
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
            "{cookie}"
        );
        cookie
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut self.cookie);
    }

    /// Signs in by invitation.
    pub fn accept(&mut self, server: &Server, email: &str) {
        let token = invitation(server, email);
        let body = json!({ "token": token, "password": PASSWORD });
        let answer = self.send("POST", "/auth/invite/accept/", &body);
        self.keep_cookie(answer);
    }

    pub fn sign_in(&mut self, password: &str) {
        let body = json!({ "email": ANN, "password": password });
        let answer = self.send("POST", "/auth/sign-in/", &body);
        self.keep_cookie(answer);
    }

    pub fn is_signed_in(&self) -> bool {
        match self.get("/api/session/").status {
            200 => true,
            401 => false,
            other => panic!("{other}"),
        }
    }
}

/// The token in the link of a new invitation.
pub fn invitation(server: &Server, email: &str) -> String {
    let link = server.cli(&["user", "invite", email]).unwrap();
    let port = server.base_url().rsplit(':').next().unwrap();
    let prefix = format!("http://localhost:{port}/invite#");
    link.trim().strip_prefix(&prefix).unwrap().to_owned()
}
