//! Section 2.7: what a 422 says, on create, update and restart.

use crate::check::{Check, decision, skip, spec};
use crate::client::Answer;
use crate::context::{Context, same, uuid, with};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

/// Fields of a request, with the least that may be asked for.
const LEAST: [(&str, u64); 3] = [("n_vcpus", 1), ("mem_gib", 1), ("disk_size_gib", 10)];

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "2.7",
            "create: the 422 has message, bottleneck, requested and nearest_available",
            |c| {
                let (body, answer) = too_large(c)?;
                well_formed(&answer, &body)
            },
        )
        .alone(),
        decision(
            "2.7",
            "create: asking for nearest_available succeeds",
            |c| {
                let (body, answer) = too_large(c)?;
                let body = nearest(&answer, &body)?;
                c.try_create(c.me(), &body)?.is(201)
            },
        )
        .alone(),
        decision(
            "2.7",
            "create: asking for one more than nearest_available does not",
            |c| {
                let (body, answer) = too_large(c)?;
                let near = answer.body["detail"]["nearest_available"].clone();
                for (field, value) in near.as_object().into_iter().flatten() {
                    let Some(n) = value.as_u64() else { continue };
                    let body = with(body.clone(), &with(near.clone(), &json!({ field: n + 1 })));
                    c.try_create(c.me(), &body)?.is(422)?;
                }
                Ok(())
            },
        )
        .alone(),
        spec(
            "2.7",
            "update: the same body when a resize does not fit",
            |c| {
                let running = c.running("container")?;
                let asked = json!({ "n_vcpus": 256, "mem_gib": 512 });
                let answer = c.me().patch(uuid(&running)?, &asked)?;
                if answer.status == 200 {
                    return skip("the largest container fits");
                }
                well_formed(&answer, &asked)?;
                let after = c.me().instance(uuid(&running)?)?.expect(200)?;
                ensure!(after == running, "and yet the instance changed");
                Ok(())
            },
        )
        .alone(),
        decision(
            "2.7",
            "update: asking for nearest_available succeeds",
            |c| {
                let running = c.running("container")?;
                let asked = json!({ "n_vcpus": 256, "mem_gib": 512 });
                let answer = c.me().patch(uuid(&running)?, &asked)?;
                if answer.status == 200 {
                    return skip("the largest container fits");
                }
                let body = nearest(&answer, &asked)?;
                c.me().patch(uuid(&running)?, &body)?.is(200)
            },
        )
        .alone(),
        spec(
            "2.7",
            "restart: the same body when the host is full, and the instance stays stopped",
            |c| {
                let (first, answer) = full(c)?;
                let asked = first.clone();
                well_formed(&answer, &asked)?;
                let now = c.me().instance(uuid(&first)?)?.expect(200)?;
                same(&now, "state", &json!("exited"))
            },
        )
        .alone(),
        spec("4.6", "restart succeeds once there is room again", |c| {
            let (first, _) = full(c)?;
            for instance in c.me().list()? {
                if instance["name"]
                    .as_str()
                    .is_some_and(|n| n.ends_with("-filler"))
                {
                    c.me().delete(uuid(&instance)?)?.is(204)?;
                }
            }
            // The room is free when the node was seen to have it, which takes a moment.
            let restart = || c.me().act(uuid(&first)?, "restart");
            let mut answer = restart()?;
            for _ in 0..100 {
                if answer.status != 422 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
                answer = restart()?;
            }
            answer.is(200)
        })
        .alone(),
        decision("3", "a stopped instance holds no vCPUs and no RAM", |c| {
            let (body, answer) = too_large(c)?;
            let body = nearest(&answer, &body)?;
            let first = c.running_with(&body)?;
            c.me().act(uuid(&first)?, "stop")?.is(200)?;
            let again = with(body, &json!({ "name": c.name(), "disk_size_gib": 10 }));
            c.create(&again).map(drop)
        })
        .alone(),
        spec("3", "a deleted instance holds nothing", |c| {
            let (body, answer) = too_large(c)?;
            let body = nearest(&answer, &body)?;
            for _ in 0..2 {
                let body = with(body.clone(), &json!({ "name": c.name() }));
                let first = c.running_with(&body)?;
                c.me().delete(uuid(&first)?)?.is(204)?;
            }
            Ok(())
        })
        .alone(),
        decision(
            "4.3",
            "the last room goes to exactly one of many who ask at once",
            last_room,
        )
        .alone(),
    ]
}

/// A container that no node has room for, and the 422.
fn too_large(c: &Context<'_>) -> Result<(Value, Answer)> {
    let largest = json!({ "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 2000 });
    let body = c.small_with("container", &largest);
    let answer = c.try_create(c.me(), &body)?;
    if answer.status == 201 {
        return skip("the largest container that may be asked for fits");
    }
    answer.is(422)?;
    Ok((body, answer))
}

/// The request with the values that the 422 says could be had.
fn nearest(answer: &Answer, body: &Value) -> Result<Value> {
    let near = &answer.body["detail"]["nearest_available"];
    for (field, least) in LEAST {
        if near[field].as_u64().is_some_and(|n| n < least) {
            return skip(format!("not even the least of {field} is free"));
        }
    }
    ensure!(near.is_object(), "no `nearest_available`: {answer}");
    Ok(with(body.clone(), near))
}

/// The body of section 2.7, for what was asked.
pub(super) fn well_formed(answer: &Answer, asked: &Value) -> Result<()> {
    answer.is(422)?;
    let detail = &answer.body["detail"];
    let message = detail["message"].as_str().unwrap_or("");
    ensure!(!message.is_empty(), "no `message`: {answer}");
    let bottleneck = detail["bottleneck"].as_array();
    let bottleneck = bottleneck.with_context(|| format!("no `bottleneck`: {answer}"))?;
    ensure!(!bottleneck.is_empty(), "an empty `bottleneck`: {answer}");
    let map = |key: &str| -> Result<&Map<String, Value>> {
        let map = detail[key].as_object();
        map.with_context(|| format!("no `{key}`: {answer}"))
    };
    let (requested, near) = (map("requested")?, map("nearest_available")?);
    for field in bottleneck {
        let field = field.as_str().unwrap_or("");
        let number = |map: &Map<String, Value>| map.get(field).and_then(Value::as_u64);
        let (Some(want), Some(have)) = (number(requested), number(near)) else {
            anyhow::bail!("no integer for the bottleneck {field}: {answer}");
        };
        ensure!(
            have < want,
            "{have} of {want} {field} is no bottleneck: {answer}"
        );
        if asked.get(field).is_some() {
            same(asked, field, &json!(want))?;
        }
    }
    let others = requested.len() != bottleneck.len() || near.len() != bottleneck.len();
    ensure!(!others, "fields that are no bottleneck: {answer}");
    Ok(())
}

/// A stopped container whose node is full, and the answer to its restart.
fn full(c: &Context<'_>) -> Result<(Value, Answer)> {
    /// More than this fill no service in reasonable time.
    const FILLERS: usize = 16;
    let half = json!({ "n_vcpus": 2, "mem_gib": 2 });
    let first = c.running_with(&c.small_with("container", &half))?;
    c.me().act(uuid(&first)?, "stop")?.is(200)?;
    c.wait(uuid(&first)?, "exited")?;
    for _ in 0..FILLERS {
        let filler = json!({ "name": format!("{}-filler", c.name()),
            "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 10 });
        let body = c.small_with("container", &filler);
        let answer = c.try_create(c.me(), &body)?;
        if answer.status == 201 {
            continue;
        }
        answer.is(422)?;
        let near = &answer.body["detail"]["nearest_available"];
        let least = |field| near[field].as_u64().is_none_or(|n| n >= 1);
        if !least("n_vcpus") || !least("mem_gib") || near.get("disk_size_gib").is_some() {
            break;
        }
        c.try_create(c.me(), &with(body, near))?.is(201)?;
    }
    let answer = c.me().act(uuid(&first)?, "restart")?;
    if answer.status == 200 {
        return skip("its node could not be filled");
    }
    Ok((first, answer))
}

fn last_room(c: &Context<'_>) -> Result<()> {
    let (body, answer) = too_large(c)?;
    let body = nearest(&answer, &body)?;
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let ask = || c.try_create(c.me(), &with(body.clone(), &json!({ "name": c.name() })));
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, Result<Answer>>| {
            t.join().unwrap_or_else(|_| skip("a thread broke"))
        };
        threads.into_iter().map(join).collect::<Result<_>>()
    })?;
    let made = answers.iter().filter(|a| a.status == 201).count();
    let short = answers.iter().filter(|a| a.status == 422).count();
    // Other nodes may have room for more of them, but not for all.
    ensure!(
        made >= 1 && made + short == answers.len(),
        "{made} made, {short} short"
    );
    for answer in answers.iter().filter(|a| a.status == 201) {
        c.wait(uuid(&answer.body)?, "running")?;
    }
    Ok(())
}
