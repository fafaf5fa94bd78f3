//! Keys of a version in which users gave themselves the scope of metrics.

use super::backend::Disk;
use super::migration::set_format;
use super::{assert_consistent, open};
use crate::{Change, Changes, Db, KeyRow, KeyTerms, Read};
use wharf_domain::audit::{Actor, AuditRecord, Origin};
use wharf_domain::ids::UserId;
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;

fn put_key(db: &Db, id: &str, scopes: Option<Scopes>, actor: Actor) {
    let (id, user) = (id.to_owned(), UserId(1));
    let key = KeyRow {
        id: id.clone(),
        user,
        name: String::new(),
        sha256: [0; 32],
        created_at: Timestamp(1),
        revoked_at: None,
    };
    let record = AuditRecord {
        at: Timestamp(1),
        origin: Origin {
            actor,
            peer: None,
            request_id: None,
        },
        operation: "key.new".to_owned(),
        owner: Some(user),
        instance: None,
        subject: Some(id.clone()),
        result: "created".to_owned(),
    };
    db.write_blocking(move |_| {
        let mut changes = Changes::none()
            .with(Change::PutUser(user, "ann@example.com".to_owned()))
            .with(Change::PutKey(key.clone()))
            .with(Change::Audit(Box::new(record.clone())));
        if let Some(scopes) = scopes {
            let terms = KeyTerms {
                scopes,
                expires_at: None,
            };
            changes = changes.with(Change::PutKeyTerms(id.clone(), terms));
        }
        Ok(((), changes))
    })
    .unwrap();
}

#[test]
fn keys_of_users_lose_the_scope_of_metrics_and_those_of_the_operator_keep_it() {
    let disk = Disk::new();
    let db = open(&disk).unwrap();
    let by = |id: &str| Actor::Key(id.to_owned());
    let only = |scope| Some([scope].into_iter().collect());
    put_key(&db, "operators", Some(Scopes::ALL), Actor::Operator);
    put_key(&db, "oldest", None, Actor::Operator);
    put_key(&db, "derived", Some(Scopes::ALL), by("operators"));
    put_key(
        &db,
        "browsers",
        only(Scope::Metrics),
        Actor::Session("1".to_owned()),
    );
    put_key(&db, "reader", only(Scope::Read), by("operators"));
    drop(db);
    set_format(&disk, 5);
    for _ in 0..2 {
        let db = open(&disk).unwrap();
        let (scopes, records) = db
            .read(|rows| {
                let ids = ["operators", "derived", "browsers", "reader", "oldest"];
                let scopes = ids.map(|id| rows.key_terms(id).unwrap().map(|terms| terms.scopes));
                Ok::<_, wharf_domain::error::Error>((scopes, rows.audit(0, 100)?))
            })
            .unwrap();
        let [operators, derived, browsers, reader, oldest] = scopes;
        assert_eq!((operators, oldest), (Some(Scopes::ALL), None));
        assert_eq!(derived, Some(Scopes::OF_USERS));
        assert!(browsers.unwrap().iter().next().is_none());
        assert_eq!(reader, only(Scope::Read));
        let lost = records.iter().map(|(_, record)| record);
        let lost: Vec<_> = lost.filter(|r| r.operation == "key.scopes").collect();
        let mut subjects: Vec<_> = lost.iter().filter_map(|r| r.subject.as_deref()).collect();
        subjects.sort_unstable();
        assert_eq!(subjects, ["browsers", "derived"]);
        assert!(lost.iter().all(|r| r.owner == Some(UserId(1))));
        assert_consistent(&db);
    }
}
