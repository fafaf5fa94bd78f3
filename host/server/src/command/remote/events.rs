//! `wharf events` without `--config`: the events of the user.

use super::connection::Connection;
use super::output::{field, json, line, note, time};
use anyhow::Result;
use serde_json::Value;
use std::time::Duration;
use wharf_client::{Client, Error as ClientError, Method};

const RESET: &str = "Some events are older than the server keeps, and are left out.";
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Prints events; with `is_followed`, until Ctrl-C.
pub async fn follow(
    connection: &Connection,
    instance: Option<&str>,
    after: Option<u64>,
    is_followed: bool,
) -> Result<()> {
    let client = connection.client()?;
    if is_followed {
        return stream(connection, &client, instance, after).await;
    }
    let mut events = Vec::new();
    let mut page = client
        .list_events(None, after, instance, None)
        .send()
        .await?;
    loop {
        events.extend(page.value().as_array().cloned().unwrap_or_default());
        let Some(next) = page.next().map(str::to_owned) else {
            break;
        };
        page = client.request(Method::GET, &next).send().await?;
    }
    if connection.is_json() {
        return json(&events.into());
    }
    for event in &events {
        match event.get("type").and_then(Value::as_str) {
            Some("reset") => note(RESET),
            _ => line(&text_of(event))?,
        }
    }
    Ok(())
}

/// Prints events as they happen. A lost connection is continued after the last event.
async fn stream(
    connection: &Connection,
    client: &Client,
    instance: Option<&str>,
    mut after: Option<u64>,
) -> Result<()> {
    let mut pause = FIRST_PAUSE;
    let mut is_first = true;
    loop {
        let mut stream = match client
            .list_events(None, None, instance, None)
            .stream(after)
            .await
        {
            Ok(stream) => stream,
            Err(error) if !is_first && is_temporary(&error) => {
                note(&format!("{error}; trying again in {} s", pause.as_secs()));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        (is_first, pause) = (false, FIRST_PAUSE);
        while let Ok(Some(message)) = stream.next().await {
            after = message.id.or(after);
            match message.event.as_str() {
                "event" => {
                    let event: Value = serde_json::from_str(&message.data)?;
                    let shown = match connection.is_json() {
                        true => event.to_string(),
                        false => text_of(&event),
                    };
                    line(&shown)?;
                }
                "reset" => note(RESET),
                _ => {}
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Whether a later attempt may succeed: the server restarts, or has too many streams.
fn is_temporary(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable(_) | ClientError::TimedOut(_) => true,
        ClientError::Refused(refusal) => [429, 503].contains(&refusal.status),
        _ => false,
    }
}

fn text_of(event: &Value) -> String {
    let text = format!(
        "{}  {}  {}  {}  {}",
        time(event, "at"),
        field(event, "name"),
        field(event, "type"),
        field(event, "state"),
        field(event, "message")
    );
    text.replace(char::is_control, " ")
}
