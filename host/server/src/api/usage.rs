//! `GET /api/usage/`: the caller's costs by month and instance.

use super::wire::usd;
use super::{Api, EndpointReply, EndpointResult, TIME, render};
use serde::Serialize;
use std::borrow::Cow;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::kept::KeptStatus;
use wharf_domain::month::Month;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;
use wharf_instances::{CorrectionLine, KeptUsage};

/// A plus sign in a query is a space.
const PLUS: &str = "must have a plus sign as %2B, such as 2027-01-01T00:00:00%2B01:00";

/// Approximate bytes of one instance.
const INSTANCE_BYTES: usize = 256;

/// The time span of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Span {
    /// Reads the query parameters. Unknown parameters are ignored.
    pub fn parse<'a>(
        query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Self, FieldErrors> {
        let (mut span, mut errors) = (Self::default(), FieldErrors::default());
        for (name, value) in query {
            let end = match &*name {
                "from" => &mut span.from,
                "to" => &mut span.to,
                _ => continue,
            };
            match Timestamp::parse(&value) {
                Some(_) if end.is_some() => errors.add(&name, "must be given once"),
                Some(at) => *end = Some(at),
                None if Timestamp::parse(&value.replace(' ', "+")).is_some() => {
                    errors.add(&name, PLUS);
                }
                None => errors.add(&name, TIME),
            }
        }
        errors.into_result()?;
        Ok(span)
    }
}

#[derive(Serialize)]
struct UsageWire {
    from: String,
    to: String,
    total_usd: f64,
    hourly_usd: f64,
    months: Vec<InMonth>,
    instances: Vec<InstanceUsageWire>,
    volumes: Vec<KeptUsageWire>,
    snapshots: Vec<KeptUsageWire>,
}

#[derive(Serialize)]
struct KeptUsageWire {
    id: uuid::Uuid,
    name: String,
    /// Of a snapshot: absent in a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<Option<uuid::Uuid>>,
    size_gib: u32,
    state: &'static str,
    total_usd: f64,
    hourly_usd: f64,
    months: Vec<InMonth>,
    corrections: Vec<CorrectionWire>,
}

#[derive(Serialize)]
struct InMonth {
    month: String,
    total_usd: f64,
}

#[derive(Serialize)]
struct InstanceUsageWire {
    uuid: uuid::Uuid,
    name: Option<String>,
    flavor: Option<String>,
    n_vcpus: Option<u32>,
    mem_gib: Option<u32>,
    disk_size_gib: Option<u32>,
    state: &'static str,
    total_usd: f64,
    hourly_usd: f64,
    months: Vec<InMonth>,
    corrections: Vec<CorrectionWire>,
}

#[derive(Serialize)]
struct CorrectionWire {
    at: String,
    usd: f64,
    reason: String,
}

/// The caller's costs. It computes for long if there are many instances.
pub fn run(api: &Api, caller: &Caller, span: Span) -> EndpointResult {
    let usage = api.app.usage_in(caller, span.from, span.to)?;
    let hourly = |nano: u128| i128::try_from(nano).map(usd).map_err(Error::internal);
    let instances = usage.instances.into_iter().map(|instance| {
        Ok(InstanceUsageWire {
            uuid: instance.id.0,
            name: instance.name,
            flavor: instance.flavor,
            n_vcpus: instance.size.map(|size| size.n_vcpus),
            mem_gib: instance.size.map(|size| size.mem_gib),
            disk_size_gib: instance.size.map(|size| size.disk_size_gib),
            state: instance.state.as_str(),
            total_usd: usd(instance.nano_usd),
            hourly_usd: hourly(instance.hourly)?,
            months: instance.months.into_iter().map(in_month).collect(),
            corrections: instance.corrections.into_iter().map(correction).collect(),
        })
    });
    let kept = |kept: KeptUsage, is_snapshot: bool| {
        Ok(KeptUsageWire {
            id: kept.id.0,
            name: kept.name,
            instance: is_snapshot.then(|| kept.instance.map(|id| id.0)),
            size_gib: kept.size_gib,
            state: kept.status.map_or("deleted", KeptStatus::as_str),
            total_usd: usd(kept.nano_usd),
            hourly_usd: hourly(kept.hourly)?,
            months: kept.months.into_iter().map(in_month).collect(),
            corrections: kept.corrections.into_iter().map(correction).collect(),
        })
    };
    let volumes = usage.volumes.into_iter().map(|one| kept(one, false));
    let snapshots = usage.snapshots.into_iter().map(|one| kept(one, true));
    let wire = UsageWire {
        from: usage.from.to_rfc3339(),
        to: usage.to.to_rfc3339(),
        total_usd: usd(usage.nano_usd),
        hourly_usd: hourly(usage.hourly)?,
        months: usage.months.into_iter().map(in_month).collect(),
        instances: instances.collect::<Result<_, Error>>()?,
        volumes: volumes.collect::<Result<_, Error>>()?,
        snapshots: snapshots.collect::<Result<_, Error>>()?,
    };
    let rows = wire.instances.len() + wire.volumes.len() + wire.snapshots.len();
    let bytes = INSTANCE_BYTES * (rows + 1);
    Ok(EndpointReply::Done(render(&wire, bytes)?))
}

fn in_month((month, nano_usd): (Month, i128)) -> InMonth {
    InMonth {
        month: month.to_string(),
        total_usd: usd(nano_usd),
    }
}

fn correction(line: CorrectionLine) -> CorrectionWire {
    CorrectionWire {
        at: line.at.to_rfc3339(),
        usd: usd(line.nano_usd),
        reason: line.reason,
    }
}
