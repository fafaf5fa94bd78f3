//! `wharf volume`, and `wharf attach` and `detach`.

use crate::connection::Connection;
use crate::create::retried;
use crate::failure::Failure;
use crate::lifecycle::{is_in, state_of, waited};
use crate::names;
use crate::output::Column::{Number, Text, Whole};
use crate::output::{joined, json, line, list as print_list, note, one_of, or_none, table, time};
use crate::remove::{Confirmation, RemovedKind};
use crate::show::cost_rows;
use crate::wait::{EndWait, Look, WaitLimit, Words, until};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use wharf_client::types::{
    Attachment, CpuTier, Volume as Shown, VolumeDetachment, VolumeMount, VolumeOrState,
    VolumeRequest, VolumeShareOrId, VolumeShareRequest, VolumeState, VolumeUpdate,
    VolumesResultOrState,
};
use wharf_client::{Client, Reply, Request};

#[derive(Subcommand)]
pub enum VolumeCommand {
    /// List your volumes, and those that others share with you, as `owner@example.com/name`
    #[command(visible_alias = "list")]
    Ls(Connection),
    Create(VolumeCreate),
    /// Show a volume with its cost, its readers and the instances that have it
    Show {
        /// Name or UUID of the volume
        #[arg(add = names::volumes())]
        name: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Give a volume another name; instances keep it
    Rename {
        /// Name or UUID of the volume
        #[arg(add = names::volumes())]
        name: String,
        /// The new name
        new_name: String,
        #[command(flatten)]
        connection: Connection,
    },
    /// Let another user attach a volume, read-only
    Share(ShareArguments),
    /// End the share of a volume, or your own share of another user's; instances that have it keep it
    Unshare(ShareArguments),
    /// Delete volumes and their data
    #[command(visible_alias = "delete")]
    Rm {
        /// Names or UUIDs of volumes
        #[arg(required = true, add = names::volumes())]
        names: Vec<String>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// Create a volume, a disk that outlives its instances
///
/// A volume is on one host for good, and instances with it are created there.
#[derive(Args)]
pub struct VolumeCreate {
    /// Name, unique among your volumes
    name: String,
    /// Size in GiB, which cannot be changed later
    #[arg(long, value_name = "GIB")]
    size: u64,
    /// Class of CPU of the instances that will have it
    #[arg(long, value_parser = one_of::<CpuTier, 2>(["general-purpose", "high-performance"]))]
    tier: Option<CpuTier>,
    /// UUID of a backup of a volume, whose content the new one gets
    #[arg(long, value_name = "UUID", add = names::backups())]
    backup: Option<String>,
    #[command(flatten)]
    wait: EndWait,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
pub struct ShareArguments {
    /// Name or UUID of the volume
    #[arg(add = names::volumes())]
    name: String,
    /// E-mail address of the user
    email: String,
    #[command(flatten)]
    connection: Connection,
}

/// Attach a volume to an instance, where the engine of its host can do it
#[derive(Args)]
pub struct Attach {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// The volume and its directory in the instance; with `:ro` the instance only reads it
    #[arg(value_name = "VOLUME:PATH[:ro]", value_parser = mount, add = names::volumes_with_path())]
    volume: VolumeMount,
    #[command(flatten)]
    connection: Connection,
}

/// Detach a volume from an instance, where the engine of its host can do it
#[derive(Args)]
pub struct Detach {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Name or UUID of the volume
    #[arg(add = names::volumes())]
    volume: String,
    #[command(flatten)]
    connection: Connection,
}

impl VolumeCommand {
    pub async fn run(self) -> Result<()> {
        match self {
            Self::Ls(connection) => {
                let client = connection.client()?;
                let volumes = client.list_volumes(None, None).send().await?;
                connection.print(&volumes, |volumes| print(&volumes))
            }
            Self::Create(create) => create.run().await,
            Self::Show { name, connection } => show(&name, &connection).await,
            Self::Rename {
                name,
                new_name,
                connection,
            } => {
                let mut body = VolumeUpdate::new();
                body.name = Some(new_name);
                let client = connection.client()?;
                let renamed = client.update_volume(&name, &body).send().await?;
                connection.print(&renamed, print_changed)
            }
            Self::Share(reader) => reader.share().await,
            Self::Unshare(reader) => reader.unshare().await,
            Self::Rm {
                names,
                confirmation,
            } => confirmation.remove(RemovedKind::Volume, &names).await,
        }
    }
}

impl VolumeCreate {
    async fn run(self) -> Result<()> {
        let mut body = VolumeRequest::new(self.name, self.size);
        body.cpu_tier = self.tier;
        body.backup = self.backup;
        let client = self.connection.client()?;
        let created = retried(|| client.create_volume(&body)).await?;
        if !self.connection.is_json() {
            note(&format!(
                "{} is on one host for good, and instances with it are created there.",
                body.name
            ));
        }
        match created.body()? {
            VolumeOrState::Volume(volume) if !self.wait.no_wait => {
                let ready = wait_until_ready(&client, &volume, self.wait.limit).await?;
                self.connection.print(&ready, |ready| print(&[ready]))
            }
            _ => self.connection.print(&created, print_changed),
        }
    }
}

async fn wait_until_ready(
    client: &Client,
    volume: &Shown,
    limit: WaitLimit,
) -> Result<Reply<Shown>> {
    let name = &volume.name;
    let mut words = Words::new(&format!("Waiting until {name} is ready"));
    until(name, "ready", limit, async || {
        let reply = client.get_volume(&volume.id).send().await?;
        let now = reply.body()?;
        match now.state {
            VolumeState::Ready => return Ok(Look::Done(reply)),
            VolumeState::Creating => words.show(&now.state.to_string()),
            _ => bail!("{name} is {}: {}", now.state, or_none(now.reason)),
        }
        Ok(Look::Not(now.state.to_string()))
    })
    .await
}

impl ShareArguments {
    async fn share(self) -> Result<()> {
        let body = VolumeShareRequest::new(self.email.clone());
        let client = self.connection.client()?;
        let shared = client.share_volume(&self.name, &body).send().await?;
        self.connection.print(&shared, |shared| {
            let user = match shared {
                VolumeShareOrId::VolumeShare(shared) => shared.user,
                VolumeShareOrId::ChangedVolumeShare(_) => self.email,
            };
            line(&format!("{user} can attach {} read-only.", self.name))
        })
    }

    async fn unshare(self) -> Result<()> {
        let client = self.connection.client()?;
        let shares = client.list_volume_shares(&self.name).fetch().await?;
        let of = |user: &str| user.eq_ignore_ascii_case(&self.email);
        let Some(share) = shares.iter().find(|share| of(&share.user)) else {
            let readers = match joined(shares.iter().map(|share| &share.user)).as_str() {
                "-" => "with nobody".to_owned(),
                readers => format!("with {readers}"),
            };
            let (name, email) = (&self.name, &self.email);
            let text = format!("{name} is not shared with {email}; it is shared {readers}.");
            return Err(Failure::NotFound(text).into());
        };
        client.unshare_volume(&self.name, &share.id).send().await?;
        note(&format!("{} can attach {} no more.", share.user, self.name));
        Ok(())
    }
}

impl Attach {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let text = format!("Attaching {} to {}", self.volume.volume, self.name);
        let request = client.attach_volume(&self.name, &self.volume);
        change(&self.connection, &text, request).await
    }
}

impl Detach {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let text = format!("Detaching {} from {}", self.volume, self.name);
        let body = VolumeDetachment::new(self.volume.clone());
        let request = client.detach_volume(&self.name, &body);
        change(&self.connection, &text, request).await
    }
}

async fn change(
    connection: &Connection,
    text: &str,
    request: Request<'_, VolumesResultOrState>,
) -> Result<()> {
    let changed = waited(text, request).await?;
    connection.print(&changed, |changed| match changed {
        VolumesResultOrState::VolumesResult(result) => line(&result.message),
        VolumesResultOrState::ChangedInstance(changed) => line(&state_of(&changed)),
    })
}

async fn show(name: &str, connection: &Connection) -> Result<()> {
    let client = connection.client()?;
    let reply = client.get_volume(name).send().await?;
    if connection.is_json() {
        return json(reply.value());
    }
    let volume = reply.body()?;
    let mut rows = vec![
        ("name", volume.name.clone()),
        ("state", volume.state.to_string()),
    ];
    rows.extend(volume.reason.clone().map(|reason| ("reason", reason)));
    rows.extend([
        ("size_gib", volume.size_gib.to_string()),
        ("cpu_tier", volume.cpu_tier.to_string()),
        ("id", volume.id.to_string()),
        ("created_at", time(Some(&volume.created_at))),
    ]);
    if volume.shared {
        rows.push(("owner_email", volume.owner_email.clone()));
    } else {
        rows.extend(owner_rows(&client, &volume).await?);
    }
    let attached = volume.attached_to.iter();
    rows.extend(attached.map(|attachment| ("attached_to", attached_at(attachment))));
    print_list(&rows)
}

/// The facts that concern the owner of a volume alone.
async fn owner_rows(client: &Client, volume: &Shown) -> Result<[(&'static str, String); 3]> {
    let shares = client.list_volume_shares(&volume.id).fetch().await?;
    let readers = joined(shares.iter().map(|share| &share.user));
    let usage = client.get_usage(None, None).fetch().await?;
    let cost = usage.volumes.iter().find(|cost| cost.id == volume.id);
    let [hourly, total] = cost_rows(cost.map(|cost| (cost.hourly_usd, cost.total_usd)));
    Ok([("shared_with", readers), hourly, total])
}

fn print(volumes: &[Shown]) -> Result<()> {
    let columns = [
        Text("NAME"),
        Whole("STATE"),
        Number("SIZE"),
        Text("ATTACHED TO"),
    ];
    let row = |volume: &Shown| {
        let mut attached: Vec<_> = volume.attached_to.iter().map(attached_at).collect();
        attached.dedup();
        [
            named(volume),
            volume.state.to_string(),
            format!("{} GiB", volume.size_gib),
            joined(attached),
        ]
    };
    table(columns, volumes.iter().map(row))
}

/// The name by which the user names a volume: another user's has its owner before it.
pub fn named(volume: &Shown) -> String {
    if volume.shared {
        format!("{}/{}", volume.owner_email, volume.name)
    } else {
        volume.name.clone()
    }
}

fn print_changed(volume: VolumeOrState) -> Result<()> {
    match volume {
        VolumeOrState::Volume(volume) => print(&[volume]),
        // The key has no scope `read`, and sees no more.
        VolumeOrState::ChangedVolume(changed) => {
            line(&is_in("Volume", &changed.id, &changed.state))
        }
    }
}

/// An instance that has a volume, and where. Of another user's instance only the user is known.
fn attached_at(attachment: &Attachment) -> String {
    match (&attachment.name, &attachment.path) {
        (Some(name), Some(path)) => mounted_at(name, path, attachment.read_only),
        _ => format!("({})", attachment.owner_email),
    }
}

/// A name and a directory, as options take them.
pub fn mounted_at(name: &str, path: &str, is_read_only: bool) -> String {
    let mode = if is_read_only { ":ro" } else { "" };
    format!("{name}:{path}{mode}")
}

/// Parses `VOLUME:PATH`, `VOLUME:PATH:ro` and `VOLUME:PATH:rw`.
pub fn mount(text: &str) -> Result<VolumeMount, &'static str> {
    let rule = "must be a volume and a directory, such as genome:/data or genome:/data:ro";
    let (volume, rest) = text.split_once(':').ok_or(rule)?;
    let (path, mode) = rest.split_once(':').unwrap_or((rest, "rw"));
    if volume.is_empty() || !path.starts_with('/') {
        return Err(rule);
    }
    let mut mount = VolumeMount::new(path.to_owned(), volume.to_owned());
    mount.read_only = match mode {
        "ro" => Some(true),
        "rw" => None,
        _ => return Err(rule),
    };
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use super::{mount, mounted_at};

    #[test]
    fn a_mount_is_a_volume_a_directory_and_a_mode() {
        for (text, is_read_only) in [("a:/b", false), ("a:/b:rw", false), ("a:/b:ro", true)] {
            let mount = mount(text).unwrap();
            assert_eq!((mount.volume.as_str(), mount.path.as_str()), ("a", "/b"));
            assert_eq!(mount.read_only.unwrap_or_default(), is_read_only, "{text}");
            let shown = mounted_at(&mount.volume, &mount.path, is_read_only);
            assert_eq!(shown, text.trim_end_matches(":rw"));
        }
        for wrong in ["", "a", "a:", "a:b", ":/b", "a:/b:", "a:/b:rx", "a:/b:ro:"] {
            assert!(mount(wrong).is_err(), "{wrong}");
        }
    }
}
