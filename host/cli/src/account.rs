//! The user's account: `wharf whoami`, `flavors`, `quota` and `preferences`.

use crate::connection::Connection;
use crate::output::Column::{Number, Text};
use crate::output::{fields, joined, line, list, or_none, table};
use anyhow::Result;
use clap::{ArgAction, Args};
use wharf_client::Client;
use wharf_client::types::{Flavor, PreferencesRequest};

pub async fn whoami(connection: &Connection) -> Result<()> {
    let target = connection.target()?;
    let client = Client::new(&target.url, Some(target.key))?;
    let who = client.get_session().send().await?;
    connection.print(&who, |_| {
        let profile = ("profile", or_none(target.profile.as_ref()));
        let url = ("url", client.url().to_owned());
        let rows: Vec<_> = [profile, url].into_iter().chain(fields(&who)).collect();
        list(&rows)
    })
}

pub async fn flavors(connection: &Connection) -> Result<()> {
    let flavors = connection.client()?.list_flavors().send().await?;
    let columns = [
        "NAME",
        "AVAILABLE",
        "TYPES",
        "FEATURES",
        "MINIMUM",
        "CONTENT",
        "DESCRIPTION",
    ]
    .map(Text);
    connection.print(&flavors, |flavors| {
        table(columns, flavors.0.iter().map(row))
    })
}

fn row(flavor: &Flavor) -> [String; 7] {
    let features = [
        (flavor.ssh, "ssh"),
        (flavor.web, "web"),
        (flavor.s3_prefill, "s3_prefill"),
        (flavor.ai, "ai"),
        (flavor.gpu_aware, "gpu_aware"),
    ];
    let features = features
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, name)| name);
    let available = if flavor.available { "yes" } else { "no image" };
    let minimum = &flavor.minimum;
    [
        flavor.name.clone(),
        available.to_owned(),
        joined(&flavor.resource_types),
        joined(features),
        format!(
            "{} vCPUs, {} GiB, {} GiB",
            minimum.n_vcpus, minimum.mem_gib, minimum.disk_size_gib
        ),
        or_none(Some(flavor.content.join(" or ")).filter(|text| !text.is_empty())),
        flavor.description.clone(),
    ]
}

pub async fn quota(connection: &Connection) -> Result<()> {
    let quota = connection.client()?.get_quota().send().await?;
    connection.print(&quota, |_| {
        let amounts = quota.value().as_object().into_iter().flatten();
        let rows = amounts.map(|(name, amount)| {
            let of = |part| or_none(amount.get(part).filter(|value| !value.is_null()));
            [name.clone(), of("used"), of("limit")]
        });
        table([Text("QUANTITY"), Number("USED"), Number("LIMIT")], rows)
    })
}

/// Show your preferences, or change them
#[derive(Args)]
pub struct Preferences {
    /// Whether running instances may be stopped, moved and started again for the maintenance of a node
    #[arg(long, value_name = "true|false", action = ArgAction::Set)]
    allow_moves: Option<bool>,
    #[command(flatten)]
    connection: Connection,
}

impl Preferences {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let shown = |allowed: Option<bool>| line(&format!("allow_moves: {}", or_none(allowed)));
        if self.allow_moves.is_none() {
            let preferences = client.get_preferences().send().await?;
            return self
                .connection
                .print(&preferences, |now| shown(Some(now.allow_moves)));
        }
        let mut body = PreferencesRequest::new();
        body.allow_moves = self.allow_moves;
        let changed = client.update_preferences(&body).send().await?;
        self.connection
            .print(&changed, |now| shown(now.allow_moves))
    }
}
