//! Answers of the simulated engine.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use wharf_guest::{
    Complete, EngineAnswer, Error, Limits, Observed, ObservedSnapshot, ObservedVolume, Phase,
    Report, Shortage, SnapshotReport, SnapshotState, Tag, Usage, VolumeReport, VolumeState,
};

/// `GET /info`
#[derive(Debug, Deserialize)]
pub struct Info {
    /// The version, for display.
    pub version: String,
    /// Total vCPUs.
    pub n_vcpus: u32,
    /// Total RAM, in GiB.
    pub mem_gib: u32,
    /// Total disk space, in GiB.
    pub disk_size_gib: u32,
    /// All GPUs of the node.
    pub gpus: Vec<GpuInfo>,
    /// Whether a running machine can change its vCPUs and RAM.
    pub live_resize: bool,
    /// When the disk of an existing machine can grow: `no`, `stopped` or `running`.
    pub disk_grow: String,
    /// Changes after a restart that lost machines.
    pub boot_id: String,
    /// Whether it makes volumes.
    pub volumes: bool,
    /// Whether machines get and lose volumes after their creation.
    pub late_attach: bool,
    /// Whether the content of machines moves to and from other engines.
    pub content: bool,
    /// When it sends the content of volumes: `none`, `at_rest` or `at_any_time`.
    pub volume_content: String,
    /// How it takes snapshots: `none`, `shared` or `copied`.
    pub snapshots: String,
    /// Images that it does not have.
    pub missing_images: Vec<String>,
    /// Images that have no label of an SSH server.
    pub images_without_ssh: Vec<String>,
    /// Contents of images, by reference.
    pub image_contents: BTreeMap<String, String>,
}

/// One GPU.
#[derive(Debug, Deserialize)]
pub struct GpuInfo {
    /// The model.
    pub model: String,
    /// The device's name.
    pub device: String,
}

#[derive(Debug, Deserialize)]
struct State {
    phase: String,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    again_ms: Option<u32>,
}

/// Instance, then incarnation, phase and detail.
type Row = (String, (u64, String, Option<String>));

#[derive(Debug, Deserialize)]
struct Page {
    rows: Vec<Row>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct UsageInfo {
    cpu_ns: u64,
    at_ns: u64,
    mem_used_bytes: u64,
    disk_used_bytes: u64,
}

/// The body of a refusal. Every field is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
    field: String,
    retry_ms: u32,
    shortages: Vec<ShortageInfo>,
}

#[derive(Debug, Deserialize)]
struct ShortageInfo {
    field: String,
    requested: u64,
    available: u64,
}

/// Converts an answer to a report with this generation.
pub fn report(answer: &EngineAnswer, generation: u64) -> Result<Report, Error> {
    let state: State = body(answer)?;
    Ok(Report {
        generation,
        phase: phase(&state.phase, state.detail)?,
        again_ms: state.again_ms,
    })
}

/// A volume or a snapshot.
#[derive(Debug, Deserialize)]
struct DiskInfo {
    state: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    again_ms: Option<u32>,
    /// Of a snapshot.
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    clonable: bool,
    /// The machine, in the list of snapshots.
    #[serde(default)]
    instance: String,
    #[serde(default)]
    incarnation: u64,
}

impl DiskInfo {
    fn volume(self) -> Result<VolumeState, Error> {
        Ok(match self.state.as_str() {
            "absent" => VolumeState::Absent,
            "making" => VolumeState::Making(self.detail),
            "ready" => VolumeState::Ready,
            "in_use" => VolumeState::InUse,
            "failed" => VolumeState::Failed(self.detail),
            other => return Err(unknown(other)),
        })
    }

    fn snapshot(self) -> Result<SnapshotState, Error> {
        Ok(match self.state.as_str() {
            "absent" => SnapshotState::Absent,
            "making" => SnapshotState::Copying(self.detail),
            "ready" => SnapshotState::Ready(Complete {
                bytes: self.bytes,
                clonable: self.clonable,
            }),
            "in_use" => SnapshotState::InUse,
            "failed" => SnapshotState::Failed(self.detail),
            other => return Err(unknown(other)),
        })
    }
}

fn unknown(state: &str) -> Error {
    Error::Other(format!("the engine reported an unknown state {state:?}"))
}

/// Converts an answer to a report on a volume.
pub fn volume(answer: &EngineAnswer) -> Result<VolumeReport, Error> {
    let info: DiskInfo = body(answer)?;
    Ok(VolumeReport {
        again_ms: info.again_ms,
        state: info.volume()?,
    })
}

/// Converts an answer to a report on a snapshot.
pub fn snapshot(answer: &EngineAnswer) -> Result<SnapshotReport, Error> {
    let info: DiskInfo = body(answer)?;
    Ok(SnapshotReport {
        again_ms: info.again_ms,
        state: info.snapshot()?,
    })
}

/// Reads the list of snapshots.
pub fn snapshots(answer: &EngineAnswer) -> Result<Vec<ObservedSnapshot>, Error> {
    let rows: BTreeMap<String, DiskInfo> = body(answer)?;
    let rows = rows.into_iter().map(|(id, info)| {
        let instance = Tag {
            instance: info.instance.clone(),
            incarnation: info.incarnation,
        };
        let state = info.snapshot()?;
        Ok(ObservedSnapshot {
            id,
            instance,
            state,
        })
    });
    rows.collect()
}

/// Reads the list of volumes.
pub fn volumes(answer: &EngineAnswer) -> Result<Vec<ObservedVolume>, Error> {
    let rows: BTreeMap<String, DiskInfo> = body(answer)?;
    let rows = rows.into_iter().map(|(id, info)| {
        let state = info.volume()?;
        Ok(ObservedVolume { id, state })
    });
    rows.collect()
}

/// Reads the result of a proof: the sign of broken limits, or null.
pub fn limits(answer: &EngineAnswer) -> Result<Limits, Error> {
    let broken: Option<String> = body(answer)?;
    Ok(broken.map_or(Limits::Held, Limits::Broken))
}

/// Reads one page of a list, and the key of the next page.
pub fn list_page(answer: &EngineAnswer) -> Result<(Vec<Observed>, Option<String>), Error> {
    let page: Page = body(answer)?;
    let rows = page
        .rows
        .into_iter()
        .map(|(instance, (incarnation, name, detail))| {
            Ok(Observed {
                tag: Tag {
                    instance,
                    incarnation,
                },
                phase: phase(&name, detail)?,
            })
        })
        .collect::<Result<_, Error>>()?;
    Ok((rows, page.next))
}

/// Reads the usage of an instance.
pub fn usage(answer: &EngineAnswer) -> Result<Usage, Error> {
    let usage: UsageInfo = body(answer)?;
    Ok(Usage {
        cpu_ns: usage.cpu_ns,
        at_ns: usage.at_ns,
        mem_used_bytes: usage.mem_used_bytes,
        disk_used_bytes: usage.disk_used_bytes,
    })
}

/// Reads the mark of the store, which may be null.
pub fn mark(answer: &EngineAnswer) -> Result<Option<String>, Error> {
    body(answer)
}

/// Checks for a success and ignores the body.
pub fn accepted(answer: &EngineAnswer) -> Result<(), Error> {
    body::<serde::de::IgnoredAny>(answer).map(drop)
}

/// Parses the body of a success; any other status becomes its error.
pub fn body<T: DeserializeOwned>(answer: &EngineAnswer) -> Result<T, Error> {
    if answer.is_success() {
        return answer.json();
    }
    let refusal: Refusal = answer.json().unwrap_or_default();
    Err(match answer.status {
        404 => Error::NotFound,
        409 => Error::Conflict(refusal.message),
        422 => Error::invalid(&refusal.field, refusal.message),
        501 => Error::Unsupported(refusal.message),
        503 => Error::RetryLater(refusal.retry_ms),
        507 => Error::Insufficient(
            refusal
                .shortages
                .into_iter()
                .map(|s| Shortage {
                    field: s.field,
                    requested: s.requested,
                    available: s.available,
                })
                .collect(),
        ),
        status => Error::Other(format!("the engine answered {status}: {}", refusal.message)),
    })
}

fn phase(name: &str, detail: Option<String>) -> Result<Phase, Error> {
    Ok(match name {
        "absent" => Phase::Absent,
        "creating" => Phase::Creating,
        "booting" => Phase::Booting,
        "ready" => Phase::Ready,
        "stopped" => Phase::Stopped(detail),
        "growing" => Phase::Growing(detail.unwrap_or_default()),
        "failed" => Phase::Failed(detail.unwrap_or_default()),
        "elsewhere" => Phase::Elsewhere(detail.unwrap_or_default()),
        other => {
            return Err(Error::Other(format!(
                "the engine reported an unknown phase {other:?}"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, text: &str) -> EngineAnswer {
        EngineAnswer {
            headers: Vec::new(),
            status,
            body: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn states_become_phases() {
        let booting = report(&answer(200, r#"{"phase":"booting","again_ms":40}"#), 7).unwrap();
        assert_eq!((booting.generation, booting.again_ms), (7, Some(40)));
        assert!(matches!(booting.phase, Phase::Booting));
        assert!(report(&answer(200, r#"{"phase":"dancing"}"#), 7).is_err());
    }

    #[test]
    fn statuses_become_errors() {
        let error = |status, text: &str| report(&answer(status, text), 0).unwrap_err();
        assert!(matches!(error(404, ""), Error::NotFound));
        assert!(matches!(
            error(503, r#"{"retry_ms":5}"#),
            Error::RetryLater(5)
        ));
        let short = r#"{"shortages":[{"field":"mem_gib","requested":4,"available":1}]}"#;
        assert!(matches!(error(507, short), Error::Insufficient(list) if list.len() == 1));
        assert!(matches!(error(500, "not json"), Error::Other(_)));
    }
}
