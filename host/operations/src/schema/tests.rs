//! The declarations of tables against the documentation, and files of earlier versions.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod backups;

use super::SCHEMA;
use flate2::read::GzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;
use wharf_accounts::key::{ApiKeys, KeyRequest};
use wharf_accounts::key_rows::{KEY_TERMS, KEYS, KeyRow, KeyTerms, USER_KEYS};
use wharf_config::ClockConfig;
use wharf_db::{Changes, CommitTimes, Db, DbBounds, Read as _, Rows as _, Table, View};
use wharf_domain::audit::{Actor, AuditRecord, Origin};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::placement::{Inventory, Pools};
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_domain::scope::{Scope, Scopes};
use wharf_domain::time::Timestamp;
use wharf_ground::clock::Clock;
use wharf_ground::users::{EMAILS, USERS, user_of_email};
use wharf_instances::SharedInventory;
use wharf_instances::quota::USER_LIMITS;

/// The table of bounds, as the declarations say it.
fn bounds() -> String {
    let mut rows: Vec<([&str; 2], Vec<&str>)> = Vec::new();
    for table in SCHEMA.all() {
        let facts = table.facts();
        let words = [facts.bound, facts.kept];
        match rows.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(facts.name),
            None => rows.push((words, vec![facts.name])),
        }
    }
    let row = |([bound, kept], names): &([&str; 2], Vec<&str>)| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("| {} | {bound} | {kept} |\n", names.join(", "))
    };
    let rows: String = rows.iter().map(row).collect();
    format!("| Tables | Bound | Kept |\n|---|---|---|\n{rows}")
}

#[test]
fn the_documentation_has_the_bound_and_the_retention_of_each_table() {
    let page = include_str!("../../../../docs/operating.md");
    let (_, section) = page.split_once("| Tables | Bound | Kept |").unwrap();
    let (section, _) = section.split_once("\n\n").unwrap();
    let expected = bounds();
    let said = format!("| Tables | Bound | Kept |{section}\n");
    assert!(said == expected, "the declarations say:\n{expected}");
}

/// The constructors of a table need its class, bound and retention, so only their words can be wrong.
#[test]
fn each_table_has_a_name_and_a_place_of_its_own_and_says_its_budget() {
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for table in SCHEMA.all() {
        let facts = table.facts();
        let name = facts.name;
        assert!(names.insert(name), "{name} is declared twice");
        assert!(
            places.insert(facts.place()),
            "{name} has the place of another"
        );
        assert!(!facts.bound.is_empty() && !facts.kept.is_empty(), "{name}");
        let says = facts.bound.to_lowercase().contains("the budget");
        assert!(says || !facts.budgeted, "{name} costs the budget");
    }
}

/// The declarations of tables in the files of a directory: name, type of the first part of keys, group.
fn declared(dir: &Path, found: &mut Vec<[String; 3]>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, found);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let tables = source.split("tables! {\n").skip(1);
        let tables = tables.map(|rest| rest.split("\n}\n").next().unwrap());
        for table in tables.flat_map(|rest| rest.split("    pub const ").skip(1)) {
            let (name, rest) = table.split_once(": Table<").unwrap();
            let first = rest.split_once(',').unwrap().0;
            let group = rest.split_once("b'").unwrap().1;
            found.push([name, first, &group[..1]].map(str::to_owned));
        }
    }
}

/// The declarations of the crates.
fn of_crates(crates: &[&str]) -> Vec<[String; 3]> {
    let mut found = Vec::new();
    for name in crates {
        let dir = format!("{}/../{name}/src", env!("CARGO_MANIFEST_DIR"));
        declared(Path::new(&dir), &mut found);
    }
    found
}

#[test]
fn the_schema_has_the_tables_of_every_file() {
    let names = of_crates(&["accounts", "backups", "ground", "hooks", "instances"]).into_iter();
    let names: BTreeSet<_> = names.map(|[name, ..]| name).collect();
    let known = SCHEMA.tables.iter().copied().flatten();
    let known = known.copied().flatten();
    let known: BTreeSet<_> = known.map(|table| table.facts().name.to_owned()).collect();
    assert_eq!(known, names);
}

/// The first part of a key ends where the kind of its table is. If first parts have two lengths, a byte of a row's
/// own is read as the kind, and a key may have the length of one of another table.
#[test]
fn the_tables_of_a_group_have_first_parts_of_one_form() {
    let tables = of_crates(&["db", "accounts", "backups", "ground", "hooks", "instances"]);
    assert_eq!(tables.len(), SCHEMA.all().count());
    let mut groups = BTreeMap::<_, BTreeSet<_>>::new();
    for [_, first, group] in tables {
        let form = match first.as_str() {
            "InstanceId" | "VolumeId" | "SnapshotId" => "UUID".to_owned(),
            _ => first,
        };
        groups.entry(group).or_default().insert(form);
    }
    groups.retain(|_, forms| forms.len() > 1);
    // Files of earlier versions have both. A digest in the index makes a key longer than a user does.
    let both = || BTreeSet::from(["()", "UserId"].map(str::to_owned));
    let known = ["I", "P"].map(|group| (group.to_owned(), both()));
    assert_eq!(groups, known.into());
}

/// A database in a directory of its own.
struct TestDatabase {
    dir: tempfile::TempDir,
}

impl TestDatabase {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    /// A database of an earlier version.
    fn of(gzipped: &[u8]) -> Self {
        let file = Self::new();
        let mut bytes = Vec::new();
        GzDecoder::new(gzipped).read_to_end(&mut bytes).unwrap();
        let path = file.dir.path().join("wharf.redb");
        wharf_secure_fs::open_new(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        file
    }

    fn open(&self) -> Db {
        let (ssh, web) = ((1, 2), (3, 4));
        let inventory = SharedInventory::new(Inventory::new(Vec::new(), Pools { ssh, web }));
        let clock = Box::new(|| CommitTimes::agreed(Timestamp(3)));
        let dir = self.dir.path();
        Db::open(
            dir,
            &SCHEMA,
            Box::new(inventory),
            clock,
            DbBounds::default(),
        )
        .unwrap()
    }

    /// Makes it one of an earlier format.
    fn set_format(&self, format: u64) {
        let file = wharf_db::rows_in(&self.dir.path().join("wharf.redb")).unwrap();
        let txn = file.begin_write().unwrap();
        let meta = redb::TableDefinition::<&str, u64>::new("meta");
        let mut meta = txn.open_table(meta).unwrap();
        meta.insert("format", format).unwrap();
        drop(meta);
        txn.commit().unwrap();
    }
}

async fn write(db: &Db, decide: impl Fn(&View<'_>) -> Changes + Send + 'static) {
    db.write(move |view| Ok(((), decide(view)))).await.unwrap();
}

fn assert_consistent(db: &Db) {
    let wrong: Vec<_> = db.check().into_iter().map(|f| f.text).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn users_and_keys_of_earlier_formats_are_there() {
    for gzipped in [
        &include_bytes!("../../../db/src/tests/fixtures/format-2.redb.gz")[..],
        include_bytes!("../../../db/src/tests/fixtures/format-3.redb.gz"),
        include_bytes!("../../../db/src/tests/fixtures/format-4.redb.gz"),
    ] {
        let file = TestDatabase::of(gzipped);
        for _ in 0..2 {
            let db = file.open();
            assert_consistent(&db);
            let rows = db.read(|rows| {
                let keys = rows.all(&KEYS)?.count();
                let indexed = rows.keys_under(&USER_KEYS, &UserId(1))?.count();
                let user = user_of_email(rows, "Ann@example.com")?;
                Ok::<_, Error>((keys, indexed, user, rows.get(&USERS, UserId(1))?))
            });
            let email = Some("ann@example.com".to_owned());
            assert_eq!(rows.unwrap(), (1, 1, Some(UserId(1)), email));
        }
    }
}

#[tokio::test]
async fn addresses_get_one_form_unless_another_user_has_it_or_they_have_none() {
    let file = TestDatabase::new();
    let db = file.open();
    let typed = [
        "Ann@Example.org",
        "Bob@example.org",
        "bob@example.org",
        "<eve@example.org>",
        "DAN@example.org",
        "dan@Example.org",
    ];
    for (number, email) in (1..).zip(typed) {
        write(&db, move |_| {
            Changes::none().put(&USERS, UserId(number), email.to_owned())
        })
        .await;
    }
    drop(db);
    file.set_format(7);
    for _ in 0..2 {
        let db = file.open();
        let user_of = |email: &str| db.read(|rows| user_of_email(rows, email)).unwrap();
        let emails = db.read(|rows| {
            let users = rows.all(&USERS)?;
            users.map(|row| row.map(|(.., email)| email)).collect()
        });
        let emails: Vec<String> = emails.unwrap();
        let expected = [
            "ann@example.org",
            "Bob@example.org",
            "bob@example.org",
            "<eve@example.org>",
            "dan@example.org",
            "dan@Example.org",
        ];
        assert_eq!(emails, expected);
        for (spelling, user) in [
            ("ANN@example.org", 1),
            ("Ann@Example.org", 1),
            ("Bob@example.org", 2),
            ("bob@example.org", 3),
            ("BOB@EXAMPLE.ORG", 3),
            ("<eve@example.org>", 4),
            ("Dan@Example.org", 5),
            ("dan@Example.org", 6),
        ] {
            assert_eq!(user_of(spelling), Some(UserId(user)), "{spelling}");
        }
        assert_eq!(user_of("eve@example.org"), None);
        let old = db
            .read(|rows| rows.get(&EMAILS, "Ann@Example.org"))
            .unwrap();
        assert_eq!(old, None);
        assert_consistent(&db);
    }
}

async fn put_key(db: &Db, id: &str, scopes: Option<Scopes>, actor: Actor) {
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
    write(db, move |_| {
        let changes = Changes::none()
            .put(&USERS, user, "ann@example.com".to_owned())
            .put(&KEYS, id.clone(), key.clone())
            .audit(record.clone());
        let expires_at = None;
        let terms = scopes.map(|scopes| KeyTerms { scopes, expires_at });
        changes.set(&KEY_TERMS, id.clone(), terms)
    })
    .await;
}

#[tokio::test]
async fn keys_of_users_lose_the_scope_of_metrics_and_those_of_the_operator_keep_it() {
    let file = TestDatabase::new();
    let db = file.open();
    let by = |id: &str| Actor::Key(id.to_owned());
    let only = |scope| Some([scope].into_iter().collect());
    put_key(&db, "operators", Some(Scopes::ALL), Actor::Operator).await;
    put_key(&db, "oldest", None, Actor::Operator).await;
    put_key(&db, "derived", Some(Scopes::ALL), by("operators")).await;
    let session = Actor::Session("1".to_owned());
    put_key(&db, "browsers", only(Scope::Metrics), session).await;
    put_key(&db, "reader", only(Scope::Read), by("operators")).await;
    drop(db);
    file.set_format(5);
    for _ in 0..2 {
        let db = file.open();
        let ids = ["operators", "derived", "browsers", "reader", "oldest"];
        let terms = |id: &str| db.read(|rows| rows.get(&KEY_TERMS, id)).unwrap();
        let scopes = ids.map(|id| terms(id).map(|terms| terms.scopes));
        let records = db.read(|rows| rows.audit(0, 100)).unwrap();
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

/// Rows in the place of keys that no reader of keys can read.
const BROKEN_KEYS: Table<String, (), ()> = Table::bounded(b'k', 0, "", "");

#[tokio::test]
async fn keys_of_a_user_are_listed_and_made_without_the_rows_of_others() {
    let file = TestDatabase::new();
    let db = file.open();
    let keys = ApiKeys::load(db.clone(), Clock::new(&ClockConfig::default())).unwrap();
    let first = KeyRequest {
        email: "ann@example.com".to_owned(),
        name: String::new(),
        scopes: Scopes::ALL,
        expires_at: None,
    };
    let first = keys.new_key(first, &Origin::operator()).await.unwrap();
    let ann = keys.authenticate(first.key.expose(), "1".into()).unwrap();
    write(&db, |_| {
        Changes::none().put(&BROKEN_KEYS, "other".to_owned(), ())
    })
    .await;
    assert!(keys.list(None).is_err());
    keys.derive(&ann, String::new(), None, None).await.unwrap();
    assert_eq!(keys.list(Some(ann.user)).unwrap().len(), 2);
}

/// The limits of a user as they were until format 9, without the quantities of volumes.
const LIMITS_9: Table<UserId, (), [UserLimit; 6]> = Table::bounded(b'q', 0, "", "");
/// The limits of a user as they were until format 10, without the quantities of snapshots.
const LIMITS_10: Table<UserId, (), [UserLimit; 8]> = Table::bounded(b'q', 2, "", "");

#[tokio::test]
async fn limits_of_users_get_the_quantities_of_volumes_and_snapshots() {
    let nine = [
        UserLimit::At(3),
        UserLimit::Unlimited,
        UserLimit::Default,
        UserLimit::At(500),
        UserLimit::At(0),
        UserLimit::Unlimited,
    ];
    let [a, b, c, d, e, f] = nine;
    let (g, h) = (UserLimit::At(7), UserLimit::Unlimited);
    for format in [9, 10] {
        let file = TestDatabase::new();
        let db = file.open();
        write(&db, move |_| {
            let changes = Changes::none().put(&USERS, UserId(1), "ann@example.com".to_owned());
            if format == 9 {
                changes.put(&LIMITS_9, UserId(1), nine)
            } else {
                changes.put(&LIMITS_10, UserId(1), [a, b, c, d, e, f, g, h])
            }
        })
        .await;
        drop(db);
        file.set_format(format);
        let of_volumes = if format == 9 {
            Default::default()
        } else {
            (g, h)
        };
        for _ in 0..2 {
            let db = file.open();
            let limits = db.read(|rows| rows.get(&USER_LIMITS, UserId(1))).unwrap();
            let expected = Amounts {
                n_instances: a,
                n_vcpus: b,
                mem_gib: c,
                disk_size_gib: d,
                n_gpus: e,
                n_ports: f,
                n_volumes: of_volumes.0,
                volume_gib: of_volumes.1,
                ..Amounts::default()
            };
            assert_eq!(limits, Some(expected));
            assert_consistent(&db);
        }
    }
}
