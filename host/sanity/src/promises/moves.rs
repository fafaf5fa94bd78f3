//! Moves between nodes of a cluster.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use wharf_domain::driver::{Phase, PluginError, Spec};
use wharf_domain::ids::Generation;
use wharf_plugin::NodeDriver;

pub async fn moves(subject: &Subject) -> Result<Verdict> {
    if !subject.driver().moves() {
        let answer = subject.driver().move_here(&subject.spec()?).await;
        let clear = matches!(answer, Err(PluginError::Unsupported(_)));
        ensure!(clear, "move-here without the interface: {answer:?}");
        return Ok(Verdict::Kept);
    }
    let driver = subject.driver();
    let unknown = subject.spec()?;
    let fetch = async || driver.move_here(&unknown).await;
    let absent = subject.retried(fetch).await?;
    ensure!(
        absent.phase == Phase::Absent,
        "of an absent one: {absent:?}"
    );
    let mut spec = subject.up().await?;
    spec.may_exist = true;
    let fetch = async || driver.move_here(&spec).await;
    let running = subject.retried(fetch).await?;
    ensure!(
        running.phase == Phase::Ready,
        "of a running one: {running:?}"
    );
    subject.stop(&spec.target).await?;
    fetched(subject, driver, &spec).await?;
    if let Some(peer) = &subject.drivers.peer {
        there_and_back(subject, peer, &spec).await?;
    }
    subject.start(&spec.target).await?;
    let tag = spec.target.tag;
    subject.wait_for(tag, |p| *p == Phase::Ready).await?;
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

/// Moves a stopped instance to another node and back.
async fn there_and_back(subject: &Subject, peer: &NodeDriver, spec: &Spec) -> Result<()> {
    let tag = spec.target.tag;
    for (from, to) in [(subject.driver(), peer), (peer, subject.driver())] {
        fetched(subject, to, spec).await?;
        // The answer may have been lost.
        fetched(subject, to, spec).await?;
        let left = from.inspect(tag, Generation(9)).await?;
        let is_elsewhere = matches!(left.phase, Phase::Elsewhere(_));
        ensure!(is_elsewhere, "the old node reports {left:?}");
        let start = subject
            .retried(async || from.start(&spec.target).await)
            .await?;
        let is_elsewhere = matches!(start.phase, Phase::Elsewhere(_));
        ensure!(is_elsewhere, "a start on the old node reported {start:?}");
        let there = from.list().await?.iter().any(|row| row.tag == tag);
        ensure!(!there, "the old node still lists it");
        let here = to.list().await?.iter().any(|row| row.tag == tag);
        ensure!(here, "the new node does not list it");
    }
    Ok(())
}

/// Calls `move-here` until the instance is on the node.
async fn fetched(subject: &Subject, to: &NodeDriver, spec: &Spec) -> Result<()> {
    let begin = Instant::now();
    loop {
        let fetch = async || to.move_here(spec).await;
        let report = subject.retried(fetch).await.context("move-here")?;
        ensure!(report.generation == spec.target.generation, "{report:?}");
        match report.phase {
            Phase::Stopped(_) => return Ok(()),
            Phase::Elsewhere(_) => {}
            other => bail!("move-here reported {other:?}"),
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "move-here still reports {:?}", report.phase);
        tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
    }
}
