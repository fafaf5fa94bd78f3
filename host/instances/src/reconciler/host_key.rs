//! The SSH host key that an instance shows on its user's own path.

use parking_lot::Mutex;
use russh::client::{Config, Handler, connect_stream};
use russh::keys::PublicKeyOrCertificate;
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::host_key::HostKey;
use wharf_terminal::{dial, host_key};

/// The time for a key exchange. An instance is reachable without it.
const AT_MOST: Duration = Duration::from_secs(2);

/// Notes the key, and ends the connection before any authentication.
struct Note(Arc<Mutex<Option<HostKey>>>);

impl Handler for Note {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        *self.0.lock() = host_key(shown);
        Ok(false)
    }
}

/// Exchanges keys with an SSH server, which proves that it has its key. Returns the key, of the kind
/// that OpenSSH prefers; `None` if that fails.
pub async fn learn(host: &str, port: u16) -> Option<HostKey> {
    let noted = Arc::default();
    let exchange = async {
        let (stream, _hangup) = dial(host, port).await?;
        connect_stream(
            Arc::new(Config::default()),
            stream,
            Note(Arc::clone(&noted)),
        )
        .await
    };
    // The handler refuses every key, so the connection never succeeds.
    drop(tokio::time::timeout(AT_MOST, exchange).await);
    let mut noted = noted.lock();
    noted.take()
}

#[cfg(test)]
mod tests {
    use super::{AT_MOST, learn};
    use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};
    use russh::keys::{HashAlg, PrivateKey};
    use russh::server::{Config, Handler, run_stream};
    use std::sync::Arc;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    struct Silent;

    impl Handler for Silent {
        type Error = russh::Error;
    }

    #[tokio::test]
    async fn the_key_that_the_server_proves_is_learned() {
        let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&[7; 32]));
        let key = PrivateKey::new(pair, "").unwrap();
        let expected = key.public_key().fingerprint(HashAlg::Sha256).to_string();
        let public_key = key.public_key().to_openssh().unwrap();
        let config = Arc::new(Config {
            keys: vec![key],
            ..Config::default()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(session) = run_stream(config, stream, Silent).await {
                drop(session.await);
            }
        });
        let learned = learn("127.0.0.1", port).await.unwrap();
        assert_eq!(learned.algorithm, "ssh-ed25519");
        assert_eq!(learned.fingerprint, expected);
        assert_eq!(learned.public_key, public_key);
        // The listener is gone.
        assert_eq!(learn("127.0.0.1", port).await, None);
    }

    #[tokio::test]
    async fn a_server_that_falls_silent_delays_readiness_for_a_bounded_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let banner = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"SSH-2.0-silent\r\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        let begin = Instant::now();
        assert_eq!(learn("127.0.0.1", port).await, None);
        assert!(begin.elapsed() < 5 * AT_MOST, "{:?}", begin.elapsed());
        banner.abort();
    }
}
