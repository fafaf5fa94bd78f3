//! `GET /api/instance/`: the whole list, or a page of it.

pub use super::list_cache::List;

use super::{Api, Sight, wire};
use std::borrow::Cow;
use std::sync::Arc;
use wharf_domain::error::{Error, FieldErrors};
use wharf_ground::caller::Caller;

/// The largest `limit`, and that of a request with `after` alone.
const MAX_LIMIT: usize = 1000;

/// A part of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPage {
    /// The largest number of instances.
    pub limit: usize,
    /// The position after which the page begins, from the preceding page.
    pub after: Option<u64>,
}

impl ListPage {
    /// The first and largest page.
    pub fn first() -> Self {
        Self {
            limit: MAX_LIMIT,
            after: None,
        }
    }

    /// Reads the query parameters; none ask for the whole list. Unknown parameters are ignored.
    pub fn parse<'a>(
        query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Option<Self>, FieldErrors> {
        let mut errors = FieldErrors::default();
        let (mut limit, mut after) = (None, None);
        for (name, value) in query {
            let first = match &*name {
                "limit" => limit.replace(value).is_none(),
                "after" => after.replace(value).is_none(),
                _ => true,
            };
            if !first {
                errors.add(&name, "must be given once");
            }
        }
        let given = limit.is_some();
        let number = limit.and_then(|limit| limit.parse().ok());
        let number = number.filter(|limit| (1..=MAX_LIMIT).contains(limit));
        if given && number.is_none() {
            errors.add("limit", "must be an integer from 1 to 1000");
        }
        let position = after.as_ref().map(|after| after.parse().ok());
        if position == Some(None) {
            errors.add("after", "must be from the `Link` header of a page");
        }
        errors.into_result()?;
        Ok((given || position.is_some()).then(|| Self {
            limit: number.unwrap_or(MAX_LIMIT),
            after: position.flatten(),
        }))
    }
}

/// The rows of a page, or all, and the page that follows, if any. `fetch` gets the place after which they begin,
/// and the most.
pub fn page_of<V>(
    page: Option<ListPage>,
    place: impl Fn(&V) -> u64,
    fetch: impl FnOnce(Option<u64>, usize) -> Result<Vec<V>, Error>,
) -> Result<(Vec<V>, Option<ListPage>), Error> {
    let limit = page.map_or(usize::MAX - 1, |page| page.limit);
    // An extra row shows whether a page follows.
    let mut views = fetch(page.and_then(|page| page.after), limit + 1)?;
    let more = views.len() > limit;
    views.truncate(limit);
    let last = views.last().filter(|_| more);
    let next = page.zip(last).map(|(page, last)| ListPage {
        after: Some(place(last)),
        ..page
    });
    Ok((views, next))
}

/// The caller's whole list, if the cached one is valid.
pub fn cached(api: &Api, caller: &Caller) -> Result<Option<Arc<List>>, Error> {
    let Some(list) = api.lists.get(caller.user, Sight::of(caller.scopes)) else {
        return Ok(None);
    };
    let version = api.app.list_version(caller)?;
    Ok((list.version == version).then_some(list))
}

/// The caller's whole list, rendered unless the cached one is valid. It computes for long if the list
/// is long.
pub fn whole(api: &Api, caller: &Caller) -> Result<Arc<List>, Error> {
    let sight = Sight::of(caller.scopes);
    let cached = api.lists.get(caller.user, sight);
    let known = cached.as_ref().map(|list| list.version);
    match (api.app.list(caller, known)?, cached) {
        (Some((version, instances)), _) => {
            let body = wire::list(&instances, sight)?;
            let list = Arc::new(List::new(version, body, sight));
            api.lists.insert(caller.user, Arc::clone(&list));
            Ok(list)
        }
        (None, Some(list)) => Ok(list),
        (None, None) => Err(Error::internal("no list is cached")),
    }
}

/// A page of the caller's list, and the page that follows it, if any.
pub fn page(api: &Api, caller: &Caller, page: ListPage) -> Result<(List, Option<ListPage>), Error> {
    let fetch = |after, limit| api.app.list_page(caller, after, limit);
    let (instances, next) = page_of(Some(page), |view| view.instance.seq, fetch)?;
    let sight = Sight::of(caller.scopes);
    let list = List::new(0, wire::list(&instances, sight)?, sight);
    Ok((list, next))
}

#[cfg(test)]
mod tests {
    use super::ListPage;

    fn parse(query: &str) -> Result<Option<ListPage>, Vec<String>> {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let page = ListPage::parse(pairs.map(|(name, value)| (name.into(), value.into())));
        page.map_err(|errors| errors.0.keys().map(ToString::to_string).collect())
    }

    #[test]
    fn pages() {
        let page = |limit, after| Ok(Some(ListPage { limit, after }));
        assert_eq!(parse(""), Ok(None));
        assert_eq!(parse("x=1&offset=2"), Ok(None));
        assert_eq!(parse("limit=1"), page(1, None));
        assert_eq!(parse("after=0&limit=1000"), page(1000, Some(0)));
        assert_eq!(parse("after=1"), page(1000, Some(1)));
        for (query, fields) in [
            ("limit=0", &["limit"][..]),
            ("limit=1001", &["limit"]),
            ("limit=", &["limit"]),
            ("limit=1.0", &["limit"]),
            ("limit=-1&after=x", &["after", "limit"]),
            ("limit=1&limit=1", &["limit"]),
            ("limit=1&after=", &["after"]),
        ] {
            let fields = fields.iter().map(ToString::to_string).collect();
            assert_eq!(parse(query), Err(fields), "{query}");
        }
    }
}
