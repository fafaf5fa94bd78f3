//! Suspension of an instance, or of all instances of a user, by the operator. Instances stop and keep
//! their disks, and their owner can delete them, but not start or resize them.

use super::{Operator, no_instance};
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Read as _, Rows, View};
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent};
use wharf_domain::suspension::Suspension;
use wharf_ground::audit::record;
use wharf_ground::users::{USERS, user_named};
use wharf_instances::Selector;
use wharf_instances::suspension::{SUSPENDED, SUSPENDED_USERS};

/// The longest reason, in characters.
const MAX_REASON: usize = 500;

/// The object of a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspended {
    /// An instance, by UUID or name.
    Instance(String),
    /// A user, by e-mail address.
    User(String),
}

/// A suspension for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionLine {
    /// The user or the instance.
    pub of: Suspended,
    /// Its begin in ISO 8601.
    pub since: String,
    pub reason: String,
}

/// A user or an instance that a write has found.
enum Found {
    User(UserId),
    Instance(Box<Instance>),
}

impl Suspended {
    fn find(&self, rows: &impl Rows) -> Result<Found, Error> {
        match self {
            Self::User(email) => user_named(rows, "user", email).map(Found::User),
            Self::Instance(text) => {
                let selector = Selector::parse(text);
                let id = match &selector {
                    Selector::Id(id) => Some(*id),
                    Selector::Name(name) => rows.id_of_name(name)?,
                };
                let instance = id.map_or(Ok(None), |id| rows.instance(id))?;
                let living = instance.filter(|instance| instance.intent != Intent::Delete);
                let found = living.map(|instance| Found::Instance(Box::new(instance)));
                found.ok_or_else(|| no_instance(&selector))
            }
        }
    }
}

impl Operator<'_> {
    /// Stops an instance, or all instances of a user, and keeps the owner from starting them. Returns
    /// the instances.
    pub async fn suspend(&self, of: Suspended, reason: &str) -> Result<Vec<InstanceId>, Error> {
        let reason = reason.trim().to_owned();
        if reason.is_empty() || reason.chars().count() > MAX_REASON {
            let why = format!("must have 1 to {MAX_REASON} characters; the owner reads it");
            return Err(FieldErrors::one("reason", why).into());
        }
        let decided = self.db.write_essential(move |view| {
            let at = view.system;
            let reason = reason.clone();
            let suspension = Suspension { reason, at };
            let (instances, changes) = begin(view, of.find(view.rows)?, &suspension)?;
            Ok((instances, changes))
        });
        let instances = decided.await?;
        self.follow(&instances).await;
        Ok(instances)
    }

    /// Ends a suspension. The instances stay stopped until their owner starts them. Returns the
    /// instances.
    pub async fn resume(&self, of: Suspended) -> Result<Vec<InstanceId>, Error> {
        let decided = self
            .db
            .write_essential(move |view| end(view, of.find(view.rows)?));
        decided.await
    }

    /// Lists the suspensions.
    pub fn suspensions(&self) -> Result<Vec<SuspensionLine>, Error> {
        self.db.read(|rows| {
            let mut lines = Vec::new();
            let line = |of, suspension: Suspension| SuspensionLine {
                of,
                since: suspension.at.to_rfc3339(),
                reason: suspension.reason,
            };
            for row in rows.under(&SUSPENDED_USERS, &())? {
                let (user, suspension) = row?;
                let email = rows.get(&USERS, user)?.unwrap_or_default();
                lines.push(line(Suspended::User(email), suspension));
            }
            for row in rows.under(&SUSPENDED, &())? {
                let (id, suspension) = row?;
                lines.push(line(Suspended::Instance(id.to_string()), suspension));
            }
            Ok(lines)
        })
    }

    /// Wakes the reconciler, and the requests that wait for the instances.
    async fn follow(&self, instances: &[InstanceId]) {
        let Some(app) = self.app else { return };
        for instance in instances {
            app.wake(*instance).await;
            app.waiters().notify(*instance);
        }
    }
}

fn begin(
    view: &View<'_>,
    found: Found,
    suspension: &Suspension,
) -> Result<(Vec<InstanceId>, Changes), Error> {
    let (mut changes, instances) = match found {
        Found::User(user) => {
            let audited = user_record(view, "user.suspend", user, "suspended")?;
            let changes = Changes::none()
                .put(&SUSPENDED_USERS, user, suspension.clone())
                .with(audited);
            (changes, view.rows.owned_by(user)?)
        }
        Found::Instance(instance) => {
            let changes = Changes::none().put(&SUSPENDED, instance.id, suspension.clone());
            (changes, vec![*instance])
        }
    };
    let ids = instances.iter().map(|instance| instance.id).collect();
    for mut instance in instances {
        if matches!(instance.intent, Intent::Run | Intent::Start) {
            instance.intend(Intent::Stop, None);
        }
        instance.resize = None;
        let what = EventKind::Suspended(suspension.reason.clone());
        changes = changes.record(instance, view.now, what).audited(
            &Origin::operator(),
            "instance.suspend",
            view.now,
        );
    }
    Ok((ids, changes))
}

fn end(view: &View<'_>, found: Found) -> Result<(Vec<InstanceId>, Changes), Error> {
    let not_suspended = |field: &str, what: &str| {
        Error::from(FieldErrors::one(
            field,
            format!("this {what} is not suspended"),
        ))
    };
    let (mut changes, instances) = match found {
        Found::User(user) => {
            if view.rows.get(&SUSPENDED_USERS, user)?.is_none() {
                return Err(not_suspended("user", "user"));
            }
            let audited = user_record(view, "user.resume", user, "resumed")?;
            let change = Changes::none().remove(&SUSPENDED_USERS, user);
            let mut instances = Vec::new();
            for instance in view.rows.owned_by(user)? {
                if view.rows.get(&SUSPENDED, instance.id)?.is_none() {
                    instances.push(instance);
                }
            }
            (change.with(audited), instances)
        }
        Found::Instance(instance) => {
            if view.rows.get(&SUSPENDED, instance.id)?.is_none() {
                return Err(match view.rows.get(&SUSPENDED_USERS, instance.owner)? {
                    Some(_) => FieldErrors::one(
                        "instance",
                        "its user is suspended; resume the user with --user EMAIL",
                    )
                    .into(),
                    None => not_suspended("instance", "instance"),
                });
            }
            let change = Changes::none().remove(&SUSPENDED, instance.id);
            // An instance of a suspended user stays suspended.
            let owner = view.rows.get(&SUSPENDED_USERS, instance.owner)?;
            match owner {
                Some(_) => {
                    let audited = change.audit(AuditRecord {
                        at: view.system,
                        origin: Origin::operator(),
                        operation: "instance.resume".to_owned(),
                        owner: Some(instance.owner),
                        instance: Some(instance.id),
                        subject: None,
                        result: "suspended with its user".to_owned(),
                    });
                    return Ok((Vec::new(), audited));
                }
                None => (change, vec![*instance]),
            }
        }
    };
    let ids = instances.iter().map(|instance| instance.id).collect();
    for instance in instances {
        changes = changes
            .record(instance, view.now, EventKind::Resumed)
            .audited(&Origin::operator(), "instance.resume", view.now);
    }
    Ok((ids, changes))
}

fn user_record(
    view: &View<'_>,
    operation: &str,
    user: UserId,
    result: &str,
) -> Result<Changes, Error> {
    let email = view.rows.get(&USERS, user)?.unwrap_or_default();
    let origin = Origin::operator();
    Ok(record(view, &origin, operation, Some(user), &email, result))
}
