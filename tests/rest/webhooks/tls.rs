//! Deliveries over TLS.

use super::{Receiver, create, post, until_delivery};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use wharf_tests::{Ports, Server, simulated_node};

/// Answers 204 to all requests over TLS, and prints its port first.
const RECEIVER: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = tls.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn the_certificate_of_a_receiver_is_checked_for_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut python = Command::new("python3")
        .args(["-c", RECEIVER])
        .args([&cert, &key])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut stdout = BufReader::new(python.stdout.take().unwrap());
    stdout.read_line(&mut port).unwrap();
    let node = simulated_node("one", "");
    let allow = "[webhook]\nallow = [\"127.0.0.1/32\"]\n";
    let settings = format!("{allow}{}{node}", Ports::take().settings());
    let trusted = [("SSL_CERT_FILE", cert.to_str().unwrap())];
    let server = Server::start_in(&settings, &trusted)
        .unwrap()
        .checked_at_end();
    let ann = server.user("ann@example.com").unwrap();
    let mut receiver = Receiver::start();
    for (host, state, status) in [
        ("localhost", "delivered", json!(204)),
        ("127.0.0.1", "pending", json!(null)),
    ] {
        receiver.url = format!("https://{host}:{}/hook", port.trim());
        let (webhook, _) = create(&ann, &receiver, &[]);
        post(&ann, &format!("{webhook}test/"), 202);
        let made = until_delivery(&ann, &webhook, |last| last["attempt"] == 1);
        assert_eq!(made["state"], json!(state), "{made}");
        assert_eq!(made["status"], status, "{made}");
    }
    python.kill().unwrap();
    python.wait().unwrap();
}
