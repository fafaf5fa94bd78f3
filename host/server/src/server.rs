//! Builds a server from its configuration and runs it.

use crate::drivers::{CACHE, drivers, installation};
use crate::file_permissions::{self, WrongPermissions};
use crate::node_tls::WrongNodeTls;
use crate::proofs::WithoutProof;
use crate::registries::WrongRegistry;
use crate::supervised_tasks::SupervisedTasks;
use crate::{check, http, reload};
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use wharf_accounts::Accounts;
use wharf_backups::{Backups, NetworkReach};
use wharf_config::Config;
use wharf_db::{Db, DbBounds, DbOpenError, Inspected, Read, inspect};
use wharf_domain::audit::Actor;
use wharf_domain::error::Error;
use wharf_engine::EndpointError;
use wharf_ground::clock::Clock;
use wharf_ground::clock_watch;
use wharf_ground::config::SharedConfig;
use wharf_ground::random::Random;
use wharf_ground::scrub;
use wharf_ground::vault::{Vault, VaultError};
use wharf_hooks::Webhooks;
use wharf_instances::connection_watch;
use wharf_instances::reconciler;
use wharf_instances::retention;
use wharf_instances::{App, AppParts, SharedInventory};
use wharf_operations::schema::SCHEMA;
use wharf_outbound::Outbound;
use wharf_plugin::{CacheUse, LoadError};
use wharf_simulated::SimulatedError;

/// An error that prevents a server from starting or ends it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be created.
    #[error("cannot create data_dir {path}")]
    DataDir { path: String, source: io::Error },
    /// Other accounts of this machine can change or read a file.
    #[error(transparent)]
    Permissions(#[from] WrongPermissions),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] DbOpenError),
    /// The key file cannot be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A plugin cannot be loaded.
    #[error(transparent)]
    Plugin(#[from] LoadError),
    /// A driver has no proof.
    #[error(transparent)]
    Proof(#[from] WithoutProof),
    /// A node's endpoint is not valid.
    #[error("setting `node.{node}.endpoint`")]
    Endpoint { node: String, source: EndpointError },
    /// A node's certificates cannot be used.
    #[error(transparent)]
    NodeTls(#[from] WrongNodeTls),
    /// The password of a registry cannot be used.
    #[error(transparent)]
    Registry(#[from] WrongRegistry),
    /// A node's settings are not valid.
    #[error("setting `node.{node}.settings`: {message}")]
    Settings { node: String, message: String },
    /// A simulated engine cannot be set up.
    #[error("setting `node.{node}`")]
    Simulated {
        node: String,
        source: SimulatedError,
    },
    /// The listening socket cannot be opened.
    #[error("cannot listen on {listen}")]
    Listen { listen: String, source: io::Error },
    /// The reconciler's threads cannot be started.
    #[error("cannot start the reconciler's threads")]
    Threads(#[source] io::Error),
    /// The REST interface cannot be started.
    #[error(transparent)]
    Http(#[from] http::InterfaceError),
    /// The database cannot be read.
    #[error(transparent)]
    Rows(#[from] Error),
    /// A node with instances is not configured.
    #[error(
        "setting `node`: {0} instances, volumes and snapshots are on nodes that are not configured:\n{1}\nPut each node back, \
         with `retired = true` if it shall take no new instances, or run `wharf forget INSTANCE` for \
         instances, or `wharf node lost NODE` for all of a node that will never come back"
    )]
    Missing(usize, String),
    /// Something else has the addresses of a node's private network.
    #[error("{0}")]
    Network(String),
    /// A task that the server cannot do without has ended.
    #[error("{0} ended unexpectedly; see the log, and start again")]
    Task(&'static str),
    /// The database can no longer be written.
    #[error("the database could not be written; see the log, fix the cause and start again")]
    Lost,
}

/// Opens the database of a configuration. The command line uses it too while no server runs.
pub fn open_db(config: &Config) -> Result<(Db, SharedInventory, Clock), StartError> {
    wharf_secure_fs::make_dir(&config.data_dir).map_err(|source| StartError::DataDir {
        path: config.data_dir.display().to_string(),
        source,
    })?;
    file_permissions::check(config)?;
    let inventory = SharedInventory::of(config);
    let clock = Clock::new(&config.clock);
    let time = clock.clone();
    let projection = Box::new(inventory.clone());
    let bounds = DbBounds {
        disk_reserve_mib: config.limits.disk_reserve_mib,
        records_per_user: config.limits.records_per_user_per_day,
    };
    let db = Db::open(
        &config.data_dir,
        &SCHEMA,
        projection,
        Box::new(move || time.times()),
        bounds,
    )?;
    clock.resume(&db)?;
    Ok((db, inventory, clock))
}

/// Copies the database of a configuration, for checks that change nothing.
pub fn inspect_db(config: &Config) -> Result<Inspected, StartError> {
    let inventory = SharedInventory::of(config);
    Ok(inspect(&config.data_dir, Box::new(inventory), &SCHEMA)?)
}

/// Maximum time for background work to finish after the last response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a server until `stop` completes or the database can no longer be written. Calls `listening`
/// with the address once the server accepts requests. Reads the configuration again on `reload`.
pub async fn serve(
    config: Config,
    listening: impl FnOnce(std::net::SocketAddr),
    mut reload: Signal,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    raise_open_files();
    let config = Arc::new(config);
    let shared = SharedConfig::new(Arc::clone(&config));
    let (db, inventory, clock) = open_db(&config)?;
    check_nodes(&config, &db)?;
    let accounts = Accounts::load(db.clone(), clock.clone(), shared.clone())?;
    let accounts = Arc::new(accounts);
    let threads = reconciler::Threads::start().map_err(StartError::Threads)?;
    let installation = installation(&db)?;
    let cache = CacheUse::Keep(config.data_dir.join(CACHE));
    let (plugins, drivers) = drivers(&config, &installation, cache).await?;
    let vault = Vault::open(&config.data_dir, &db).await?;
    let webhooks = Arc::new(Webhooks::new(
        shared.clone(),
        db.clone(),
        clock.clone(),
        Random::kernel(),
        vault.clone(),
        Arc::clone(&accounts),
    ));
    let (app, nudged) = App::new(AppParts {
        config: shared.clone(),
        db: db.clone(),
        inventory,
        clock: clock.clone(),
        random: Random::kernel(),
        plugins,
        drivers,
        vault,
        installation,
        guests: threads.handle(),
    });
    let _reserved = check::networks(&app).await?;
    let (rest, address) = bind(config.listen).await?;
    let metrics = match config.metrics_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    if let Some((_, address)) = &metrics {
        tracing::info!(%address, "metrics are served without a key");
    }
    let pages = match &config.pages {
        Some(pages) => Some(bind(pages.listen).await?),
        None => None,
    };
    shared.listening(address, pages.as_ref().map(|(_, address)| *address));
    let listeners = http::Listeners {
        rest,
        metrics: metrics.map(|(listener, _)| listener),
        pages: pages.map(|(listener, _)| listener),
    };
    let (stopping, stopped) = watch::channel(false);
    // The last requests still need the reconciler.
    let (ending, ended) = watch::channel(false);
    let mut background = SupervisedTasks::default();
    let watch = clock_watch::run(db.clone(), clock.clone(), ended.clone());
    background.spawn("the watch of the clock", watch);
    let retention = retention::run(Arc::clone(&app), ended.clone());
    background.spawn("the removal of old records", retention);
    let scrub = scrub::run(db, clock, ended.clone());
    background.spawn("the scrub of the database", scrub);
    let of_terminals = Arc::clone(&accounts);
    let is_valid = move |actor: &Actor| of_terminals.is_valid(actor);
    let terminals = connection_watch::run(Arc::clone(&app), is_valid, stopped.clone());
    background.spawn("the watch of terminals", terminals);
    let tls = wharf_client::tls::trusting_system();
    let deliveries = wharf_hooks::run(Arc::clone(&webhooks), tls.clone(), ended.clone());
    background.spawn("the delivery to webhooks", deliveries);
    let outbound = Outbound::new(shared.clone(), |config| &config.buckets);
    let backups = Backups::new(
        Arc::clone(&app),
        Random::kernel(),
        Arc::clone(&accounts),
        Arc::new(NetworkReach::new(outbound, tls)),
    );
    let sending = wharf_backups::run(Arc::clone(&backups), ended.clone());
    background.spawn("the work on backups", sending);
    let reconciler = reconciler::run(Arc::clone(&app), nudged, ended);
    background.spawn_on(&threads.handle(), "the reconciler", reconciler);
    let mut interface = http::Server::start(
        &config,
        listeners,
        Arc::clone(&app),
        Arc::clone(&accounts),
        webhooks,
        backups,
        stopped,
    )?;
    http::warn_of_plain_http(&config, address);
    listening(address);
    let ended = {
        let mut stop = pin!(stop);
        let mut upkeep = pin!(accounts.maintain());
        let mut checked = pin!(check::log(&app));
        let mut is_checked = false;
        loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                () = app.db().lost() => break Err(StartError::Lost),
                name = background.ended() => break Err(StartError::Task(name)),
                name = interface.ended() => break Err(StartError::Task(name)),
                Some(()) = reload.recv() => reload::reload(&app, &shared, &interface),
                () = &mut upkeep => {}
                () = &mut checked, if !is_checked => is_checked = true,
            }
        }
    };
    tracing::info!("stopping after the requests in progress");
    let _ = stopping.send(true);
    interface.finished().await;
    if !matches!(ended, Err(StartError::Lost))
        && let Err(error) = accounts.write_uses().await
    {
        tracing::warn!(error = %error.chain(), "cannot write the last uses of keys and sessions");
    }
    let _ = ending.send(true);
    // The next start continues the interrupted work.
    drop(tokio::time::timeout(DRAIN_TIMEOUT, background.finished()).await);
    // The database file is closed when its last reference is dropped.
    drop((app, accounts));
    threads.end(DRAIN_TIMEOUT).await;
    ended
}

/// Opens a socket. Returns its address too, which differs from the setting if its port is 0.
async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|source| StartError::Listen {
        listen: address.to_string(),
        source,
    })
}

/// Instances that the refusal of a start lists.
const LISTED: usize = 20;

/// Refuses a configuration that lacks a node with instances, volumes or snapshots: nothing could stop or delete them.
fn check_nodes(config: &Config, db: &Db) -> Result<(), StartError> {
    let names: HashSet<&str> = config.node.iter().map(|node| &*node.name).collect();
    let mut missing = Vec::new();
    db.read(|rows| {
        let mut ids = Vec::new();
        rows.each_claim(|id, claim| {
            if !names.contains(&*claim.node.0) {
                ids.push((id, claim.node));
            }
        })?;
        for (id, node) in ids {
            let name = rows.instance(id)?.map(|i| i.name.as_str().to_owned());
            let name = name.unwrap_or_default();
            missing.push(format!("  {id} ({name}) on node {node}"));
        }
        for kept in rows.kept_claims()? {
            let (word, id, name, node) = (kept.word, kept.id, kept.name, kept.node);
            if !names.contains(&*node.0) {
                missing.push(format!("  {word} {id} ({name}) on node {node}"));
            }
        }
        Ok(())
    })?;
    if missing.is_empty() {
        return Ok(());
    }
    let count = missing.len();
    if count > LISTED {
        missing.truncate(LISTED);
        missing.push(format!(
            "  and {} more; see `wharf node list`",
            count - LISTED
        ));
    }
    Err(StartError::Missing(count, missing.join("\n")))
}

/// Raises the limit on open files to its maximum, since each connection is an open file and the
/// default limit is low.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, open_files = ?limit.current, "cannot raise the limit on open files");
    }
}
