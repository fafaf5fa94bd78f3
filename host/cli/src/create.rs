//! `wharf create`, `wharf snapshot clone` and `wharf bucket recover`.

use crate::connection::Connection;
use crate::editor_key;
use crate::failure::Failure;
use crate::names;
use crate::output::{note, one_of, progress};
use crate::shortage;
use crate::show::instance_as;
use crate::snapshot;
use crate::ssh_keys::{public_key, saved};
use crate::volume::mount;
use crate::wait::{AwaitedState, WaitLimit, wait_for};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::env;
use std::io::stdin;
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;
use wharf_client::types::{
    CloneRequest, CpuTier, CreateRequest, InstanceOrState, RecoveryRequest, ResourceType,
    VolumeMount,
};
use wharf_client::{Client, Error as ClientError, Reply, Request, Secret};

pub const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
pub const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
/// Retries of a creation whose answer was lost. They have its `Idempotency-Key`.
const RETRIES: u32 = 2;
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Create an instance
#[derive(Args)]
pub struct Create {
    /// Name; the server makes one without it
    name: Option<String>,
    /// Kind of the instance
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_parser = one_of::<ResourceType, 2>(["container", "vm"]),
        default_value_t = ResourceType::Container
    )]
    kind: ResourceType,
    /// Software, as `wharf flavors` lists it; default: base
    #[arg(long)]
    flavor: Option<String>,
    /// vCPUs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    vcpus: u64,
    /// RAM in GiB
    #[arg(long, value_name = "GIB", default_value_t = 1)]
    mem: u64,
    /// Disk in GiB
    #[arg(long, value_name = "GIB", default_value_t = 10)]
    disk: u64,
    #[command(flatten)]
    options: Options,
}

/// Create an instance from a snapshot, on its host, with a password and SSH host keys of its own
#[derive(Args)]
pub struct Clone {
    /// The snapshot, as INSTANCE/NAME or UUID
    #[arg(add = names::snapshots())]
    snapshot: String,
    /// Name of the new instance; the server makes one without it
    name: Option<String>,
    /// vCPUs; default: as the instance of the snapshot
    #[arg(long, value_name = "NUMBER")]
    vcpus: Option<u64>,
    /// RAM in GiB; default: as the instance of the snapshot
    #[arg(long, value_name = "GIB")]
    mem: Option<u64>,
    /// Disk in GiB, which is not smaller than that of the snapshot; default: as that
    #[arg(long, value_name = "GIB")]
    disk: Option<u64>,
    #[command(flatten)]
    options: Options,
}

/// Create an instance from a backup, on any host, with a password and SSH host keys of its own
#[derive(Args)]
pub struct Recover {
    /// UUID of the backup
    #[arg(add = names::backups())]
    backup: String,
    /// Name of the new instance; the server makes one without it
    name: Option<String>,
    /// vCPUs; default: as in the backup
    #[arg(long, value_name = "NUMBER")]
    vcpus: Option<u64>,
    /// RAM in GiB; default: as in the backup
    #[arg(long, value_name = "GIB")]
    mem: Option<u64>,
    /// Disk in GiB, which is not smaller than that of the backup; default: as that
    #[arg(long, value_name = "GIB")]
    disk: Option<u64>,
    #[command(flatten)]
    options: Options,
}

/// The options of each way to create an instance.
#[derive(Args)]
struct Options {
    /// Class of CPU
    #[arg(long, value_parser = one_of::<CpuTier, 2>(["general-purpose", "high-performance"]))]
    tier: Option<CpuTier>,
    /// Model of a GPU, for containers
    #[arg(long, value_name = "MODEL")]
    gpu: Option<String>,
    /// Volume to attach at a directory, such as genome:/data; with `:ro` the instance only reads it
    #[arg(
        long = "volume",
        value_name = "VOLUME:PATH[:ro]",
        value_parser = mount,
        add = names::volumes_with_path()
    )]
    volumes: Vec<VolumeMount>,
    /// File of an OpenSSH public key for logins, such as ~/.ssh/id_ed25519.pub
    #[arg(long, value_name = "FILE", conflicts_with = "ssh_key")]
    key: Option<PathBuf>,
    /// Name of a public key that is saved on the server
    #[arg(long, value_name = "NAME")]
    ssh_key: Option<String>,
    /// URL of an S3 endpoint, whose keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
    #[arg(long, value_name = "URL", requires = "s3_bucket")]
    s3_endpoint: Option<String>,
    /// S3 bucket, or bucket and path, to copy to the home directory at the start
    #[arg(long, value_name = "BUCKET", requires = "s3_endpoint")]
    s3_bucket: Option<String>,
    /// Read the API key of an AI provider from stdin
    #[arg(long)]
    ai_key_stdin: bool,
    /// Wait until the instance is running
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    limit: WaitLimit,
    #[command(flatten)]
    connection: Connection,
}

impl Create {
    pub async fn run(self) -> Result<()> {
        let client = self.options.connection.client()?;
        let mut body = CreateRequest::new(self.disk, self.mem, self.vcpus, self.kind);
        body.name = self.name;
        body.flavor = self.flavor;
        self.options.fill(&mut body, &client).await?;
        self.options
            .create(&client, || client.create_instance(&body))
            .await
    }
}

impl Clone {
    pub async fn run(self) -> Result<()> {
        let client = self.options.connection.client()?;
        let snapshot = snapshot::find(&client, &self.snapshot).await?;
        let of = client.get_instance(&snapshot.instance).fetch().await?;
        let mem = of.mem_gib.ceil() as u64;
        let mut body = CreateRequest::new(
            self.disk.unwrap_or(snapshot.disk_size_gib),
            self.mem.unwrap_or(mem),
            self.vcpus.unwrap_or(of.n_vcpus),
            ResourceType::Container,
        );
        body.name = self.name;
        self.options.fill(&mut body, &client).await?;
        // A clone has the fields of a creation, without the flavor and the type.
        let body: CloneRequest = serde_json::from_value(serde_json::to_value(&body)?)?;
        let request = || client.clone_snapshot(&snapshot.id, &body);
        self.options.create(&client, request).await
    }
}

impl Recover {
    pub async fn run(self) -> Result<()> {
        let client = self.options.connection.client()?;
        let mut body = CreateRequest::new(0, 0, 0, ResourceType::Container);
        body.name = self.name;
        self.options.fill(&mut body, &client).await?;
        let mut body: RecoveryRequest = serde_json::from_value(serde_json::to_value(&body)?)?;
        body.n_vcpus = self.vcpus;
        body.mem_gib = self.mem;
        body.disk_size_gib = self.disk;
        let request = || client.restore_backup(&self.backup, &body);
        self.options.create(&client, request).await
    }
}

impl Options {
    /// Creates an instance by a request, and waits for it if told so.
    async fn create<'c>(
        &self,
        client: &'c Client,
        request: impl Fn() -> Request<'c, InstanceOrState>,
    ) -> Result<()> {
        let created = retried(request).await;
        let created = created.map_err(|error| shortage::of_creation(error.into()))?;
        // Any answer tells of the instance. A key without the scope `read` sees no name.
        let field = |name| created.value().get(name).and_then(Value::as_str);
        let Some(id) = field("uuid") else {
            instance_as(&self.connection, &created)?;
            return Ok(created.body().map(drop)?);
        };
        let name = field("name").unwrap_or(id);
        let host = self.host();
        if !self.wait {
            if !self.connection.is_json() {
                note(&format!(
                    "{name} is starting{host}; `wharf wait {name}` waits until it runs."
                ));
            }
            return instance_as(&self.connection, &created);
        }
        // An interrupted wait must not hide the name that the server made.
        note(&format!("{name} is created and starting{host}."));
        match wait_for(client, name, id, AwaitedState::Running, self.limit).await? {
            Some(running) => instance_as(&self.connection, &running),
            None => instance_as(&self.connection, &created),
        }
    }

    /// The words about the host that the volumes choose.
    fn host(&self) -> String {
        let names: Vec<_> = self
            .volumes
            .iter()
            .map(|mount| mount.volume.as_str())
            .collect();
        match &*names {
            [] => String::new(),
            [name] => format!(" on the host of its volume {name}"),
            names => format!(" on the host of its volumes {}", names.join(", ")),
        }
    }

    async fn fill(&self, body: &mut CreateRequest, client: &Client) -> Result<()> {
        body.gpu_model.clone_from(&self.gpu);
        body.cpu_tier.clone_from(&self.tier);
        body.volumes = Some(self.volumes.clone()).filter(|volumes| !volumes.is_empty());
        body.public_key = match (&self.key, &self.ssh_key) {
            (Some(file), _) => Some(public_key(file)?),
            (None, Some(name)) => Some(saved(client, name).await?.public_key),
            // Editors log in with it.
            (None, None) => editor_key::public()?,
        };
        if self.s3_endpoint.is_some() {
            body.s3_endpoint_url.clone_from(&self.s3_endpoint);
            body.s3_prefill_bucket.clone_from(&self.s3_bucket);
            body.s3_access_key_id = Some(secret_variable(ACCESS_KEY)?);
            body.s3_secret_access_key = Some(secret_variable(SECRET_KEY)?);
        }
        if self.ai_key_stdin {
            body.ai_provider_api_key = Some(secret_of_stdin()?);
        }
        Ok(())
    }
}

/// Sends the request of a creation, and again if its answer is lost or an earlier attempt is in progress.
pub async fn retried<'c, T>(request: impl Fn() -> Request<'c, T>) -> Result<Reply<T>, ClientError> {
    let bar = progress("Creating");
    let key = Uuid::new_v4().to_string();
    let mut retries = RETRIES;
    let answer = loop {
        let sent = request().idempotency_key(&key).send().await;
        let is_uncertain = match &sent {
            Err(ClientError::TimedOut(_)) => true,
            Err(ClientError::Unreachable(error)) => !error.is_connect(),
            Err(ClientError::Refused(refusal)) => refusal.status == 409,
            _ => false,
        };
        if !is_uncertain || retries == 0 {
            break sent;
        }
        retries -= 1;
        tokio::time::sleep(RETRY_PAUSE).await;
    };
    bar.finish_and_clear();
    answer
}

fn secret_variable(name: &str) -> Result<Secret> {
    let value = env::var(name).ok().filter(|value| !value.is_empty());
    let missing = || Failure::Usage(format!("--s3-endpoint needs the variable {name}"));
    Ok(value.ok_or_else(missing)?.into())
}

/// A secret from stdin, one line.
pub fn secret_of_stdin() -> Result<Secret> {
    let mut line = String::new();
    stdin().read_line(&mut line).context("cannot read stdin")?;
    match line.trim() {
        "" => Err(Failure::Usage("stdin has no key".to_owned()).into()),
        key => Ok(key.into()),
    }
}
