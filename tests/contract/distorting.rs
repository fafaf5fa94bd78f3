//! A proxy that applies one distortion to the responses of a service.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A response of the service.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

/// A distortion of a response.
#[derive(Clone, Copy)]
pub enum Distort {
    /// Replaces this status by another.
    Status(u16, u16),
    /// Removes a header.
    Without(&'static str),
    /// Replaces a text in the body.
    Text(&'static str, &'static str),
    /// Runs a function on the head of the request and on the response.
    By(fn(&str, &mut Response)),
}

impl Distort {
    fn apply(self, head: &str, response: &mut Response) {
        match self {
            Self::Status(original, distorted) if response.status == original => {
                response.status = distorted
            }
            Self::Status(..) => {}
            Self::Without(header) => response.headers.retain(|(name, _)| name != header),
            Self::Text(original, distorted) => response.replace(original, distorted),
            Self::By(distort) => distort(head, response),
        }
    }
}

impl Response {
    /// Replaces a text in the body.
    pub fn replace(&mut self, original: &str, distorted: &str) {
        self.body = self.body.replace(original, distorted);
    }
}

/// Starts a proxy that serves until the process ends; returns its base URL.
pub fn serve(upstream: &str, distort: Distort) -> io::Result<String> {
    let upstream: SocketAddr = upstream
        .trim_start_matches("http://")
        .parse()
        .map_err(io::Error::other)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || relay(stream, upstream, distort));
        }
    });
    Ok(format!("http://{address}"))
}

fn relay(mut client: TcpStream, upstream: SocketAddr, distort: Distort) -> io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (head, body) = read_request(&mut client)?;
    let mut server = TcpStream::connect(upstream)?;
    let (first, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
    let rest: Vec<&str> = rest
        .split("\r\n")
        .filter(|line| !line.to_ascii_lowercase().starts_with("connection:"))
        .collect();
    let head = format!(
        "{first}\r\nConnection: close\r\n{}\r\n\r\n",
        rest.join("\r\n")
    );
    server.write_all(head.as_bytes())?;
    server.write_all(&body)?;
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes)?;
    let mut response = parse(&String::from_utf8_lossy(&bytes)).ok_or(io::ErrorKind::InvalidData)?;
    // The OpenAPI document defines correctness, so it stays unchanged.
    if !first.contains("/api/openapi.json") {
        distort.apply(&head, &mut response);
    }
    let mut text = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!(
        "content-length: {}\r\n\r\n{}",
        response.body.len(),
        response.body
    ));
    client.write_all(text.as_bytes())
}

fn read_request(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let n = client.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..n]);
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = header_of(&head, "content-length").and_then(|v| v.parse().ok());
            let length: usize = length.unwrap_or(0);
            let mut body = bytes.split_off(end + 4);
            while body.len() < length {
                let n = client.read(&mut chunk)?;
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                body.extend_from_slice(&chunk[..n]);
            }
            return Ok((head, body));
        }
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn header_of(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(n, _)| n.eq_ignore_ascii_case(name))?;
    Some(value.trim().to_owned())
}

fn parse(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .filter(|(name, _)| name != "content-length" && name != "connection")
        .collect();
    Some(Response {
        status,
        headers,
        body: body.to_owned(),
    })
}
