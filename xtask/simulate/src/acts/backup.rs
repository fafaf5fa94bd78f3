//! Acts of users on their buckets and backups.

use super::instance::{SIZES, made_by};
use super::snapshot::{PAUSE, TRIES, container};
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::sim::Sim;
use tokio::time::sleep;
use wharf_backups::{BACKUPS, BUCKETS, NewBucket};
use wharf_db::Rows as _;
use wharf_domain::backup::{Backup, BackupOf, BackupState, BucketAddress, ContentOf};
use wharf_domain::instance::{Instance, ResourceType};
use wharf_domain::name::Name;
use wharf_domain::request::CreateRequest;
use wharf_domain::secret::{InstanceSecrets, SecretText};
use wharf_domain::snapshot::PlanRequest;
use wharf_ground::caller::Caller;

acts![
    add_bucket 4,
    forget_bucket 1,
    back_up 10,
    restore_backup 9,
    verify_backup 2,
    delete_backup 3,
    plan_backups 5,
    end_backup_plan 1,
];

/// The buckets that users have.
const NAMES: [&str; 2] = ["cellar", "attic"];

async fn add_bucket(sim: Sim, args: Args) {
    if let (Some((who, caller)), Some(name)) = (args.user(&sim), args.of(1, &NAMES)) {
        add(&sim, who, &caller, name).await;
    }
}

async fn add(sim: &Sim, who: &str, caller: &Caller, name: &str) {
    let Ok(own) = Name::parse(name) else {
        return;
    };
    let new = NewBucket {
        name: own,
        address: BucketAddress {
            endpoint: "https://s3.example".to_owned(),
            region: "somewhere".to_owned(),
            bucket: format!("{who}-{name}"),
            prefix: "wharf".to_owned(),
        },
        access_key_id: SecretText::new("an id"),
        secret_access_key: SecretText::new("a key"),
        passphrase: SecretText::new("a passphrase of many words"),
    };
    let added = sim.backups.add_bucket(caller, new);
    let ask = Ask::AddBucket(caller.user);
    let words = format!("adds the bucket {name}");
    sim.ask(who, words, Some(ask), added, |_| None).await;
}

async fn forget_bucket(sim: Sim, args: Args) {
    let (Some((who, caller)), Some(name)) = (args.user(&sim), args.of(1, &NAMES)) else {
        return;
    };
    let forgotten = sim.backups.forget_bucket(&caller, name);
    let ask = Ask::ForgetBucket(caller.user);
    let words = format!("forgets the bucket {name}");
    sim.ask(who, words, Some(ask), forgotten, |()| None).await;
}

/// A name of a bucket of the caller. The first one is added here.
pub async fn bucket(sim: &Sim, who: &str, caller: &Caller, args: Args) -> Option<String> {
    let buckets = || {
        let own = sim.db.read(|rows| {
            rows.under(&BUCKETS, &caller.user)?
                .map(|row| row.map(|(_, bucket)| bucket.name.to_string()))
                .collect::<Result<Vec<_>, _>>()
        });
        own.unwrap_or_default()
    };
    if buckets().is_empty() {
        add(sim, who, caller, args.of(2, &NAMES)?).await;
    }
    let own = buckets();
    let n = args.number(2, own.len() as u64);
    own.into_iter().nth(usize::try_from(n).ok()?)
}

async fn back_up(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let Some(into) = bucket(&sim, of.who, &of.caller, args).await else {
        return;
    };
    let words = format!("{} into {into}", of.words("backs up"));
    let made = sim.backups.create(&of.caller, &of.selector, &into);
    let ask = Ask::BackUp(of.instance.id);
    sim.ask(of.who, words, Some(ask), made, |_| None).await;
}

/// A backup of its owner, who acts.
struct Own {
    who: &'static str,
    caller: Caller,
    backup: Backup,
}

impl Own {
    fn of(sim: &Sim, args: Args) -> Option<Self> {
        let found = sim.db.read(|rows| {
            let mut found = Vec::new();
            for row in rows.all(&BACKUPS)? {
                let (.., row) = row?;
                found.extend(Some(row).filter(|row: &Backup| !row.is_deleted()));
            }
            Ok(found)
        });
        let mut found = found.unwrap_or_default();
        if found.iter().any(is_done) && !args.is_one_in(0, 4) {
            found.retain(is_done);
        }
        let n = args.number(1, found.len() as u64);
        let backup = found.into_iter().nth(usize::try_from(n).ok()?)?;
        let (who, caller) = args.user_with(sim, backup.owner)?;
        Some(Self {
            who,
            caller,
            backup,
        })
    }

    /// A backup as above. If there is none, one is made before.
    async fn ready(sim: &Sim, args: Args) -> Option<Self> {
        if let Some(own) = Self::of(sim, args) {
            return Some(own);
        }
        back_up(sim.clone(), args).await;
        for _ in 0..TRIES {
            sleep(PAUSE).await;
            if let Some(own) = Self::of(sim, args).filter(|own| is_done(&own.backup)) {
                return Some(own);
            }
        }
        Self::of(sim, args)
    }

    fn words(&self, what: &str) -> String {
        let Backup { id, of, .. } = &self.backup;
        let of = of.instance().map_or_else(String::new, |of| of.to_string());
        format!("{what} backup {id} of {of}")
    }
}

fn is_done(backup: &Backup) -> bool {
    matches!(backup.state, BackupState::Done(_))
}

async fn restore_backup(sim: Sim, args: Args) {
    let (Some(own), Some(mut size)) = (Own::ready(&sim, args).await, args.of(2, &SIZES)) else {
        return;
    };
    let BackupOf::Instance {
        flavor,
        size: least,
        ..
    } = &own.backup.of.what
    else {
        return;
    };
    let flavors = &sim.outside.setup.flavors;
    let flavor = flavors.iter().find(|known| known.name == *flavor);
    let Some(flavor) = flavor.cloned() else {
        return;
    };
    size.disk_size_gib = size.disk_size_gib.max(least.disk_size_gib);
    let ask = Ask::Create {
        owner: own.caller.user,
        size,
    };
    let created = async {
        let source = sim.backups.source(&own.caller, own.backup.id)?;
        let request = CreateRequest {
            name: None,
            resource_type: ResourceType::Container,
            size,
            cpu_tier: source.of.cpu_tier,
            flavor,
            gpu_model: None,
            public_key: None,
            secrets: InstanceSecrets::default(),
            volumes: Vec::new(),
            source: None,
            content: Some(ContentOf {
                backup: source.id,
                engine_kind: source.of.engine_kind,
            }),
        };
        sim.app.create(&own.caller, request, None).await
    };
    let (words, made) = (own.words("restores"), made_by(&sim));
    sim.ask(own.who, words, Some(ask), created, made).await;
}

async fn verify_backup(sim: Sim, args: Args) {
    let Some(own) = Own::of(&sim, args) else {
        return;
    };
    let verified = sim.backups.verify(&own.caller, own.backup.id);
    sim.ask(own.who, own.words("verifies"), None, verified, |_| None)
        .await;
}

async fn delete_backup(sim: Sim, args: Args) {
    let Some(own) = Own::of(&sim, args) else {
        return;
    };
    let deleted = sim.backups.delete(&own.caller, own.backup.id);
    let ask = Ask::DeleteBackup(own.backup.id);
    sim.ask(own.who, own.words("deletes"), Some(ask), deleted, |()| None)
        .await;
}

async fn plan_backups(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let Some(into) = bucket(&sim, of.who, &of.caller, args).await else {
        return;
    };
    let keep = args.of(3, &[1, 2]).unwrap_or(1);
    let times = PlanRequest {
        every_h: 1,
        keep,
        keep_days: None,
    };
    let words = format!(
        "{} into {into} that keeps {keep}",
        of.words("plans backups of")
    );
    let backups = &sim.backups;
    let planned = backups.set_plan::<Instance>(&of.caller, &of.selector, &into, times);
    let ask = Ask::PlanBackups(of.instance.id, Some(keep as usize));
    sim.ask(of.who, words, Some(ask), planned, |_| None).await;
}

async fn end_backup_plan(sim: Sim, args: Args) {
    let Some(of) = container(&sim, args) else {
        return;
    };
    let backups = &sim.backups;
    let ended = backups.end_plan::<Instance>(&of.caller, &of.selector);
    let ask = Ask::PlanBackups(of.instance.id, None);
    let words = of.words("ends the plan of backups of");
    sim.ask(of.who, words, Some(ask), ended, |()| None).await;
}
