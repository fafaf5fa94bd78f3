//! Creates, acknowledged once durable. The baseline is redb alone: each create is a durable
//! transaction with as many rows and bytes as Wharf's, in one table and with quick repair, as there.

use crate::Options;
use crate::data::Data;
use crate::load::{self, Load, Outcome};
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::Result;
use redb::{Database, TableDefinition};
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Rows of one create: instance, specification, claim, event, ledger entry, and five index entries.
/// The sizes in bytes are those of an instance of the flavor `base`.
const ROWS: [usize; 10] = [
    INSTANCE,
    SPECIFICATION,
    CLAIM,
    EVENT,
    ENTRY,
    INDEX,
    INDEX,
    INDEX,
    INDEX,
    INDEX,
];
const TABLE: TableDefinition<(u128, u8), &[u8]> = TableDefinition::new("rows");
const INSTANCE: usize = 185;
const SPECIFICATION: usize = 282;
const CLAIM: usize = 24;
const EVENT: usize = 29;
const ENTRY: usize = 44;
const INDEX: usize = 16;

/// Enough for the ports and addresses of all instances.
const NODES: usize = 10;
const USERS: usize = 10;
/// Pairs of runs.
const PAIRS: usize = 5;

/// Measures creates with 1 and 64 clients.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    let (singly, together) = if options.quick {
        (50, 200)
    } else {
        (3_000, 20_000)
    };
    for (clients, count, target) in [(1, singly, 0.3), (64, together, 2.0)] {
        let runs = Pairs::measure(
            PAIRS,
            || through_wharf(clients, count),
            || redb_alone(singly),
        )?;
        let (ours, baseline, ratio) = runs.median(Outcome::per_second)?;
        table.row(
            format!("POST, clients: {clients}"),
            (
                format!("{:.0}/s", ours.per_second()),
                format!("{:.0}/s, redb alone", baseline.per_second()),
            ),
            ratio,
            Target::AtLeast(target),
        );
    }
    Ok(())
}

fn through_wharf(clients: usize, count: usize) -> Result<Outcome> {
    let data = Data::make(NODES, USERS, 0)?;
    let wharf = Wharf::on(&data)?;
    let requests = data.keys.iter().map(|key| load::create(key));
    let load = Load {
        address: wharf.address()?,
        connections: clients,
        requests: Arc::new(requests.collect()),
        warm_up: count / 10,
        count,
        status: 201,
    };
    load.run()
}

fn redb_alone(count: usize) -> Result<Outcome> {
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let database = Database::create(dir.path().join("alone.redb"))?;
    let begin = Instant::now();
    for _ in 0..count {
        write(&database, Uuid::now_v7())?;
    }
    Ok(Outcome {
        count,
        whole: begin.elapsed(),
    })
}

fn write(database: &Database, id: Uuid) -> Result<()> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    let mut table = transaction.open_table(TABLE)?;
    for (kind, size) in (0..).zip(ROWS) {
        table.insert((id.as_u128(), kind), vec![b'x'; size].as_slice())?;
    }
    drop(table);
    transaction.commit()?;
    Ok(())
}
