//! The steps of the proof.

use super::driver::Gpu;
use super::inside::{LOOK, Seen};
use super::node::{self, Engine, Instance, Wharf, is_out_of_gpus};
use super::report::Report;
use super::{cdi, machine};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use wharf_testkit::http::Response;
use wharf_testkit::packages::{self, Need};
use wharf_testkit::{progress, workspace};

const NEEDS: [Need; 1] = [Need {
    program: "ssh",
    package: "openssh-client",
    why: "logs in to the instances",
}];

/// Runs all steps, and writes the report to a file and to stdout.
pub(crate) fn run(fake: bool, file: Option<PathBuf>) -> Result<()> {
    let target = workspace::target();
    fs::create_dir_all(&target)?;
    let dir = tempfile::Builder::new()
        .prefix("gpu-proof-")
        .tempdir_in(&target)?;
    let mut report = Report::new();
    let proven = prove(fake, dir.path(), &mut report);
    let text = report.text();
    let file = file.unwrap_or_else(|| target.join("gpu-proof.md"));
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    print!("{text}");
    proven?;
    ensure!(report.passed(), "a step has failed");
    Ok(())
}

fn prove(fake: bool, dir: &Path, report: &mut Report) -> Result<()> {
    packages::ensure(&NEEDS)?;
    machine::describe(report);
    let mut gpu = report.step("The GPU is found", || {
        let scratch = dir.join("driver");
        let gpu = if fake {
            Gpu::fake(&scratch)?
        } else {
            Gpu::first(&scratch)?
        };
        let seen = gpu.describe();
        Ok((gpu, seen))
    })?;
    report.fact(
        "GPU",
        if fake {
            "none: a harmless device"
        } else {
            &gpu.model
        },
    );
    report.fact("Driver", gpu.driver.as_deref().unwrap_or("none"));
    // Declared before the server, so that the server ends first.
    let engine = report.step("A private Podman starts", || {
        let engine = Engine::start(dir)?;
        let seen = engine.describe()?;
        Ok((engine, seen))
    });
    let engine = engine.inspect_err(|_| progress::note(&node::logs(dir)))?;
    let proven = on(&engine, &mut gpu, fake, dir, report);
    if proven.is_err() || !report.passed() {
        progress::note(&node::logs(dir));
    }
    let stopped = report.step("The engine ends, with its data", || {
        engine.stop()?;
        Ok(((), "gone".to_owned()))
    });
    proven.and(stopped)
}

/// The steps with an engine.
fn on(engine: &Engine, gpu: &mut Gpu, fake: bool, dir: &Path, report: &mut Report) -> Result<()> {
    let own = cdi::of_machine().filter(|_| !fake);
    report.step("The engine gets a CDI description", || {
        Ok(((), engine.provide(gpu, own.as_deref())?))
    })?;
    report.step("The engine gets the image `base`", || {
        engine.make_image()?;
        Ok(((), "made".to_owned()))
    })?;
    let wharf = report.step("Wharf starts with a node that has the GPU", || {
        let wharf = Wharf::start(dir, engine, gpu)?;
        Ok((wharf, format!("`gpu_model` is {}", gpu.model)))
    })?;
    let proven = steps(&wharf, gpu, report);
    let finished = report.step("Wharf ends, and its database is consistent", || {
        let seen = wharf.finish()?;
        Ok(((), seen))
    });
    proven.and(finished)
}

/// The steps with a server. After a failed look from inside, the others still run.
fn steps(wharf: &Wharf, gpu: &Gpu, report: &mut Report) -> Result<()> {
    let model = Some(gpu.model.as_str());
    let first = create(wharf, model, "An instance with `gpu_model` starts", report)?;
    look(wharf, &first, Some(gpu), "It has the GPU", report);
    let without = create(
        wharf,
        None,
        "An instance without `gpu_model` starts",
        report,
    )?;
    look(wharf, &without, None, "It has none", report);
    let _ = report.step("A third, with `gpu_model`, is refused", || {
        refused(&wharf.ask(model)?)
    });
    report.step("The first one stops", || {
        let answer = wharf.act(&first, "stop")?.ok()?;
        wharf.wait_for(&first.uuid, "exited")?;
        Ok(((), format!("{}, exited", answer.status)))
    })?;
    let other = create(wharf, model, "Another one gets the GPU", report)?;
    look(wharf, &other, Some(gpu), "It has the GPU", report);
    let _ = report.step("A restart of the first one is refused", || {
        refused(&wharf.act(&first, "restart")?)
    });
    report.step(
        "The other one is deleted, and the first one restarts",
        || {
            wharf.delete(&other)?;
            wharf.restart(&first)?;
            Ok(((), "running".to_owned()))
        },
    )?;
    look(wharf, &first, Some(gpu), "It has the GPU again", report);
    report.step("It is deleted", || {
        wharf.delete(&first)?;
        Ok(((), "gone".to_owned()))
    })?;
    let last = create(wharf, model, "A new one gets the GPU", report)?;
    look(wharf, &last, Some(gpu), "It has the GPU", report);
    report.step("All are deleted", || {
        wharf.delete(&last)?;
        wharf.delete(&without)?;
        Ok(((), "gone".to_owned()))
    })
}

fn create(
    wharf: &Wharf,
    model: Option<&str>,
    title: &str,
    report: &mut Report,
) -> Result<Instance> {
    report.step(title, || {
        let instance = wharf.create(model)?;
        let shown = instance.shown.clone();
        Ok((instance, shown))
    })
}

fn look(wharf: &Wharf, at: &Instance, gpu: Option<&Gpu>, title: &str, report: &mut Report) {
    let _ = report.step(title, || {
        let text = wharf.run(at, LOOK)?;
        progress::note(&text);
        let seen = match gpu {
            Some(gpu) => Seen(&text).expect(gpu)?,
            None => Seen(&text).expect_none()?,
        };
        Ok(((), seen))
    });
}

fn refused(answer: &Response) -> Result<((), String)> {
    ensure!(
        is_out_of_gpus(answer),
        "{}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    Ok(((), "422, bottleneck `n_gpus`".to_owned()))
}
