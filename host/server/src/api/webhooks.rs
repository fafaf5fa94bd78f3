//! `/api/webhook/`: the caller's webhooks and their deliveries.

use super::list::ListPage;
use super::{Api, EndpointReply, EndpointRequest, EndpointResult, render};
use bytes::Bytes;
use serde::Serialize;
use wharf_domain::error::Error;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Delivery, DeliveryState, Webhook, WebhookId};
use wharf_ground::caller::Caller;

/// Approximate bytes of a webhook and of a delivery.
const WEBHOOK_BYTES: usize = 384;
const DELIVERY_BYTES: usize = 224;

/// A webhook; `secret` only in the response that makes it.
#[derive(Serialize)]
struct WebhookWire {
    id: String,
    url: String,
    types: Vec<String>,
    created_at: String,
    disabled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl WebhookWire {
    fn new(webhook: Webhook, secret: Option<&SecretText>) -> Self {
        Self {
            id: webhook.id.to_string(),
            url: webhook.url,
            types: webhook.types,
            created_at: webhook.created_at.to_rfc3339(),
            disabled_at: webhook.disabled_at.map(Timestamp::to_rfc3339),
            secret: secret.map(|secret| secret.expose().to_owned()),
        }
    }
}

#[derive(Serialize)]
struct DeliveryWire {
    id: u64,
    event: Option<u64>,
    attempt: u32,
    at: String,
    status: Option<u16>,
    error: Option<String>,
    next_attempt_at: Option<String>,
    state: DeliveryState,
}

impl DeliveryWire {
    fn new(id: u64, delivery: Delivery, next: Option<Timestamp>) -> Self {
        Self {
            id,
            event: delivery.event,
            attempt: delivery.attempt,
            at: delivery.at.to_rfc3339(),
            status: delivery.status,
            error: delivery.error,
            next_attempt_at: next.map(Timestamp::to_rfc3339),
            state: delivery.state,
        }
    }
}

/// An id of another form names no webhook.
fn parse(id: &str) -> Result<WebhookId, Error> {
    WebhookId::parse(id).ok_or(Error::Missing("Webhook"))
}

/// The webhooks, oldest first.
pub fn list(request: EndpointRequest) -> EndpointResult {
    let webhooks = request.api.webhooks.list(&request.caller)?.into_iter();
    let wires = webhooks.map(|webhook| WebhookWire::new(webhook, None));
    EndpointReply::list(wires, WEBHOOK_BYTES)
}

/// Creates a webhook.
pub async fn create(request: EndpointRequest<(), Bytes>) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let checked = api.schemas.webhook.check(&request.body)?;
    let url = checked.text("url").unwrap_or_default().to_owned();
    let types = checked.texts("types").unwrap_or_default();
    let types = types.into_iter().map(str::to_owned).collect();
    checked.errors.into_result()?;
    let (webhook, secret) = api.webhooks.create(caller, url, types).await?;
    let wire = WebhookWire::new(webhook, Some(&secret));
    Ok(EndpointReply::KeyCreated(render(&wire, WEBHOOK_BYTES)?))
}

/// One webhook.
pub fn get(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    let webhook = api.webhooks.get(caller, parse(id)?)?;
    Ok(EndpointReply::Done(render(
        &WebhookWire::new(webhook, None),
        WEBHOOK_BYTES,
    )?))
}

/// Deletes a webhook.
pub async fn delete(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    api.webhooks.delete(caller, parse(id)?).await?;
    Ok(EndpointReply::Gone)
}

/// Replaces the secret.
pub async fn rotate(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    let (webhook, secret) = api.webhooks.rotate(caller, parse(id)?).await?;
    let wire = WebhookWire::new(webhook, Some(&secret));
    Ok(EndpointReply::Secret(render(&wire, WEBHOOK_BYTES)?))
}

/// Requests a delivery of a test.
pub async fn test(request: EndpointRequest<String>) -> EndpointResult {
    let (api, caller, id) = request.parts();
    requested(api.webhooks.test(caller, parse(id)?).await?)
}

/// Requests a delivery again.
pub async fn redeliver(request: EndpointRequest<(String, String)>) -> EndpointResult {
    let (api, caller, (id, number)) = request.parts();
    let number = number.parse().map_err(|_| Error::Missing("Delivery"))?;
    requested(api.webhooks.redeliver(caller, parse(id)?, number).await?)
}

fn requested((number, delivery): (u64, Delivery)) -> EndpointResult {
    let due = Some(delivery.at);
    let wire = DeliveryWire::new(number, delivery, due);
    Ok(EndpointReply::Accepted(render(&wire, DELIVERY_BYTES)?))
}

/// The latest deliveries, the last one first.
pub fn deliveries(api: &Api, caller: &Caller, id: &str, page: ListPage) -> EndpointResult {
    let (webhook, found) = api.webhooks.deliveries(caller, parse(id)?, page.limit)?;
    let wire = |(number, delivery)| {
        let due = webhook.pending.get(&number).copied();
        DeliveryWire::new(number, delivery, due)
    };
    EndpointReply::list(found.into_iter().map(wire), DELIVERY_BYTES)
}
