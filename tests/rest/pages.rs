//! Pages by name: labels, the way in, and the ends of connections. A page is a small server at the port of a
//! simulated instance.

mod acme;
mod ends;
mod entry;
mod files;
mod labels;
mod settings;
mod share_ends;
mod shares;
mod slow_visitors;

use crate::sign_in::ConsoleBrowser;
use crate::{Expected, made, with};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use wharf_tests::{Api, PageServer, Ports, Server, simulated_node};

const DOMAIN: &str = "apps.localhost";

/// The settings of pages on a free port.
const PAGES: &str = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";

/// A server whose instances have pages by name.
fn start() -> (Server, Api, Ports) {
    start_on(&simulated_node("one", ""))
}

fn start_on(node: &str) -> (Server, Api, Ports) {
    let ports = Ports::take();
    let settings = format!("{PAGES}{}{node}", ports.settings());
    let server = crate::serve(&settings);
    let api = server.user("ann@example.com").unwrap();
    (server, api, ports)
}

/// Creates an instance with a page, and waits until it runs.
fn page(api: &Api, flavor: &str, name: &str) -> Value {
    let body = with("container", json!({ "flavor": flavor, "name": name }));
    made(api, &body)
}

/// The label in the address of a page.
fn label(instance: &Value) -> String {
    let url = instance["webapp_url"].as_str().unwrap();
    let (label, rest) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('.')
        .unwrap();
    assert!(rest.starts_with("apps.localhost:"), "{url}");
    label.to_owned()
}

/// The port in the address of a page.
fn port(instance: &Value) -> u16 {
    let url = instance["webapp_url"].as_str().unwrap();
    let port = url.trim_end_matches('/').rsplit(':').next();
    port.unwrap().parse().unwrap()
}

/// The answer of a gateway.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).unwrap_or_default();
        Self {
            status: status.parse().unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// The cookies that the answer sets, as a request sends them.
    fn cookies(&self) -> String {
        let lines = self.head.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let pair = value.trim().split(';').next()?;
            name.eq_ignore_ascii_case("set-cookie").then_some(pair)
        });
        lines.collect::<Vec<_>>().join("; ")
    }
}

/// A navigation of a browser.
const NAVIGATION: &str =
    "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";

/// Opens a connection to the gateway, and sends a request for a host.
fn ask(port: u16, host: &str, path: &str, headers: &str) -> TcpStream {
    ask_for(port, &format!("{host}:{port}"), path, headers)
}

/// Does so for an authority of another port, as a proxy does.
fn ask_for(port: u16, authority: &str, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let wait = Some(Duration::from_secs(10));
    stream.set_read_timeout(wait).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Sends a request for a host to the gateway, and reads the answer.
fn get(port: u16, host: &str, path: &str, headers: &str) -> Reply {
    answered(ask(port, host, path, headers))
}

/// Reads an answer to its end.
fn answered(mut stream: TcpStream) -> Reply {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Reply::parse(&String::from_utf8_lossy(&answer))
}

/// A browser that has been let in to a page.
struct Visit {
    port: u16,
    host: String,
    cookie: String,
}

impl Visit {
    /// Goes the whole way in.
    fn begin(browser: &ConsoleBrowser, instance: &Value) -> Self {
        let (port, label) = (port(instance), label(instance));
        let host = format!("{label}.{DOMAIN}");
        let asked = get(port, &host, "/lab?x=1", NAVIGATION);
        assert_eq!(asked.status, 303, "{asked:?}");
        let url = enter(browser, &asked).is(200)["url"]
            .as_str()
            .unwrap()
            .to_owned();
        let (_, path) = url.split_once(&format!(":{port}")).unwrap();
        let entered = get(
            port,
            &host,
            path,
            &format!("{NAVIGATION}Cookie: {}\r\n", asked.cookies()),
        );
        assert_eq!(
            (entered.status, entered.header("location")),
            (303, Some("/lab?x=1")),
            "{entered:?}"
        );
        Self {
            port,
            host,
            cookie: entered.cookies(),
        }
    }

    fn headers(&self) -> String {
        format!("{NAVIGATION}Cookie: {}\r\n", self.cookie)
    }

    fn get(&self, path: &str) -> Reply {
        get(self.port, &self.host, path, &self.headers())
    }
}

/// Does what the console does for a page that has sent a browser there.
fn enter(browser: &ConsoleBrowser, asked: &Reply) -> wharf_tests::Answer {
    let location = asked.header("location").unwrap();
    let (path, query) = location.split_once('?').unwrap();
    assert!(
        path.starts_with("http://localhost:") && path.ends_with("/page"),
        "{location}"
    );
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).unwrap().1
    };
    let to = value("to")
        .replace("%2F", "/")
        .replace("%3F", "?")
        .replace("%3D", "=");
    let body = json!({ "host": value("host"), "state": value("state"), "to": to });
    browser.send("POST", "/auth/page/", &body)
}

/// A browser with a session of the console.
fn signed_in(server: &Server, email: &str) -> ConsoleBrowser {
    ConsoleBrowser::accepted(server, email)
}

/// The server of the page of the first instance with one.
fn serve(ports: Ports) -> PageServer {
    PageServer::start(ports.from + (ports.to - ports.from).div_ceil(2))
}
