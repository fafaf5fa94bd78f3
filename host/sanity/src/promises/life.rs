//! The life of one instance.

use super::Verdict;
use crate::subject::Subject;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wharf_domain::driver::{Phase, PluginError, Spec, Tag};

/// Time for one answer of an instance's port.
const ANSWER: Duration = Duration::from_secs(3);
/// Time between two looks at the usage. An engine may keep a sample for a while.
const LOOKS: Duration = Duration::from_millis(200);

pub async fn ensure(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    if subject.health.features.network {
        until_port(subject, &spec, true).await?;
    }
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn ensure_again(subject: &Subject) -> Result<Verdict> {
    let mut spec = subject.up().await?;
    let before = subject.listed().await?;
    for may_exist in [true, false] {
        spec.may_exist = may_exist;
        let report = subject.ensure(&spec).await?;
        ensure!(report.phase == Phase::Ready, "{report:?}");
        let generation = spec.target.generation;
        ensure!(report.generation == generation, "{report:?}");
    }
    ensure!(subject.listed().await? == before, "the list has changed");
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn conflict(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    let mut another = spec.clone();
    another.may_exist = true;
    "another".clone_into(&mut another.hostname);
    match subject.ensure(&another).await {
        Err(PluginError::Conflict(_)) => {}
        result => bail!("ensure with another host name: {result:?}"),
    }
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(phase == Phase::Ready, "the instance is {phase:?} then");
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn list(subject: &Subject) -> Result<Verdict> {
    let (one, two) = (subject.up().await?, subject.up().await?);
    subject.stop(&two.target).await?;
    let listed = subject.listed().await?;
    ensure!(
        listed.len() == 2,
        "two instances exist, and list has {listed:?}"
    );
    let phase_of = |spec: &Spec| {
        let tag = spec.target.tag;
        let row = listed.iter().find(|(listed, _)| *listed == tag);
        row.map(|(_, phase)| phase).context("it is not listed")
    };
    ensure!(*phase_of(&one)? == Phase::Ready, "{listed:?}");
    ensure!(matches!(phase_of(&two)?, Phase::Stopped(_)), "{listed:?}");
    let others = subject.drivers.other.list().await?;
    ensure!(others.is_empty(), "another installation lists {others:?}");
    subject.remove(&one.target).await?;
    subject.remove(&two.target).await?;
    Ok(Verdict::Kept)
}

pub async fn incarnation(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    let mut next = spec.target.clone();
    next.tag = Tag {
        incarnation: 2,
        ..next.tag
    };
    let phase = subject.phase(next.tag).await?;
    ensure!(phase == Phase::Absent, "the next incarnation is {phase:?}");
    // The outcome of the deletion is the driver's; the instance must not suffer.
    let deleted = subject.driver().delete(&next).await;
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(phase == Phase::Ready, "{phase:?} after {deleted:?}");
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn start_running(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    let report = subject.start(&spec.target).await?;
    let is_up = matches!(report.phase, Phase::Ready | Phase::Booting);
    ensure!(is_up, "{report:?}");
    ensure!(
        report.generation == spec.target.generation,
        "start reported generation {:?}",
        report.generation
    );
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn stop(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    subject.stop(&spec.target).await?;
    subject.stop(&spec.target).await?;
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(matches!(phase, Phase::Stopped(_)), "inspect: {phase:?}");
    if subject.health.features.network {
        until_port(subject, &spec, false).await?;
    }
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn ensure_stopped(subject: &Subject) -> Result<Verdict> {
    let mut spec = subject.up().await?;
    subject.stop(&spec.target).await?;
    spec.may_exist = true;
    let report = subject.ensure(&spec).await?;
    ensure!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
    let phase = subject.phase(spec.target.tag).await?;
    ensure!(matches!(phase, Phase::Stopped(_)), "inspect: {phase:?}");
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn start(subject: &Subject) -> Result<Verdict> {
    let spec = subject.up().await?;
    for _ in 0..2 {
        subject.stop(&spec.target).await?;
        let report = subject.start(&spec.target).await?;
        let is_up = matches!(report.phase, Phase::Ready | Phase::Booting);
        ensure!(is_up, "start reported {report:?}");
        let tag = spec.target.tag;
        subject.wait_for(tag, |p| *p == Phase::Ready).await?;
        if subject.health.features.network {
            until_port(subject, &spec, true).await?;
        }
    }
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn delete(subject: &Subject) -> Result<Verdict> {
    for is_stopped in [false, true] {
        let spec = subject.up().await?;
        if is_stopped {
            subject.stop(&spec.target).await?;
        }
        subject.remove(&spec.target).await?;
        subject.remove(&spec.target).await?;
        let phase = subject.phase(spec.target.tag).await?;
        ensure!(phase == Phase::Absent, "inspect: {phase:?}");
        let listed = subject.listed().await?;
        ensure!(listed.is_empty(), "list still has {listed:?}");
        if subject.health.features.network {
            until_port(subject, &spec, false).await?;
        }
    }
    Ok(Verdict::Kept)
}

pub async fn stats(subject: &Subject) -> Result<Verdict> {
    if !subject.health.features.stats {
        return Ok(Verdict::NotApplicable("probe: no usage"));
    }
    let spec = subject.up().await?;
    let tag = spec.target.tag;
    let first = subject.driver().stats(tag, true).await?;
    let begin = Instant::now();
    let second = loop {
        tokio::time::sleep(LOOKS).await;
        let second = subject.driver().stats(tag, true).await?;
        ensure!(
            second.at_ns >= first.at_ns && second.cpu_ns >= first.cpu_ns,
            "the later sample is {second:?}, and the earlier {first:?}"
        );
        if second.at_ns > first.at_ns {
            break second;
        }
        let left = begin.elapsed() < subject.sample.deadline;
        ensure!(left, "no sample follows {first:?}");
    };
    ensure!(
        first.mem_used_bytes > 0 && second.cpu_ns > 0,
        "nothing is used: {second:?}"
    );
    subject.stop(&spec.target).await?;
    let stopped = subject.driver().stats(tag, false).await;
    ensure!(stopped.is_err(), "stopped, yet {stopped:?}");
    subject.remove(&spec.target).await?;
    Ok(Verdict::Kept)
}

pub async fn nothing_is_left(subject: &Subject) -> Result<Verdict> {
    let listed = subject.listed().await?;
    ensure!(listed.is_empty(), "list still has {listed:?}");
    Ok(Verdict::Kept)
}

/// Waits until the published port answers, or does not.
async fn until_port(subject: &Subject, spec: &Spec, wanted: bool) -> Result<()> {
    let begin = Instant::now();
    loop {
        let answered = tokio::time::timeout(ANSWER, answer(subject, spec)).await;
        let answers = matches!(answered, Ok(Ok(true)));
        if answers == wanted {
            return Ok(());
        }
        let left = begin.elapsed() < subject.sample.deadline;
        let how = if wanted {
            "does not answer"
        } else {
            "still answers"
        };
        ensure!(left, "the published port {how} after {:?}", begin.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Whether the banner of SSH comes, or the page with a status below 500.
async fn answer(subject: &Subject, spec: &Spec) -> Result<bool> {
    let port = spec.published.first().context("no port")?.node_port;
    let host = subject.sample.connect.as_str();
    let mut stream = TcpStream::connect((host, port)).await?;
    let mut begin = [0; 12];
    let Some((_, path)) = &subject.sample.web else {
        stream.read_exact(&mut begin).await?;
        return Ok(begin.starts_with(b"SSH-"));
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.read_exact(&mut begin).await?;
    let is_http = begin.starts_with(b"HTTP/1.");
    Ok(is_http && begin.get(9).is_some_and(|digit| *digit < b'5'))
}
