//! The handler of `GET /api/instance/`. A list can be long: it is rendered and compressed by the
//! workers, so that no other request waits for it.

use super::budget::BudgetOwner;
use super::compress::{self, accepts_gzip, is_long};
use super::entity_tags::Conditions;
use super::extract::Call;
use super::interface::{Interface, Shared};
use super::respond::{self, Response};
use crate::api::list::{self, List, ListPage};
use crate::api::tag::tag;
use crate::api::{Api, Sight};
use axum::extract::State;
use bytes::Bytes;
use http::{HeaderMap, Uri};
use std::sync::Arc;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_ground::caller::Caller;

/// A list in the form the client asked for.
struct Encoded {
    body: Bytes,
    /// The entity tag of this form.
    tag: String,
    gzipped: bool,
    sight: Sight,
    next: Option<ListPage>,
}

pub(super) async fn handler(
    State(interface): Shared,
    uri: Uri,
    headers: HeaderMap,
    conditions: Conditions,
    call: Call,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let gzip = accepts_gzip(&headers);
    let encoded = match ListPage::parse(form_urlencoded::parse(query.as_bytes())) {
        Ok(None) => whole(interface, &call.caller, gzip).await,
        Ok(Some(page)) => part(interface, &call.caller, page, gzip).await,
        Err(errors) => Err(errors.into()),
    };
    match encoded {
        Ok(encoded) => {
            let next = encoded.next.map(|next| link("/api/instance/?", next));
            let mut response = respond::list(encoded.body, next, &encoded.tag, encoded.sight);
            compress::declare(response.headers_mut(), encoded.gzipped);
            respond::conditional(response, &conditions)
        }
        Err(error) => call.fail(&error),
    }
}

async fn whole(interface: Arc<Interface>, caller: &Caller, gzip: bool) -> Result<Encoded, Error> {
    if let Some(list) = list::cached(&interface.api, caller)?
        && let Some(encoded) = encoded_already(&list, gzip)
    {
        return Ok(encoded);
    }
    let caller = caller.clone();
    on_worker(interface, caller.user, move |interface| {
        Ok(encode(&*list::whole(&interface.api, &caller)?, gzip))
    })
    .await
}

async fn part(
    interface: Arc<Interface>,
    caller: &Caller,
    page: ListPage,
    gzip: bool,
) -> Result<Encoded, Error> {
    let caller = caller.clone();
    on_worker(interface, caller.user, move |interface| {
        let (list, next) = list::page(&interface.api, &caller, page)?;
        let encoded = encode(&list, gzip);
        Ok(Encoded { next, ..encoded })
    })
    .await
}

/// Runs work that may take long as soon as a worker is free.
pub(super) async fn on_worker<T: Send + 'static>(
    interface: Arc<Interface>,
    user: UserId,
    work: impl FnOnce(&Interface) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let shared = Arc::clone(&interface);
    let done = interface.workers.run(user, move || {
        // Requests that waited for a worker passed the limit before the others were rendered.
        if shared.unsent.is_full(BudgetOwner::User(user), None) {
            Err(Error::Overloaded)
        } else {
            work(&shared)
        }
    });
    let done = done.await;
    done.unwrap_or_else(|| Err(Error::internal("a worker failed")))
}

fn encode(list: &List, gzip: bool) -> Encoded {
    if gzip && is_long(&list.body) {
        list.gzipped.get_or_init(|| compress::gzip(&list.body));
    }
    encoded_already(list, gzip).unwrap_or_else(|| plain(list))
}

/// The list, if it need not be compressed first.
fn encoded_already(list: &List, gzip: bool) -> Option<Encoded> {
    if !gzip || !is_long(&list.body) {
        return Some(plain(list));
    }
    let body = list.gzipped.get()?.clone();
    Some(Encoded {
        body,
        tag: format!("{}-gzip", list.tag),
        gzipped: true,
        sight: list.sight,
        next: None,
    })
}

fn plain(list: &List) -> Encoded {
    Encoded {
        body: list.body.clone(),
        tag: list.tag.clone(),
        gzipped: false,
        sight: list.sight,
        next: None,
    }
}

/// Answers with a list of rows or a page of it. The parameters of the next page follow `path`.
pub(super) async fn answer_rows(
    interface: Arc<Interface>,
    uri: &Uri,
    conditions: &Conditions,
    call: Call,
    path: String,
    list: impl FnOnce(&Api, &Caller, Option<ListPage>) -> Result<(Bytes, Option<ListPage>), Error>
    + Send
    + 'static,
) -> Response {
    let query = uri.query().unwrap_or_default().as_bytes();
    let page = match ListPage::parse(form_urlencoded::parse(query)) {
        Ok(page) => page,
        Err(errors) => return call.fail(&Error::from(errors)),
    };
    let caller = call.caller.clone();
    let found = on_worker(interface, caller.user, move |interface| {
        list(&interface.api, &caller, page)
    });
    match found.await {
        Ok((body, next)) => {
            let (tag, next) = (tag(&body), next.map(|next| link(&path, next)));
            let response = respond::list(body, next, &tag, Sight::WithoutPassword);
            respond::conditional(response, conditions)
        }
        Err(error) => call.fail(&error),
    }
}

/// The value of `Link` for the next page, whose parameters follow `path`.
pub(super) fn link(path: &str, page: ListPage) -> String {
    let after = page.after.unwrap_or_default();
    let limit = page.limit;
    format!("<{path}limit={limit}&after={after}>; rel=\"next\"")
}

#[cfg(test)]
mod tests {
    use super::{encode, encoded_already};
    use crate::api::Sight;
    use crate::api::list::List;
    use flate2::read::GzDecoder;
    use std::io::Read;

    fn list(bytes: usize) -> List {
        List::new(1, vec![b' '; bytes].into(), Sight::Whole)
    }

    #[test]
    fn a_long_list_is_compressed_once_where_accepted() {
        let long = list(10_000);
        assert!(!encode(&long, false).gzipped);
        assert!(encoded_already(&long, true).is_none());
        let (first, second) = (encode(&long, true), encode(&long, true));
        assert!(first.gzipped && second.gzipped);
        assert_eq!(first.body.as_ptr(), second.body.as_ptr());
        let mut plain = Vec::new();
        GzDecoder::new(&first.body[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, long.body);
        assert!(encoded_already(&long, true).is_some());
    }

    #[test]
    fn a_short_list_is_not_compressed() {
        assert!(!encode(&list(1399), true).gzipped);
        assert!(encode(&list(1400), true).gzipped);
    }
}
