//! `/auth/page/`: an address that lets the browser of a session in to a page by name.

use super::{Api, EndpointReply, EndpointResult, render};
use serde_json::json;
use wharf_domain::error::{Error, FieldErrors};
use wharf_ground::caller::Caller;
use wharf_pages::directory::{Directory, Visitor};
use wharf_pages::{Gateway, PageInBrowser};

/// No page has the label, or the caller may not see it.
const NONE: Error = Error::Missing("Page");

/// Longest path and query on a page.
const MAX_TO: usize = 2_000;

/// Decides whether the caller may see a page, and makes the address. `pages` is none if the configuration has
/// no pages by name.
pub async fn enter(
    api: &Api,
    pages: Option<(&Gateway, &dyn Directory)>,
    caller: &Caller,
    body: &[u8],
) -> EndpointResult {
    let checked = api.schemas.page_entry.check(body)?;
    let host = checked
        .text("host")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let state = checked.text("state").unwrap_or_default().to_owned();
    let to = checked.text("to").unwrap_or("/").to_owned();
    checked.errors.into_result()?;
    if !is_path(&to) {
        let rule = "must be a path on the page, such as \"/lab\"";
        return Err(FieldErrors::one("to", rule).into());
    }
    let (gateway, directory) = pages.ok_or(NONE)?;
    let visitor = Visitor::Session(caller.key_id.to_string());
    let page = directory.page(&host).ok_or(NONE)?;
    let right = directory.right(&page, &visitor).ok_or(NONE)?;
    let url = match &page.moved_to {
        // The browser asks there again.
        Some(label) => {
            let url = api.app.config().page_url(label);
            let url = url.as_deref().and_then(|url| url.strip_suffix('/'));
            format!("{}{to}", url.ok_or(NONE)?)
        }
        None => {
            let at = PageInBrowser {
                label: &host,
                state: &state,
            };
            let url = gateway.entrance(visitor, at, &to);
            url.ok_or(Error::Overloaded)?.expose().to_owned()
        }
    };
    if !right.is_owner
        && let Err(error) = api.app.note_visit(caller, &page.label).await
    {
        // The visitor has the right, although the owner does not learn of the visit.
        tracing::warn!(error = %error.chain(), "a visit of a page cannot be noted");
    }
    Ok(EndpointReply::Secret(render(&json!({ "url": url }), 256)?))
}

/// Whether a text is a path on one host: a second slash or a backslash would begin another host.
fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && !text.starts_with("/\\")
        && text.len() <= MAX_TO
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}
