//! Users with their usage and limits, for the operator.

use super::Operator;
use serde::{Deserialize, Serialize};
use wharf_accounts::disabled::is_disabled;
use wharf_accounts::sign_in_methods::described;
use wharf_db::{Changes, Rows as _};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::quota::{Amounts, QuotaLimits, QuotaUsage, UserLimit};
use wharf_ground::audit::record;
use wharf_ground::users::{USERS, user_named};
use wharf_instances::moves::note_consent;
use wharf_instances::quota::{USER_LIMITS, limits};

/// A user with the quantities that their instances hold, and the limits on them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserQuota {
    pub email: String,
    pub disabled: bool,
    /// The methods by which the user signs in.
    #[serde(rename = "ways")]
    pub sign_in_methods: Vec<String>,
    pub used: QuotaUsage,
    pub limits: QuotaLimits,
}

impl Operator<'_> {
    /// Returns all users.
    pub fn users(&self) -> Result<Vec<UserQuota>, Error> {
        let defaults = self.config.quota.limits();
        self.db.read(|rows| {
            let users = rows.all(&USERS)?;
            let quota = |row: Result<_, Error>| {
                let (id, (), email) = row?;
                Ok(UserQuota {
                    email,
                    disabled: is_disabled(rows, id)?,
                    sign_in_methods: described(rows, id)?,
                    used: self.inventory.used(id),
                    limits: limits(rows, id, defaults)?,
                })
            };
            users.map(quota).collect()
        })
    }

    /// Changes limits of a user. A limit below the usage only prevents growth.
    pub async fn limit_user(
        &self,
        email: &str,
        changes: Amounts<Option<UserLimit>>,
    ) -> Result<UserQuota, Error> {
        let (address, defaults) = (email.to_owned(), self.config.quota.limits());
        let decided = self.db.write_essential(move |view| {
            let user = user_named(view.rows, "email", &address)?;
            let before = view.rows.get(&USER_LIMITS, user)?.unwrap_or_default();
            let own = changes.zip(before, |new, old| new.unwrap_or(old));
            let written = if own == before {
                Changes::none()
            } else {
                let origin = Origin::operator();
                let audited = record(view, &origin, "user.limit", Some(user), &address, "changed");
                Changes::none().put(&USER_LIMITS, user, own).with(audited)
            };
            let disabled = is_disabled(view.rows, user)?;
            let sign_in_methods = described(view.rows, user)?;
            Ok((
                (user, disabled, sign_in_methods, own.over_defaults(defaults)),
                written,
            ))
        });
        let (user, disabled, sign_in_methods, limits) = decided.await?;
        Ok(UserQuota {
            email: email.to_owned(),
            disabled,
            sign_in_methods,
            used: self.inventory.used(user),
            limits,
        })
    }

    /// Notes whether a user's running instances may be stopped, moved and started again.
    pub async fn let_move(&self, email: &str, permitted: bool) -> Result<(), Error> {
        let address = email.to_owned();
        let decided = self.db.write_essential(move |view| {
            let user = user_named(view.rows, "email", &address)?;
            let origin = Origin::operator();
            let changes = note_consent(view, &origin, user, &address, permitted)?;
            Ok(((), changes))
        });
        decided.await?;
        if let Some(app) = self.app {
            app.look_for_moves();
        }
        Ok(())
    }
}
