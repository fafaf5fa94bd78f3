//! Moves of content between nodes without a common cluster, as far as one node shows them.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Result, bail, ensure};
use std::time::{Duration, Instant};
use wharf_domain::driver::{DriverReport, DriverTarget, Phase, PluginError, Spec};

pub async fn offered(subject: &Subject) -> Result<Verdict> {
    let driver = subject.driver();
    let unknown = subject.spec()?;
    if !driver.has_content() {
        let answers = [
            driver.offer_content(&unknown.target).await,
            driver.fetch_content(&unknown).await,
        ];
        for answer in answers {
            let clear = matches!(answer, Err(PluginError::Unsupported(_)));
            ensure!(clear, "without the interface: {answer:?}");
        }
        return Ok(Verdict::Kept);
    }
    let absent = offer(subject, &unknown.target).await;
    ensure!(absent.is_err(), "of an absent one: {absent:?}");
    if !subject.health.features.content {
        return Ok(Verdict::Kept);
    }
    let clear = matches!(absent, Err(PluginError::NotFound));
    ensure!(clear, "of an absent one: {absent:?}");
    unoffered(subject, &unknown).await?;

    let mut spec = subject.up().await?;
    spec.may_exist = true;
    let tag = spec.target.tag;
    let running = offer(subject, &spec.target).await?;
    ensure!(
        running.phase == Phase::Ready,
        "of a running one: {running:?}"
    );
    let phase = subject.phase(tag).await?;
    ensure!(phase == Phase::Ready, "{phase:?} after an offer");
    subject.stop(&spec.target).await?;
    for _ in 0..2 {
        let stopped = offer(subject, &spec.target).await?;
        let is_stopped = matches!(stopped.phase, Phase::Stopped(_));
        ensure!(is_stopped, "of a stopped one: {stopped:?}");
        ensure!(stopped.generation == spec.target.generation, "{stopped:?}");
    }
    // The answer to the last fetch of a complete copy may have been lost.
    let fetch = async || driver.fetch_content(&spec).await;
    let there = subject.retried(fetch).await?;
    let is_stopped = matches!(there.phase, Phase::Stopped(_));
    ensure!(is_stopped, "a fetch of one that is there: {there:?}");
    let listed = subject.listed().await?;
    ensure!(listed.len() == 1, "one is there, and list has {listed:?}");
    subject.start(&spec.target).await?;
    subject.wait_for(tag, |p| *p == Phase::Ready).await?;
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

async fn offer(subject: &Subject, target: &DriverTarget) -> Result<DriverReport, PluginError> {
    let offer = async || subject.driver().offer_content(target).await;
    subject.retried(offer).await
}

/// A fetch waits while nothing is offered, and a deletion leaves nothing of it.
async fn unoffered(subject: &Subject, unknown: &Spec) -> Result<()> {
    let begin = Instant::now();
    loop {
        let pause = match subject.driver().fetch_content(unknown).await {
            Err(PluginError::RetryLater(_)) => break,
            Ok(DriverReport {
                phase: Phase::Elsewhere(_),
                again,
                ..
            }) => again.unwrap_or(Duration::ZERO),
            other => bail!("a fetch without an offer: {other:?}"),
        };
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "a fetch without an offer does not end");
        tokio::time::sleep(pause).await;
    }
    let phase = subject.phase(unknown.target.tag).await?;
    ensure!(phase == Phase::Absent, "{phase:?} without content");
    subject.remove(&unknown.target).await?;
    let listed = subject.listed().await?;
    ensure!(listed.is_empty(), "left of it: {listed:?}");
    Ok(())
}
