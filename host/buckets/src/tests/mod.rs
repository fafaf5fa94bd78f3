//! A bucket of a real server of S3, which keeps its objects in a directory.

mod altered;
mod broken;
mod kept;

use super::request::Patience;
use super::{
    BackupKey, BucketAddress, BucketClient, BucketError, BucketKeys, FORMAT, Manifest, SentContent,
};
use bytes::Bytes;
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::instance::ResourceType;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_engine::Piece;
use wharf_ground::config::SharedConfig;
use wharf_outbound::{CheckedClient, Outbound};
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};

const ID: &str = "0198-a";

struct Desk {
    store: ObjectStore,
    client: BucketClient,
    key: BackupKey,
    _directory: TempDir,
}

fn desk() -> Desk {
    let directory = TempDir::new().unwrap();
    let store = ObjectStore::start(directory.path()).unwrap();
    Desk {
        client: client(&store.url, BUCKET, SECRET_ACCESS_KEY).unwrap(),
        store,
        key: BackupKey::generate(),
        _directory: directory,
    }
}

fn client(endpoint: &str, bucket: &str, secret: &str) -> Result<BucketClient, BucketError> {
    let config = "listen = '127.0.0.1:0'\ndata_dir = '/none'\n\
                  buckets = { http = true, allow = ['127.0.0.0/8'] }";
    let config = SharedConfig::new(Arc::new(toml::from_str(config).unwrap()));
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let http = CheckedClient::new(Outbound::new(config, |config| &config.buckets), tls).unwrap();
    let address = BucketAddress {
        endpoint: endpoint.to_owned(),
        region: "eu-1".to_owned(),
        bucket: bucket.to_owned(),
        prefix: "wharf".to_owned(),
    };
    let keys = BucketKeys {
        access_key_id: SecretText::new(ACCESS_KEY_ID),
        secret_access_key: SecretText::new(secret),
    };
    let mut client = BucketClient::new(&address, keys, http)?;
    client.patience = Patience {
        stall: Duration::from_secs(2),
        tries: 4,
        pause: Duration::from_millis(10),
        longest: Duration::from_secs(60),
    };
    Ok(client)
}

/// Bytes that do not compress, the same for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    bytes.flatten().take(length).collect()
}

impl Desk {
    async fn upload(&self, id: &str, content: &[u8]) -> Result<SentContent, BucketError> {
        let (sender, receiver) = mpsc::channel(4);
        let content = content.to_vec();
        let source = tokio::spawn(async move {
            let gone = Piece::Gone(vec!["opt".to_owned()]);
            let data = content.chunks(60_000).map(Bytes::copy_from_slice);
            let pieces = std::iter::once(gone).chain(data.map(Piece::Data));
            for piece in pieces.chain([Piece::Whole]) {
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        let sent = self.client.upload(id, &self.key, receiver).await;
        source.await.unwrap();
        sent
    }

    /// Makes a whole backup.
    async fn back_up(&self, id: &str, content: &[u8]) -> Manifest {
        let manifest = self.manifest(id, self.upload(id, content).await.unwrap());
        let put = self.client.put_manifest(id, &manifest, &self.key);
        put.await.unwrap();
        manifest
    }

    fn manifest(&self, id: &str, sent: SentContent) -> Manifest {
        Manifest {
            format: FORMAT,
            id: id.to_owned(),
            instance_id: "0198-i".to_owned(),
            volume_id: None,
            name: "desk".to_owned(),
            flavor: "debian".to_owned(),
            resource_type: ResourceType::Container,
            engine_kind: "docker".to_owned(),
            size: Size::default(),
            cpu_tier: CpuTier::GeneralPurpose,
            taken_at: Timestamp(1),
            tar_bytes: sent.tar_bytes,
            stored_bytes: sent.stored_bytes,
            sha256: sent.sha256,
            gone: sent.gone,
            key: String::new(),
            mac: String::new(),
        }
    }

    /// Returns all bytes that come, and the error in place of the end.
    async fn read(&self, manifest: &Manifest) -> (Vec<u8>, Option<BucketError>) {
        let mut content = match self.client.open(manifest, &self.key).await {
            Ok(content) => content,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut bytes = Vec::new();
        while let Some(piece) = content.recv().await {
            match piece {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(error) => return (bytes, Some(error)),
            }
        }
        (bytes, None)
    }
}
