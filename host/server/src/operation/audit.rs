//! The audit log.

use super::Operation;
use serde::{Deserialize, Serialize};
use wharf_control::{AuditEntry, Operator, audit_page};
use wharf_db::{AuditHead, Read};
use wharf_domain::error::{Error, FieldErrors};

/// The most records of one reply.
const PAGE: usize = 10_000;

/// Lists records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// The number of the record after which the list begins.
    pub after: u64,
    /// The user whose records are wanted, who must exist.
    pub user: Option<String>,
}

/// A record and the e-mail address of the user whose data changed.
#[derive(Debug, Serialize, Deserialize)]
pub struct AuditLine {
    pub owner: Option<String>,
    pub entry: AuditEntry,
}

impl Operation for ListAudit {
    const PATH: &'static str = "/audit/list";
    type Reply = Vec<AuditLine>;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        if let Some(user) = &self.user
            && operator.db.read(|rows| rows.user_of_email(user))?.is_none()
        {
            let message = format!("no user has the address {user:?}");
            return Err(FieldErrors::one("user", message).into());
        }
        let records = audit_page(operator.db, self.after, PAGE)?.into_iter();
        Ok(records
            .map(|(owner, entry)| AuditLine { owner, entry })
            .collect())
    }
}

/// Checks the chain of records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyAudit {
    /// An end that an earlier check printed.
    pub end: Option<String>,
}

/// The result of a check.
#[derive(Debug, Serialize, Deserialize)]
pub struct VerifiedAudit {
    /// Number and hash of the last record.
    pub end: String,
    /// One line for each contradiction.
    pub wrong: Vec<String>,
}

impl Operation for VerifyAudit {
    const PATH: &'static str = "/audit/verify";
    type Reply = VerifiedAudit;

    async fn run(self, operator: Operator<'_>) -> Result<Self::Reply, Error> {
        let known = self.end.as_deref().map(|end| {
            let message = "must be NUMBER:HASH, as `wharf audit verify` prints it";
            parse(end).ok_or_else(|| FieldErrors::one("end", message))
        });
        let (head, wrong) = operator.db.verify_audit(known.transpose()?)?;
        let hash: String = head.hash.iter().map(|b| format!("{b:02x}")).collect();
        Ok(VerifiedAudit {
            end: format!("{}:{hash}", head.number),
            wrong,
        })
    }
}

fn parse(end: &str) -> Option<AuditHead> {
    let (number, hex) = end.split_once(':')?;
    let mut hash = [0; 32];
    if hex.len() != 2 * hash.len() {
        return None;
    }
    for (n, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(AuditHead {
        number: number.parse().ok()?,
        hash,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ends() {
        let hash = "0f".repeat(32);
        let head = parse(&format!("7:{hash}")).unwrap();
        assert_eq!((head.number, head.hash), (7, [15; 32]));
        for wrong in [
            "7",
            &format!("x:{hash}"),
            &format!("7:{}", "zz".repeat(32)),
            "7:0f",
        ] {
            assert_eq!(parse(wrong), None);
        }
    }
}
