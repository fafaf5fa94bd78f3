//! Instances that the engine does not have.

use super::Verdict;
use crate::subject::{GRACE, Subject};
use anyhow::{Result, ensure};
use wharf_domain::driver::{Phase, PluginError};

pub async fn inspect(subject: &Subject) -> Result<Verdict> {
    let tag = subject.spec()?.target.tag;
    let phase = subject.phase(tag).await?;
    ensure!(phase == Phase::Absent, "inspect reported {phase:?}");
    Ok(Verdict::Kept)
}

pub async fn stop_and_delete(subject: &Subject) -> Result<Verdict> {
    let target = subject.spec()?.target;
    let driver = subject.driver();
    let stop = async || driver.stop(&target, GRACE).await;
    let report = subject.retried(stop).await?;
    ensure!(
        matches!(report.phase, Phase::Absent | Phase::Stopped(_)),
        "stop reported {:?}",
        report.phase
    );
    let delete = async || driver.delete(&target).await;
    let report = subject.retried(delete).await?;
    ensure!(
        report.phase == Phase::Absent,
        "delete reported {:?}",
        report.phase
    );
    Ok(Verdict::Kept)
}

pub async fn others(subject: &Subject) -> Result<Verdict> {
    let target = subject.spec()?.target;
    let started = subject.start(&target).await;
    let not_found = matches!(started, Err(PluginError::NotFound));
    ensure!(not_found, "start: {started:?}");
    let resized = subject.resize(&target).await;
    let not_found = matches!(resized, Err(PluginError::NotFound));
    ensure!(not_found, "resize: {resized:?}");
    let stats = subject.driver().stats(target.tag, true).await;
    ensure!(stats.is_err(), "stats: {stats:?}");
    Ok(Verdict::Kept)
}
