//! Signing in with a browser: the user confirms a code that this program shows.

use crate::events::is_temporary;
use crate::failure::Failure;
use crate::output::{note, progress};
use anyhow::{Result, bail};
use serde_json::Value;
use std::time::{Duration, Instant};
use wharf_client::types::{Device, DeviceRequest, DeviceTokenRequest};
use wharf_client::{Client, Error as ClientError, Secret};

/// The addition to the interval when the server asks to slow down (RFC 8628).
const SLOWER: Duration = Duration::from_secs(5);

/// Returns a key, once the user has confirmed the code.
pub async fn sign_in(client: &Client) -> Result<Secret> {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let mut request = DeviceRequest::new();
    request.name = Some(format!("wharf on {host}"));
    let device = match client.begin_device(&request).fetch().await {
        Ok(device) => device,
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => bail!(
            "this server has no sign-in with a browser; give a key: `wharf login {} --with-key`",
            client.url()
        ),
        Err(error) => return Err(error.into()),
    };
    note(&format!(
        "Open {}\nand confirm the code {}.",
        device.verification_url, device.user_code
    ));
    let bar = progress("Waiting for the confirmation");
    let key = poll(client, &device).await;
    bar.finish_and_clear();
    key
}

async fn poll(client: &Client, device: &Device) -> Result<Secret> {
    let seconds = |number: i64| Duration::from_secs(number.max(1).unsigned_abs());
    let end = Instant::now() + seconds(device.expires_in);
    let mut interval = seconds(device.interval);
    let body = DeviceTokenRequest::new(device.device_code.clone());
    while Instant::now() < end {
        tokio::time::sleep(interval).await;
        let refusal = match client.fetch_device_key(&body).fetch().await {
            Ok(approved) => return Ok(approved.key),
            Err(error) if is_temporary(&error) => continue,
            Err(ClientError::Refused(refusal)) => refusal,
            Err(error) => return Err(error.into()),
        };
        match refusal.body.get("error").and_then(Value::as_str) {
            Some("authorization_pending") => {}
            Some("slow_down") => interval += SLOWER,
            Some("expired_token") => break,
            Some("access_denied") => {
                return Err(Failure::NotSignedIn("The sign-in was denied.".to_owned()).into());
            }
            _ => return Err(ClientError::Refused(refusal).into()),
        }
    }
    let message = "the code has expired without a confirmation; run `wharf login` again";
    Err(Failure::TimedOut(message.to_owned()).into())
}
