//! Creating: accepted for good. Beside the database alone, one durable transaction for each create.

use crate::Options;
use crate::data::Data;
use crate::load::{self, Load, Outcome};
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Curve, Reach, Table};
use anyhow::{Context, Result};
use redb::{Database, ReadableDatabase, TableDefinition};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

type Rows<K> = TableDefinition<'static, K, &'static [u8]>;

const ROWS: Rows<&[u8]> = Rows::new("rows");

const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const INSTANCES: Rows<u128> = Rows::new("instances");
const DETAILS: Rows<u128> = Rows::new("details");
const CLAIMS: Rows<u128> = Rows::new("claims");
const NAMES: TableDefinition<&str, u128> = TableDefinition::new("names");
const OWNED: TableDefinition<(u64, u64), u128> = TableDefinition::new("owned");
const ON_NODE: TableDefinition<(&str, u128), ()> = TableDefinition::new("on_node");
const PENDING: TableDefinition<u128, ()> = TableDefinition::new("pending");
const EVENTS: Rows<(u128, u32)> = Rows::new("events");
const LEDGER: Rows<(u128, u32)> = Rows::new("ledger");

/// Enough for the ports of all, and for everyone's addresses.
const NODES: usize = 10;
const USERS: usize = 10;
/// Pairs of runs.
const TURNS: usize = 3;

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let (singly, together) = if options.quick {
        (50, 200)
    } else {
        (3_000, 20_000)
    };
    // The same rows as Wharf writes, from a database that it wrote.
    let rows = rows_of(&Data::of_size(1, singly)?)?;
    let clients: &[usize] = if options.quick {
        &[1, 64]
    } else {
        &[1, 4, 16, 64, 256]
    };
    let (mut rates, mut floors) = (Vec::new(), Vec::new());
    for clients in clients {
        let count = if *clients == 1 { singly } else { together };
        let runs = Pairs::measure(
            TURNS,
            || through_wharf(*clients, count, None),
            || alone(&rows),
        )?;
        let (ours, floor, _) = runs.middle(Outcome::per_second)?;
        rates.push((*clients as f64, ours.per_second()));
        floors.push((*clients as f64, floor.per_second()));
        report(table, *clients, &runs)?;
    }
    in_good_time(table, together, &rows)?;
    table.curve(Curve {
        name: "create".to_owned(),
        size: "clients".to_owned(),
        unit: "creates in a second".to_owned(),
        lines: vec![
            ("Wharf".to_owned(), rates),
            ("the database alone, one by one".to_owned(), floors),
        ],
        why: "One client waits for a commit of its own. More of them share commits, and each create adds \
              its rows only, until the cores are busy.",
    });
    Ok(())
}

fn report(table: &mut Table, clients: usize, runs: &Pairs<Outcome>) -> Result<()> {
    let reach = match clients {
        1 => 0.7,
        64 => 3.0,
        _ => return Ok(()),
    };
    let (ours, floor, ratio) = runs.middle(Outcome::per_second)?;
    table.row(
        format!("POST create accepted, {clients} clients"),
        (
            format!("{:.0}/s", ours.per_second()),
            format!("{:.0}/s, redb alone", floor.per_second()),
        ),
        ratio,
        Reach::AtLeast(reach),
    );
    if clients == 64 {
        let p99 = |run: &Outcome| run.percentile_ms(0.99);
        let (ours, floor, ratio) = runs.middle_of(p99, Outcome::median_ms)?;
        let (p99, one) = (p99(ours), floor.median_ms());
        table.row(
            format!("POST create accepted, {clients} clients: p99"),
            (format!("{p99:.1} ms"), format!("{one:.2} ms, one commit")),
            ratio,
            Reach::AtMost(10.0),
        );
    }
    Ok(())
}

/// How long the slowest wait at the rate that 64 clients are to reach. As fast as they can, 64 clients
/// wait for the machine whatever it does: at that rate they would for 21 commits in the middle.
fn in_good_time(table: &mut Table, count: usize, rows: &[Create]) -> Result<()> {
    const TIMES: f64 = 3.0;
    let rate = TIMES * alone(rows)?.per_second();
    let paced = || through_wharf(64, count, Some(rate));
    let runs = Pairs::measure(TURNS, paced, || alone(rows))?;
    let p99 = |run: &Outcome| run.percentile_ms(0.99);
    let (ours, floor, ratio) = runs.middle_of(p99, Outcome::median_ms)?;
    table.row(
        format!("POST create accepted, 64 clients at {TIMES} × redb alone: p99"),
        (
            format!("{:.1} ms at {:.0}/s", p99(ours), ours.per_second()),
            format!("{:.2} ms, one commit", floor.median_ms()),
        ),
        ratio,
        Reach::AtMost(10.0),
    );
    Ok(())
}

fn through_wharf(clients: usize, count: usize, rate: Option<f64>) -> Result<Outcome> {
    let data = Data::make(NODES, USERS, 0)?;
    let wharf = Wharf::on(&data)?;
    let requests = data.keys.iter();
    let requests = requests.map(|key| load::create(key));
    let load = Load {
        address: wharf.address()?,
        connections: clients,
        requests: Arc::new(requests.collect()),
        warm_up: count / 10,
        count,
        rate,
        status: 201,
    };
    load.run()
}

/// What one create writes.
#[derive(Default)]
struct Create {
    id: u128,
    instance: Vec<u8>,
    detail: Vec<u8>,
    claim: Vec<u8>,
    event: Vec<u8>,
    entry: Vec<u8>,
}

/// All creates of a database. Its rows are in one tree: those of an instance have its id and their
/// kind in the key, a claim has the id at the end of its key.
fn rows_of(data: &Data) -> Result<Vec<Create>> {
    let database = Database::open(data.database())?;
    let tree = database.begin_read()?.open_table(ROWS)?;
    let mut creates: BTreeMap<u128, Create> = BTreeMap::new();
    for row in tree.range(&b"c"[..]..&b"j"[..])? {
        let (key, value) = row?;
        let (group, key) = key.value().split_first().context("an empty key")?;
        let (id, kind) = match group {
            b'c' => (key.last_chunk(), None),
            b'i' => (key.first_chunk(), key.get(16)),
            _ => continue,
        };
        let id = u128::from_be_bytes(*id.context("a short key")?);
        let create = creates.entry(id).or_default();
        let of_kind = match kind {
            None => &mut create.claim,
            Some(0) => &mut create.instance,
            Some(1) => &mut create.detail,
            Some(2) => &mut create.event,
            Some(_) => &mut create.entry,
        };
        *of_kind = value.value().to_vec();
        create.id = id;
    }
    Ok(creates.into_values().collect())
}

/// Each in a durable transaction of its own.
fn alone(rows: &[Create]) -> Result<Outcome> {
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let database = Database::create(dir.path().join("alone.redb"))?;
    let begin = Instant::now();
    let mut times = Vec::with_capacity(rows.len());
    for (n, row) in rows.iter().enumerate() {
        let start = Instant::now();
        write(&database, n as u64, row)?;
        times.push(start.elapsed());
    }
    Ok(Outcome::new(times, begin.elapsed()))
}

fn write(database: &Database, n: u64, row: &Create) -> Result<()> {
    let name = format!("calm-harbor-{n}");
    let txn = database.begin_write()?;
    txn.open_table(META)?.insert("next_seq", n)?;
    txn.open_table(NAMES)?.insert(name.as_str(), row.id)?;
    txn.open_table(CLAIMS)?
        .insert(row.id, row.claim.as_slice())?;
    txn.open_table(ON_NODE)?.insert(("n00000", row.id), ())?;
    txn.open_table(DETAILS)?
        .insert(row.id, row.detail.as_slice())?;
    txn.open_table(EVENTS)?
        .insert((row.id, 0), row.event.as_slice())?;
    txn.open_table(LEDGER)?
        .insert((row.id, 0), row.entry.as_slice())?;
    txn.open_table(INSTANCES)?
        .insert(row.id, row.instance.as_slice())?;
    txn.open_table(OWNED)?.insert((1, n), row.id)?;
    txn.open_table(PENDING)?.insert(row.id, ())?;
    txn.commit()?;
    Ok(())
}
