//! Volumes.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use wharf_domain::driver::{
    Limits, Mount, NewVolume, Phase, PluginError, Spec, VolumeContent, VolumeReport, VolumeState,
};
use wharf_domain::ids::VolumeId;

/// The size of a volume.
const SIZE_GIB: u32 = 1;
/// Times at which a call is cut off.
const CUTS_MS: [u64; 4] = [1, 20, 80, 250];

/// For drivers and nodes without volumes.
const NONE: Verdict = Verdict::NotApplicable("probe: no volumes");

pub async fn made(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.volumes {
        let answer = make_once(subject, new_id(), SIZE_GIB).await;
        let clear = matches!(answer, Err(PluginError::Unsupported(_)));
        ensure!(clear, "make without the feature: {answer:?}");
        return Ok(NONE);
    }
    let id = new_id();
    make(subject, id).await?;
    make(subject, id).await?;
    match make_once(subject, id, SIZE_GIB + 1).await {
        Err(PluginError::Conflict(_)) => {}
        answer => bail!("make with another size: {answer:?}"),
    }
    let listed = subject.driver().list_volumes().await?;
    let is_it = |state: &VolumeState| *state == VolumeState::Ready(());
    let only = matches!(listed.as_slice(), [one] if one.volume == id && is_it(&one.state));
    ensure!(only, "one volume exists, and the list has {listed:?}");
    let others = subject.drivers.other.list_volumes().await?;
    ensure!(others.is_empty(), "another installation lists {others:?}");
    let instances = subject.listed().await?;
    ensure!(instances.is_empty(), "a volume is listed as {instances:?}");
    for _ in 0..2 {
        unmake(subject, id, &VolumeState::Absent).await?;
    }
    nothing_is_left(subject).await
}

pub async fn kept(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.volumes {
        return Ok(NONE);
    }
    let (read, written) = (new_id(), new_id());
    for id in [read, written] {
        make(subject, id).await?;
    }
    let mut writer = with(subject.spec()?, &[(read, true), (written, false)]);
    let reader = with(subject.spec()?, &[(read, true)]);
    for spec in [&writer, &reader] {
        subject.bring_up(spec).await?;
    }
    writer.may_exist = true;
    let again = subject.ensure(&writer).await?;
    ensure!(again.phase == Phase::Ready, "ensure again: {again:?}");
    unmake(subject, written, &VolumeState::InUse).await?;
    subject.stop(&writer.target).await?;
    unmake(subject, written, &VolumeState::InUse).await?;
    subject.start(&writer.target).await?;
    let up = |phase: &Phase| *phase == Phase::Ready;
    subject.wait_for(writer.target.tag, up).await?;
    subject.remove(&writer.target).await?;
    make(subject, written).await?;
    unmake(subject, read, &VolumeState::InUse).await?;
    unmake(subject, written, &VolumeState::Absent).await?;
    subject.remove(&reader.target).await?;
    let mut orphan = with(subject.spec()?, &[(written, false)]);
    orphan.may_exist = false;
    let without = subject.ensure(&orphan).await;
    let refused = match &without {
        Ok(report) => matches!(report.phase, Phase::Failed(_)),
        Err(_) => true,
    };
    ensure!(refused, "ensure with a volume that is gone: {without:?}");
    subject.remove(&orphan.target).await?;
    unmake(subject, read, &VolumeState::Absent).await?;
    nothing_is_left(subject).await
}

pub async fn late(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.volumes {
        return Ok(NONE);
    }
    let id = new_id();
    make(subject, id).await?;
    let mut spec = subject.up().await?;
    let with_it = with(spec.clone(), &[(id, false)]).target;
    let set = async || subject.driver().set_volumes(&with_it).await;
    if !subject.health.features.late_attach {
        let answer = subject.retried(set).await;
        let clear = matches!(answer, Err(PluginError::Unsupported(_)));
        ensure!(clear, "set-volumes without the feature: {answer:?}");
        subject.remove(&spec.target).await?;
        unmake(subject, id, &VolumeState::Absent).await?;
        return Ok(Verdict::NotApplicable("probe: no late attachment"));
    }
    for _ in 0..2 {
        subject.retried(set).await?;
    }
    unmake(subject, id, &VolumeState::InUse).await?;
    subject.stop(&with_it).await?;
    unmake(subject, id, &VolumeState::InUse).await?;
    subject.start(&with_it).await?;
    let up = |phase: &Phase| *phase == Phase::Ready;
    subject.wait_for(with_it.tag, up).await?;
    let take = async || subject.driver().set_volumes(&spec.target).await;
    for _ in 0..2 {
        subject.retried(take).await?;
    }
    unmake(subject, id, &VolumeState::Absent).await?;
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(phase == Phase::Ready, "{phase:?} after the changes");
    spec.may_exist = true;
    subject.remove(&spec.target).await?;
    nothing_is_left(subject).await
}

pub async fn interrupted(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.volumes {
        return Ok(NONE);
    }
    let driver = subject.driver();
    for cut in CUTS_MS.map(Duration::from_millis) {
        let id = new_id();
        let _ = tokio::time::timeout(cut, make_once(subject, id, SIZE_GIB)).await;
        make(subject, id).await.context("after a cut make")?;
        let _ = tokio::time::timeout(cut, driver.unmake_volume(id)).await;
        unmake(subject, id, &VolumeState::Absent).await?;
    }
    nothing_is_left(subject).await
}

pub async fn proven(subject: &Subject) -> Result<Verdict> {
    let (id, images) = (new_id(), [subject.sample.image.clone()]);
    let prove = async || subject.driver().prove_limits(id, &images).await;
    for cut in CUTS_MS.map(Duration::from_millis) {
        let _ = tokio::time::timeout(cut, prove()).await;
        match subject.retried(prove).await {
            Ok(Limits::Held) => {}
            Err(PluginError::Unsupported(_)) => return Ok(NONE),
            proven => bail!("prove-limits reported {proven:?}"),
        }
    }
    let instances = subject.listed().await?;
    ensure!(instances.is_empty(), "left: {instances:?}");
    nothing_is_left(subject).await
}

pub async fn content(subject: &Subject) -> Result<Verdict> {
    let driver = subject.driver();
    let unknown = driver.send_volume(new_id()).await;
    let is_absent = matches!(&unknown, Ok(report) if report.state == VolumeState::Absent);
    if subject.health.features.volume_content == VolumeContent::Never {
        let clear = matches!(unknown, Err(PluginError::Unsupported(_)));
        ensure!(clear || is_absent, "of an absent one: {unknown:?}");
        return Ok(NONE);
    }
    ensure!(is_absent, "of an absent one: {unknown:?}");
    let id = new_id();
    make(subject, id).await?;
    until_nothing_takes(subject, async || driver.send_volume(id).await).await?;
    make(subject, id).await.context("after it was sent")?;
    unmake(subject, id, &VolumeState::Absent).await?;
    let images = [subject.sample.image.clone()];
    let fetched = NewVolume {
        id: new_id(),
        size_gib: SIZE_GIB,
        fetched: true,
    };
    let make = async || driver.make_volume(&fetched, &images).await;
    for _ in 0..2 {
        until_nothing_takes(subject, make).await?;
    }
    unmake(subject, fetched.id, &VolumeState::Absent).await?;
    nothing_is_left(subject).await
}

/// Calls a driver until it has no other end for a transfer: the host takes and offers nothing.
async fn until_nothing_takes(
    subject: &Subject,
    call: impl AsyncFn() -> Result<VolumeReport, PluginError>,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        match call().await {
            Err(PluginError::RetryLater(_)) => return Ok(()),
            Ok(VolumeReport {
                state: VolumeState::Making(_),
                again,
            }) => tokio::time::sleep(again.unwrap_or_default()).await,
            other => bail!("the host takes and offers nothing: {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(
            left,
            "it does not end, and the host takes and offers nothing"
        );
    }
}

fn new_id() -> VolumeId {
    VolumeId(uuid::Uuid::new_v4())
}

/// The specification with these volumes, and whether each is read only.
fn with(mut spec: Spec, volumes: &[(VolumeId, bool)]) -> Spec {
    let mounts = volumes.iter().enumerate();
    spec.target.volumes = mounts
        .map(|(n, (volume, read_only))| Mount {
            volume: *volume,
            path: format!("/mnt/volume-{n}"),
            read_only: *read_only,
        })
        .collect();
    spec
}

async fn make_once(
    subject: &Subject,
    id: VolumeId,
    size_gib: u32,
) -> Result<VolumeReport, PluginError> {
    let images = [subject.sample.image.clone()];
    let volume = NewVolume {
        id,
        size_gib,
        fetched: false,
    };
    let make = async || subject.driver().make_volume(&volume, &images).await;
    subject.retried(make).await
}

/// Calls `make` until the volume is ready.
async fn make(subject: &Subject, id: VolumeId) -> Result<()> {
    let begin = Instant::now();
    loop {
        let report = make_once(subject, id, SIZE_GIB).await.context("make")?;
        match report.state {
            VolumeState::Ready(()) => return Ok(()),
            VolumeState::Making(_) => {}
            other => bail!("make reported {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "make still reports {:?}", report.state);
        tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
    }
}

async fn unmake(subject: &Subject, id: VolumeId, wanted: &VolumeState) -> Result<()> {
    let unmake = async || subject.driver().unmake_volume(id).await;
    let report = subject.retried(unmake).await.context("unmake")?;
    ensure!(report.state == *wanted, "unmake reported {report:?}");
    Ok(())
}

async fn nothing_is_left(subject: &Subject) -> Result<Verdict> {
    let left = subject.driver().list_volumes().await?;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(Verdict::Kept)
}
