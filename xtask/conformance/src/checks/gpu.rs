//! GPUs, which only containers can have.

use super::capacity::expect_capacity_error;
use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec("8", "create refuses a GPU on a VM with 400", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            c.try_create(c.me(), &gpu_request(c, "vm", model))?.is(400)
        }),
        decision("8", "the refusal of a GPU on a VM names `gpu_model`", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            c.try_create(c.me(), &gpu_request(c, "vm", model))?
                .refuses("gpu_model")
        }),
        decision("4.3", "create refuses an unknown GPU model", |c| {
            c.try_create(c.me(), &gpu_request(c, "container", "No Such GPU 1"))?
                .refuses("gpu_model")
        }),
        decision(
            "4.3",
            "the refusal of an unknown GPU model lists the known models",
            |c| {
                let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
                let response =
                    c.try_create(c.me(), &gpu_request(c, "container", "No Such GPU 1"))?;
                response.refuses("gpu_model")?;
                ensure!(
                    response.body["gpu_model"].to_string().contains(model),
                    "{response}"
                );
                Ok(())
            },
        ),
        spec(
            "2.3",
            "a container with a GPU has `n_gpus`, `gpu_model` and `gpu_cost_hourly_usd`",
            |c| {
                let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
                let created = c.create(&gpu_request(c, "container", model))?;
                expect_field(&created, "gpu_model", &json!(model))?;
                ensure!(
                    created["n_gpus"].as_u64().is_some_and(|n| n >= 1),
                    "`n_gpus` is {}",
                    created["n_gpus"]
                );
                let rate = created["gpu_cost_hourly_usd"].as_f64();
                ensure!(
                    rate.is_some_and(|r| r >= 0.0),
                    "`gpu_cost_hourly_usd` is {rate:?}"
                );
                c.wait(uuid(&created)?, "running").map(drop)
            },
        )
        .exclusive(),
        decision(
            "4.3",
            "`gpu_model` attaches one GPU, also after a stop and a restart",
            |c| {
                let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
                let running = c.running_with(&gpu_request(c, "container", model))?;
                expect_field(&running, "n_gpus", &json!(1))?;
                let id = uuid(&running)?;
                c.me().act(id, "stop")?.is(200)?;
                let stopped = c.wait(id, "exited")?;
                expect_field(&stopped, "gpu_model", &json!(model))?;
                c.me().act(id, "restart")?.is(200)?;
                expect_field(&c.wait(id, "running")?, "n_gpus", &json!(1))
            },
        )
        .exclusive(),
        decision(
            "4.6",
            "restart attaches a GPU again, or returns 422 while no GPU is free",
            restart_with_gpu,
        )
        .exclusive(),
        decision(
            "2.7",
            "create and restart return 422 with `n_gpus` while no GPU of the model is free",
            exhaust_gpus,
        )
        .exclusive(),
    ]
}

fn gpu_request(c: &Context<'_>, kind: &str, model: &str) -> Value {
    c.small_with(kind, &json!({ "gpu_model": model }))
}

/// A second instance takes a GPU between the stop and the restart.
fn restart_with_gpu(c: &Context<'_>) -> Result<()> {
    let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
    let first = c.running_with(&gpu_request(c, "container", model))?;
    let id = uuid(&first)?;
    c.me().act(id, "stop")?.is(200)?;
    let second = c.running_with(&gpu_request(c, "container", model))?;
    let response = c.me().act(id, "restart")?;
    if response.status != 200 {
        expect_capacity_error(&response, &first)?;
        expect_field(&response.body["detail"]["requested"], "n_gpus", &json!(1))?;
        c.me().delete(uuid(&second)?)?.is(204)?;
        // The GPU is released after an observation of the node.
        c.retry(|| Ok(c.me().act(id, "restart")?.status == 200))?;
    }
    let now = c.wait(id, "running")?;
    expect_field(&now, "n_gpus", &json!(1))?;
    expect_field(&now, "gpu_model", &json!(model))
}

fn exhaust_gpus(c: &Context<'_>) -> Result<()> {
    /// Bounds the time to exhaust a model.
    const MAX_GPUS: usize = 64;
    let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
    let stopped = c.running_with(&gpu_request(c, "container", model))?;
    let id = uuid(&stopped)?;
    c.me().act(id, "stop")?.is(200)?;
    for _ in 0..MAX_GPUS {
        let response = c.try_create(c.me(), &gpu_request(c, "container", model))?;
        if response.status == 201 {
            continue;
        }
        response.is(422)?;
        let detail = &response.body["detail"];
        let bottleneck = detail["bottleneck"].as_array();
        ensure!(
            bottleneck.is_some_and(|b| b.contains(&json!("n_gpus"))),
            "{response}"
        );
        expect_field(&detail["requested"], "n_gpus", &json!(1))?;
        expect_field(&detail["nearest_available"], "n_gpus", &json!(0))?;
        let restart = c.me().act(id, "restart")?;
        restart.is(422)?;
        let now = c.me().instance(id)?.expect(200)?;
        return expect_field(&now, "state", &json!("exited"));
    }
    crate::check::skip(format!(
        "the service has more than {MAX_GPUS} GPUs of model {model}"
    ))
}
