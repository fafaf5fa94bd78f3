//! Snapshots, restores, and instances that are made from snapshots.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use wharf_domain::driver::{
    CompleteSnapshot, Phase, PluginError, SnapshotKind, SnapshotReport, SnapshotState, Source, Spec,
};
use wharf_domain::ids::SnapshotId;

/// Times at which a call is cut off.
const CUTS_MS: [u64; 3] = [5, 60, 250];

/// For drivers and nodes without snapshots.
const NONE: Verdict = Verdict::NotApplicable("probe: no snapshots");

fn are_taken(subject: &Subject) -> bool {
    subject.health.features.snapshots != SnapshotKind::None
}

pub async fn taken(subject: &Subject) -> Result<Verdict> {
    let (spec, of) = up(subject).await?;
    if !are_taken(subject) {
        let answer = take_once(subject, &spec, of).await;
        let clear = matches!(answer, Err(PluginError::Unsupported(_)));
        ensure!(clear, "take without the feature: {answer:?}");
        subject.remove(&spec.target).await?;
        return Ok(NONE);
    }
    let first = take(subject, &spec, of).await?;
    ensure!(first.bytes > 0, "a snapshot without data");
    let again = take(subject, &spec, of).await?;
    ensure!(again == first, "first {first:?}, and then {again:?}");
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(phase == Phase::Ready, "{phase:?} after a snapshot");
    subject.stop(&spec.target).await?;
    let second = new(&spec);
    take(subject, &spec, second).await?;
    let mut listed = subject.driver().list_snapshots().await?;
    listed.retain(|row| row.instance == spec.target.tag);
    let has = |of: Source| listed.iter().any(|row| row.snapshot == of.snapshot);
    let both = listed.len() == 2 && has(of) && has(second);
    ensure!(both, "two snapshots exist, and the list has {listed:?}");
    let others = subject.drivers.other.list_snapshots().await?;
    ensure!(others.is_empty(), "another installation lists {others:?}");
    let instances = subject.listed().await?;
    ensure!(
        instances.len() == 1,
        "one instance, and list has {instances:?}"
    );
    for of in [of, of, second] {
        dropped(subject, of).await?;
    }
    subject.remove(&spec.target).await?;
    let absent = take_once(subject, &spec, new(&spec)).await;
    let refused = !matches!(&absent, Ok(report) if matches!(report.state, SnapshotState::Ready(_)));
    ensure!(refused, "of an absent instance: {absent:?}");
    nothing_is_left(subject).await
}

pub async fn restored(subject: &Subject) -> Result<Verdict> {
    if !are_taken(subject) {
        return Ok(NONE);
    }
    let (spec, of) = up(subject).await?;
    take(subject, &spec, of).await?;
    for _ in 0..2 {
        subject.stop(&spec.target).await?;
        restore(subject, &spec, of).await?;
        restore(subject, &spec, of).await?;
        start(subject, &spec).await?;
        // It is there for the next restore.
        take(subject, &spec, of).await?;
    }
    let unknown = subject.restore(&spec, new(&spec).snapshot).await;
    let running = subject.restore(&spec, of.snapshot).await;
    let phase = subject.phase(spec.target.tag).await?;
    let is_up = phase == Phase::Ready;
    ensure!(is_up, "{phase:?} after {unknown:?} and {running:?}");
    subject.remove(&spec.target).await?;
    dropped(subject, of).await?;
    nothing_is_left(subject).await
}

pub async fn sent(subject: &Subject) -> Result<Verdict> {
    let send = async |of| subject.driver().send_content(of).await;
    let unknown = new(&subject.spec()?);
    if !are_taken(subject) || !subject.health.features.content {
        let answer = send(unknown).await;
        let clear = matches!(answer, Err(PluginError::Unsupported(_)));
        ensure!(clear || is_absent(&answer), "{answer:?}");
        return Ok(NONE);
    }
    let (spec, of) = up(subject).await?;
    take(subject, &spec, of).await?;
    let absent = send(unknown).await;
    ensure!(is_absent(&absent), "of an absent one: {absent:?}");
    let begin = Instant::now();
    loop {
        match send(of).await {
            Err(PluginError::RetryLater(_)) => break,
            Ok(SnapshotReport {
                state: SnapshotState::Making(_),
                again,
            }) => tokio::time::sleep(again.unwrap_or_default()).await,
            other => bail!("the host takes nothing: {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "it does not end, and the host takes nothing");
    }
    let listed = subject.listed().await?;
    ensure!(listed.len() == 1, "one is there, and list has {listed:?}");
    dropped(subject, of).await?;
    let gone = send(of).await;
    ensure!(is_absent(&gone), "of one that was removed: {gone:?}");
    subject.remove(&spec.target).await?;
    nothing_is_left(subject).await
}

fn is_absent(answer: &Result<SnapshotReport, PluginError>) -> bool {
    matches!(answer, Ok(report) if report.state == SnapshotState::Absent)
}

pub async fn cloned(subject: &Subject) -> Result<Verdict> {
    if !are_taken(subject) {
        return Ok(NONE);
    }
    let (spec, of) = up(subject).await?;
    let complete = take(subject, &spec, of).await?;
    let mut clone = subject.spec()?;
    clone.source = Some(of);
    if !complete.clonable {
        let made = subject.ensure(&clone).await?;
        let failed = matches!(made.phase, Phase::Failed(_));
        ensure!(failed, "a clone of one without clones: {made:?}");
        subject.remove(&spec.target).await?;
        dropped(subject, of).await?;
        return Ok(Verdict::NotApplicable(
            "the image's instances have no clones",
        ));
    }
    let mut gone = clone.clone();
    gone.source = Some(new(&spec));
    let made = subject.ensure(&gone).await;
    let refused =
        !matches!(&made, Ok(report) if matches!(report.phase, Phase::Ready | Phase::Booting));
    ensure!(refused, "a clone of nothing: {made:?}");
    subject.remove(&gone.target).await?;
    subject.bring_up(&clone).await?;
    clone.may_exist = true;
    let again = subject.ensure(&clone).await?;
    ensure!(again.phase == Phase::Ready, "ensure again: {again:?}");
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(phase == Phase::Ready, "its source is {phase:?}");
    // A snapshot may be needed for the clone, and the clone does not need its source.
    let needed = drop_once(subject, of).await?.state;
    subject.remove(&spec.target).await?;
    subject.stop(&clone.target).await?;
    start(subject, &clone).await?;
    match needed {
        SnapshotState::InUse | SnapshotState::Absent => {}
        other => bail!("drop reported {other:?}"),
    }
    subject.remove(&clone.target).await?;
    dropped(subject, of).await?;
    nothing_is_left(subject).await
}

pub async fn interrupted(subject: &Subject) -> Result<Verdict> {
    if !are_taken(subject) {
        return Ok(NONE);
    }
    let driver = subject.driver();
    for cut in CUTS_MS.map(Duration::from_millis) {
        let (spec, of) = up(subject).await?;
        let take_it = driver.take_snapshot(&spec.target, of.snapshot);
        let _ = tokio::time::timeout(cut, take_it).await;
        let complete = take(subject, &spec, of).await.context("after a cut take")?;
        subject.stop(&spec.target).await?;
        let _ = tokio::time::timeout(cut, subject.restore(&spec, of.snapshot)).await;
        restore(subject, &spec, of)
            .await
            .context("after a cut restore")?;
        start(subject, &spec).await?;
        if complete.clonable {
            let mut clone = subject.spec()?;
            clone.source = Some(of);
            let _ = tokio::time::timeout(cut, subject.ensure(&clone)).await;
            clone.may_exist = true;
            subject
                .bring_up(&clone)
                .await
                .context("after a cut clone")?;
            subject.remove(&clone.target).await?;
        }
        subject.remove(&spec.target).await?;
        let _ = tokio::time::timeout(cut, driver.drop_snapshot(of)).await;
        dropped(subject, of).await?;
    }
    nothing_is_left(subject).await
}

/// A new instance that is ready, and a snapshot of it to take.
async fn up(subject: &Subject) -> Result<(Spec, Source)> {
    let mut spec = subject.up().await?;
    spec.may_exist = true;
    let of = new(&spec);
    Ok((spec, of))
}

fn new(spec: &Spec) -> Source {
    Source {
        snapshot: SnapshotId(uuid::Uuid::new_v4()),
        instance: spec.target.tag,
    }
}

async fn take_once(
    subject: &Subject,
    spec: &Spec,
    of: Source,
) -> Result<SnapshotReport, PluginError> {
    let take = async || {
        subject
            .driver()
            .take_snapshot(&spec.target, of.snapshot)
            .await
    };
    subject.retried(take).await
}

/// Calls `take` until the snapshot is ready.
async fn take(subject: &Subject, spec: &Spec, of: Source) -> Result<CompleteSnapshot> {
    let begin = Instant::now();
    loop {
        let report = take_once(subject, spec, of).await.context("take")?;
        match report.state {
            SnapshotState::Ready(complete) => return Ok(complete),
            SnapshotState::Making(_) => {}
            other => bail!("take reported {other:?}"),
        }
        let phase = subject.phase(spec.target.tag).await?;
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(
            left,
            "take still reports {report:?}, of an instance that is {phase:?}"
        );
        tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
    }
}

/// Calls `restore` until the instance is stopped.
async fn restore(subject: &Subject, spec: &Spec, of: Source) -> Result<()> {
    let begin = Instant::now();
    loop {
        let report = subject
            .restore(spec, of.snapshot)
            .await
            .context("restore")?;
        ensure!(report.generation == spec.target.generation, "{report:?}");
        match report.phase {
            Phase::Stopped(_) => return Ok(()),
            Phase::Growing(_) => {}
            other => bail!("restore reported {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "restore still reports {:?}", report.phase);
        tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
    }
}

/// Starts an instance, and waits until it is up.
async fn start(subject: &Subject, spec: &Spec) -> Result<()> {
    subject.start(&spec.target).await.context("start")?;
    let up = |phase: &Phase| *phase == Phase::Ready;
    subject.wait_for(spec.target.tag, up).await
}

async fn drop_once(subject: &Subject, of: Source) -> Result<SnapshotReport> {
    let drop_it = async || subject.driver().drop_snapshot(of).await;
    subject.retried(drop_it).await.context("drop")
}

/// Calls `drop` until the snapshot is absent.
async fn dropped(subject: &Subject, of: Source) -> Result<()> {
    let begin = Instant::now();
    loop {
        let report = drop_once(subject, of).await?;
        match report.state {
            SnapshotState::Absent => return Ok(()),
            SnapshotState::Making(_) => {}
            other => bail!("drop reported {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "drop still reports {report:?}");
        tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
    }
}

async fn nothing_is_left(subject: &Subject) -> Result<Verdict> {
    let left = subject.driver().list_snapshots().await?;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(Verdict::Kept)
}
