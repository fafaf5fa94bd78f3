//! Commands of the operator at an admin socket that does not answer as it should.

use crate::{has, start};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

#[test]
fn failures_name_the_socket_or_the_remedy() {
    let (mut server, _) = start();
    server.terminate().unwrap();
    let socket = server.data_dir().join("admin.sock");
    let path = socket.display().to_string();
    let busy = "HTTP/1.1 429 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
    let unknown = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let cases = [
        ("", &*path),
        (busy, "status 429"),
        (unknown, "restart it"),
        ("SMTP\r\n", "not HTTP"),
    ];
    for (answer, words) in cases {
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // The first connection only looks whether there is a server.
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let begin = Instant::now();
        let error = server.cli(&["key", "list"]).unwrap_err().to_string();
        has(&error, words);
        assert!(!error.contains("localhost"), "{error}");
        assert!(!error.contains("https://"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{error}");
    }
    std::fs::remove_file(&socket).unwrap();
    server.run().unwrap();
    let mut stream = UnixStream::connect(&socket).unwrap();
    let body = r#"{"email":null,"all":false}"#;
    let length = body.len();
    let head = "POST /users/end-access HTTP/1.1\r\nHost: localhost\r\nConnection: close";
    let request = format!(
        "{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    has(&answer, "HTTP/1.1 400");
    has(&answer, "email");
}
