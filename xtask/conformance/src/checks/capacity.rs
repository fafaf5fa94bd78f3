//! Section 2.7: the 422 of create, update and restart.

use crate::check::{Check, decision, skip, spec};
use crate::client::Response;
use crate::context::{Context, expect_field, uuid, with};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

/// Size fields of a request, with their minimums.
const MINIMUMS: [(&str, u64); 3] = [("n_vcpus", 1), ("mem_gib", 1), ("disk_size_gib", 10)];

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "2.7",
            "the 422 of create has message, bottleneck, requested and nearest_available",
            |c| {
                let (body, response) = exceed_capacity(c)?;
                expect_capacity_error(&response, &body)
            },
        )
        .exclusive(),
        decision(
            "2.7",
            "create succeeds with the values of nearest_available",
            |c| {
                let (body, response) = exceed_capacity(c)?;
                let body = nearest_request(&response, &body)?;
                c.try_create(c.me(), &body)?.is(201)
            },
        )
        .exclusive(),
        decision(
            "2.7",
            "create returns 422 for a value above nearest_available",
            |c| {
                let (body, response) = exceed_capacity(c)?;
                let near = response.body["detail"]["nearest_available"].clone();
                for (field, value) in near.as_object().into_iter().flatten() {
                    let Some(n) = value.as_u64() else { continue };
                    let body = with(body.clone(), &with(near.clone(), &json!({ field: n + 1 })));
                    c.try_create(c.me(), &body)?.is(422)?;
                }
                Ok(())
            },
        )
        .exclusive(),
        spec(
            "2.7",
            "the 422 of a resize has the body of section 2.7, and nothing changes",
            |c| {
                let running = c.running("container")?;
                let request = json!({ "n_vcpus": 256, "mem_gib": 512 });
                let response = c.me().patch(uuid(&running)?, &request)?;
                if response.status == 200 {
                    return skip("the service has capacity for the largest resize");
                }
                expect_capacity_error(&response, &request)?;
                let after = c.me().instance(uuid(&running)?)?.expect(200)?;
                ensure!(after == running, "the instance changed despite the refusal");
                Ok(())
            },
        )
        .exclusive(),
        decision(
            "2.7",
            "update succeeds with the values of nearest_available",
            |c| {
                let running = c.running("container")?;
                let request = json!({ "n_vcpus": 256, "mem_gib": 512 });
                let response = c.me().patch(uuid(&running)?, &request)?;
                if response.status == 200 {
                    return skip("the service has capacity for the largest resize");
                }
                let body = nearest_request(&response, &request)?;
                c.me().patch(uuid(&running)?, &body)?.is(200)
            },
        )
        .exclusive(),
        spec(
            "2.7",
            "the 422 of a restart has the body of section 2.7, and the instance stays stopped",
            |c| {
                let (first, response) = restart_on_full_node(c)?;
                let request = first.clone();
                expect_capacity_error(&response, &request)?;
                let now = c.me().instance(uuid(&first)?)?.expect(200)?;
                expect_field(&now, "state", &json!("exited"))
            },
        )
        .exclusive(),
        spec(
            "4.6",
            "restart succeeds once the node has free capacity",
            |c| {
                let (first, _) = restart_on_full_node(c)?;
                for instance in c.me().list()? {
                    if instance["name"]
                        .as_str()
                        .is_some_and(|n| n.ends_with("-filler"))
                    {
                        c.me().delete(uuid(&instance)?)?.is(204)?;
                    }
                }
                // Capacity is released after an observation of the node.
                c.retry(|| {
                    let response = c.me().act(uuid(&first)?, "restart")?;
                    ensure!(matches!(response.status, 200 | 422), "{response}");
                    Ok(response.status == 200)
                })
            },
        )
        .exclusive(),
        decision("3", "a stopped instance releases its vCPUs and RAM", |c| {
            let (body, response) = exceed_capacity(c)?;
            let body = nearest_request(&response, &body)?;
            let first = c.running_with(&body)?;
            c.me().act(uuid(&first)?, "stop")?.is(200)?;
            let again = with(body, &json!({ "name": c.name(), "disk_size_gib": 10 }));
            c.create(&again).map(drop)
        })
        .exclusive(),
        spec(
            "3",
            "a deleted instance releases its vCPUs, RAM and disk",
            |c| {
                let (body, response) = exceed_capacity(c)?;
                let body = nearest_request(&response, &body)?;
                for _ in 0..2 {
                    let body = with(body.clone(), &json!({ "name": c.name() }));
                    let first = c.running_with(&body)?;
                    c.me().delete(uuid(&first)?)?.is(204)?;
                }
                Ok(())
            },
        )
        .exclusive(),
        decision(
            "4.3",
            "concurrent creates for the last capacity return 201 or 422, and at least one 201",
            create_concurrently,
        )
        .exclusive(),
    ]
}

/// Requests a container that no node has capacity for; returns the request and the 422.
pub(super) fn exceed_capacity(c: &Context<'_>) -> Result<(Value, Response)> {
    let largest = json!({ "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 2000 });
    let body = c.small_with("container", &largest);
    let response = c.try_create(c.me(), &body)?;
    if response.status == 201 {
        return skip("the service has capacity for the largest container");
    }
    response.is(422)?;
    Ok((body, response))
}

/// Returns the request with the values of `nearest_available`.
fn nearest_request(response: &Response, body: &Value) -> Result<Value> {
    let near = &response.body["detail"]["nearest_available"];
    for (field, minimum) in MINIMUMS {
        if near[field].as_u64().is_some_and(|n| n < minimum) {
            return skip(format!("less than the minimum of {field} is free"));
        }
    }
    ensure!(
        near.is_object(),
        "`nearest_available` is missing: {response}"
    );
    Ok(with(body.clone(), near))
}

/// Fails unless the response is a 422 with the body of section 2.7 for this request.
pub(super) fn expect_capacity_error(response: &Response, request: &Value) -> Result<()> {
    response.is(422)?;
    let detail = &response.body["detail"];
    let message = detail["message"].as_str().unwrap_or("");
    ensure!(
        !message.is_empty(),
        "`message` is missing or empty: {response}"
    );
    let bottleneck = detail["bottleneck"].as_array();
    let bottleneck = bottleneck.with_context(|| format!("`bottleneck` is missing: {response}"))?;
    ensure!(!bottleneck.is_empty(), "`bottleneck` is empty: {response}");
    let map = |key: &str| -> Result<&Map<String, Value>> {
        let map = detail[key].as_object();
        map.with_context(|| format!("`{key}` is missing: {response}"))
    };
    let (requested, near) = (map("requested")?, map("nearest_available")?);
    for field in bottleneck {
        let field = field.as_str().unwrap_or("");
        let number = |map: &Map<String, Value>| map.get(field).and_then(Value::as_u64);
        let (Some(want), Some(have)) = (number(requested), number(near)) else {
            anyhow::bail!(
                "`requested` or `nearest_available` has no integer for {field}: {response}"
            );
        };
        ensure!(
            have < want,
            "{field} is in `bottleneck`, but {have} of {want} are available: {response}"
        );
        if request.get(field).is_some() {
            expect_field(request, field, &json!(want))?;
        }
    }
    let others = requested.len() != bottleneck.len() || near.len() != bottleneck.len();
    ensure!(
        !others,
        "`requested` or `nearest_available` has fields outside `bottleneck`: {response}"
    );
    Ok(())
}

/// Stops a container and fills its node; returns the container and the response to its restart.
fn restart_on_full_node(c: &Context<'_>) -> Result<(Value, Response)> {
    /// Bounds the time to fill a service.
    const MAX_FILLERS: usize = 16;
    let small = json!({ "n_vcpus": 2, "mem_gib": 2 });
    let first = c.running_with(&c.small_with("container", &small))?;
    c.me().act(uuid(&first)?, "stop")?.is(200)?;
    c.wait(uuid(&first)?, "exited")?;
    for _ in 0..MAX_FILLERS {
        let filler = json!({ "name": format!("{}-filler", c.name()),
            "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 10 });
        let body = c.small_with("container", &filler);
        let response = c.try_create(c.me(), &body)?;
        if response.status == 201 {
            continue;
        }
        response.is(422)?;
        let near = &response.body["detail"]["nearest_available"];
        let available = |field| near[field].as_u64().is_none_or(|n| n >= 1);
        if !available("n_vcpus") || !available("mem_gib") || near.get("disk_size_gib").is_some() {
            break;
        }
        c.try_create(c.me(), &with(body, near))?.is(201)?;
    }
    let response = c.me().act(uuid(&first)?, "restart")?;
    if response.status == 200 {
        return skip("the container's node could not be filled");
    }
    Ok((first, response))
}

fn create_concurrently(c: &Context<'_>) -> Result<()> {
    let (body, response) = exceed_capacity(c)?;
    let body = nearest_request(&response, &body)?;
    let responses: Vec<Response> = std::thread::scope(|scope| {
        let create = || c.try_create(c.me(), &with(body.clone(), &json!({ "name": c.name() })));
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, Result<Response>>| {
            t.join().unwrap_or_else(|_| skip("a thread panicked"))
        };
        threads.into_iter().map(join).collect::<Result<_>>()
    })?;
    let created = responses.iter().filter(|a| a.status == 201).count();
    let refused = responses.iter().filter(|a| a.status == 422).count();
    // Other nodes may have capacity for more than one request.
    ensure!(
        created >= 1 && created + refused == responses.len(),
        "{created} requests returned 201, and {refused} returned 422"
    );
    for response in responses.iter().filter(|a| a.status == 201) {
        c.wait(uuid(&response.body)?, "running")?;
    }
    Ok(())
}
