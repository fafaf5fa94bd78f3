//! The readiness probe: whether an instance is reachable on its user's own path.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use wharf_config::host::in_url;
use wharf_domain::blueprint::Health;

/// Timeout of one probe.
const ATTEMPT: Duration = Duration::from_secs(3);
/// The pause between probes, as a part of the time since the first one. Probes of a slow instance
/// become rare.
const PART: u32 = 32;
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// A page that starts for a second is noticed within a twentieth of that.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A path to probe.
#[derive(Debug, Clone)]
pub struct ProbePath {
    /// The kind of probe.
    pub health: Health,
    /// Host of the published port.
    pub host: String,
    /// The published port.
    pub port: u16,
}

/// Probes until the instance is reachable; false at the timeout.
pub async fn wait(path: &ProbePath, at_most: Duration) -> bool {
    let begin = Instant::now();
    let attempts = async {
        while !reachable(path).await {
            let pause = begin.elapsed() / PART;
            tokio::time::sleep(pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
        }
    };
    tokio::time::timeout(at_most, attempts).await.is_ok()
}

async fn reachable(path: &ProbePath) -> bool {
    let attempt = async {
        let mut stream = TcpStream::connect((path.host.as_str(), path.port)).await?;
        match &path.health {
            Health::Ssh => ssh_banner(&mut stream).await,
            Health::Http(target) => http_answer(&mut stream, &path.host, target).await,
        }
    };
    matches!(tokio::time::timeout(ATTEMPT, attempt).await, Ok(Ok(true)))
}

/// Waits for the banner. A proxy may accept connections long before the SSH server does.
async fn ssh_banner(stream: &mut TcpStream) -> io::Result<bool> {
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).await?;
    Ok(&banner == b"SSH-")
}

async fn http_answer(stream: &mut TcpStream, host: &str, target: &str) -> io::Result<bool> {
    let host = in_url(host);
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    // The status has its first digit at offset 9: `HTTP/1.1 200`.
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    Ok(head.starts_with(b"HTTP/1.") && matches!(head.get(9), Some(b'1'..=b'4')))
}

#[cfg(test)]
mod tests {
    use super::{ProbePath, reachable};
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use wharf_domain::blueprint::Health;

    async fn answers(health: Health, answer: &'static [u8]) -> bool {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else {
            return false;
        };
        let Ok(address) = listener.local_addr() else {
            return false;
        };
        tokio::spawn(async move {
            if let Ok((mut stream, _)) = listener.accept().await {
                drop(stream.write_all(answer).await);
            }
        });
        let path = ProbePath {
            health,
            host: "127.0.0.1".to_owned(),
            port: address.port(),
        };
        reachable(&path).await
    }

    #[tokio::test]
    async fn only_a_banner_or_a_page_counts() {
        assert!(answers(Health::Ssh, b"SSH-2.0-OpenSSH_9.2\r\n").await);
        assert!(!answers(Health::Ssh, b"HTTP/1.1 400 no\r\n").await);
        assert!(!answers(Health::Ssh, b"").await);
        let page = || Health::Http("/".to_owned());
        assert!(answers(page(), b"HTTP/1.1 302 Found\r\n\r\n").await);
        assert!(!answers(page(), b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await);
    }
}
