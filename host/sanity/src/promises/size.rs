//! Changes of sizes.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use wharf_domain::driver::{DiskGrow, Phase};

pub async fn resize(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.live_resize {
        return Ok(Verdict::NotApplicable("probe: no live resize"));
    }
    let spec = subject.up().await?;
    let mut target = spec.target.clone();
    let small = target.size;
    for (n_vcpus, mem_gib) in [(2, 2), (2, 2), (small.n_vcpus, small.mem_gib)] {
        target.generation = target.generation.next();
        (target.size.n_vcpus, target.size.mem_gib) = (n_vcpus, mem_gib);
        let report = subject.resize(&target).await?;
        ensure!(report.generation == target.generation, "{report:?}");
        let phase = subject.phase(target.tag).await?;
        ensure!(phase == Phase::Ready, "{phase:?} after the resize");
    }
    subject.remove(&target).await?;
    Ok(Verdict::Kept)
}

pub async fn grow(subject: &Subject) -> Result<Verdict> {
    let when = subject.health.features.disk_grow;
    if when == DiskGrow::No {
        return Ok(Verdict::NotApplicable("probe: disks do not grow"));
    }
    let mut spec = subject.up().await?;
    spec.may_exist = true;
    spec.target.size.disk_size_gib += 5;
    spec.target.generation = spec.target.generation.next();
    if when == DiskGrow::Running {
        subject.resize(&spec.target).await?;
    } else {
        let running = subject.resize(&spec.target).await;
        ensure!(running.is_err(), "grows while it runs: {running:?}");
        subject.stop(&spec.target).await?;
        let mut report = subject.start(&spec.target).await?;
        ensure!(
            matches!(report.phase, Phase::Growing(_)),
            "start with a larger disk reported {report:?}"
        );
        let begin = Instant::now();
        while !matches!(report.phase, Phase::Stopped(_)) {
            let grow = async || subject.driver().grow(&spec).await;
            report = subject.retried(grow).await?;
            let left = begin.elapsed() < subject.sample.deadline;
            ensure!(left, "grow still reports {report:?}");
            tokio::time::sleep(report.again.unwrap_or(Duration::ZERO)).await;
        }
        let report = subject.start(&spec.target).await?;
        let is_up = matches!(report.phase, Phase::Ready | Phase::Booting);
        ensure!(is_up, "start of the grown instance reported {report:?}");
    }
    let tag = spec.target.tag;
    subject.wait_for(tag, |p| *p == Phase::Ready).await?;
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}
