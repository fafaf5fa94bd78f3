//! Paths and methods.

use http::Method;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    List,
    Create,
    Get,
    Update,
    Delete,
    Stop,
    Restart,
    AddPort,
    RemovePort,
    Stats,
    Health,
    Ready,
    OpenApi,
    Docs,
    DocsFile,
}

impl Endpoint {
    /// Takes a JSON body; the others ignore theirs.
    pub(super) fn takes_json(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::AddPort | Self::RemovePort
        )
    }
}

/// One path template and what its methods do.
#[derive(Debug)]
pub(super) struct Route {
    /// As the document spells it; what the log shows.
    pub(super) template: &'static str,
    /// Needs no key.
    pub(super) public: bool,
    /// `Allow`.
    allow: &'static str,
    methods: &'static [(Method, Endpoint)],
}

impl Route {
    /// The endpoint of a method, or the methods that there are. HEAD is GET whose body the
    /// connection leaves out.
    pub(super) fn endpoint(&self, method: &Method) -> Result<Endpoint, &'static str> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let found = self.methods.iter().find(|(m, _)| m == method);
        found.map(|(_, endpoint)| *endpoint).ok_or(self.allow)
    }
}

const ROUTES: &[Route] = &[
    Route {
        template: "/api/instance/",
        public: false,
        allow: "GET, HEAD, POST",
        methods: &[
            (Method::GET, Endpoint::List),
            (Method::POST, Endpoint::Create),
        ],
    },
    Route {
        template: "/api/instance/{uuid}/",
        public: false,
        allow: "GET, HEAD, PATCH, DELETE",
        methods: &[
            (Method::GET, Endpoint::Get),
            (Method::PATCH, Endpoint::Update),
            (Method::DELETE, Endpoint::Delete),
        ],
    },
    Route {
        template: "/api/instance/{uuid}/stop/",
        public: false,
        allow: "POST",
        methods: &[(Method::POST, Endpoint::Stop)],
    },
    Route {
        template: "/api/instance/{uuid}/restart/",
        public: false,
        allow: "POST",
        methods: &[(Method::POST, Endpoint::Restart)],
    },
    Route {
        template: "/api/instance/{uuid}/add-port/",
        public: false,
        allow: "POST",
        methods: &[(Method::POST, Endpoint::AddPort)],
    },
    Route {
        template: "/api/instance/{uuid}/remove-port/",
        public: false,
        allow: "POST",
        methods: &[(Method::POST, Endpoint::RemovePort)],
    },
    Route {
        template: "/api/instance/{uuid}/stats/",
        public: false,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::Stats)],
    },
    Route {
        template: "/api/openapi.json",
        public: true,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::OpenApi)],
    },
    Route {
        template: "/api/docs/",
        public: true,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::Docs)],
    },
    Route {
        template: "/api/docs/{file}",
        public: true,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::DocsFile)],
    },
    Route {
        template: "/healthz",
        public: true,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::Health)],
    },
    Route {
        template: "/readyz",
        public: true,
        allow: "GET, HEAD",
        methods: &[(Method::GET, Endpoint::Ready)],
    },
];

/// What a path leads to.
#[derive(Debug)]
pub(super) struct Found<'p> {
    pub(super) route: &'static Route,
    /// The variable segment as the path has it, or nothing.
    pub(super) segment: &'p str,
}

/// Finds routes.
#[derive(Debug)]
pub(super) struct Router(matchit::Router<&'static Route>);

impl Router {
    /// All routes.
    pub(super) fn new() -> Result<Self, matchit::InsertError> {
        let mut router = matchit::Router::new();
        for route in ROUTES {
            router.insert(route.template, route)?;
        }
        Ok(Self(router))
    }

    /// The route of a path.
    pub(super) fn find<'p>(&self, path: &'p str) -> Option<Found<'p>> {
        let found = self.0.at(path).ok()?;
        Some(Found {
            route: found.value,
            segment: found.params.iter().next().map_or("", |(_, value)| value),
        })
    }

    /// The route that the path would lead to if it ended with a slash.
    pub(super) fn find_slashed(&self, path: &str) -> Option<&'static Route> {
        if path.ends_with('/') {
            return None;
        }
        self.0
            .at(&format!("{path}/"))
            .ok()
            .map(|found| *found.value)
    }
}

/// Undoes percent-encoding. A segment in which that is not possible names nothing, and is left as
/// it is.
pub(super) fn decode(segment: &str) -> std::borrow::Cow<'_, str> {
    if !segment.contains('%') {
        return segment.into();
    }
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (decoded, after) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |b: u8| {
                    char::from(b)
                        .to_digit(16)
                        .and_then(|d| u8::try_from(d).ok())
                };
                match (digit(*high), digit(*low)) {
                    (Some(high), Some(low)) => (high << 4 | low, after),
                    _ => return segment.into(),
                }
            }
            (b'%', _) => return segment.into(),
            _ => (byte, after),
        };
        out.push(decoded);
        rest = after;
    }
    String::from_utf8(out).map_or_else(|_| segment.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, ROUTES, Router, decode};
    use http::Method;
    use std::collections::BTreeSet;

    #[test]
    fn paths_and_methods() {
        let router = Router::new().unwrap();
        for (method, path, endpoint, segment) in [
            (Method::GET, "/api/instance/", Endpoint::List, ""),
            (Method::HEAD, "/api/instance/", Endpoint::List, ""),
            (Method::PATCH, "/api/instance/a-b/", Endpoint::Update, "a-b"),
            (
                Method::POST,
                "/api/instance/stop/stop/",
                Endpoint::Stop,
                "stop",
            ),
            (Method::GET, "/api/instance/x/stats/", Endpoint::Stats, "x"),
            (Method::GET, "/api/docs/", Endpoint::Docs, ""),
            (Method::GET, "/api/docs/a.js", Endpoint::DocsFile, "a.js"),
        ] {
            let found = router.find(path).unwrap();
            assert_eq!(found.route.endpoint(&method), Ok(endpoint), "{path}");
            assert_eq!(found.segment, segment, "{path}");
        }
        for path in [
            "/",
            "/api/",
            "/api/instance//",
            "/api/instance/a/b/",
            "/api/instance/a/stop/x/",
            "//api/instance/",
            "/healthz/",
        ] {
            assert!(router.find(path).is_none(), "{path}");
        }
        let instance = router.find("/api/instance/a/").unwrap().route;
        assert_eq!(
            instance.endpoint(&Method::POST),
            Err("GET, HEAD, PATCH, DELETE")
        );
    }

    #[test]
    fn missing_slashes() {
        let router = Router::new().unwrap();
        assert!(router.find("/api/instance").is_none());
        assert_eq!(
            router.find_slashed("/api/instance").unwrap().template,
            "/api/instance/"
        );
        assert_eq!(
            router
                .find_slashed("/api/instance/a/stop")
                .unwrap()
                .template,
            "/api/instance/{uuid}/stop/"
        );
        assert_eq!(
            router.find_slashed("/api/docs").unwrap().template,
            "/api/docs/"
        );
        assert!(router.find_slashed("/healthz").is_none());
        assert!(router.find_slashed("/api/instance/").is_none());
    }

    #[test]
    fn segments() {
        assert_eq!(decode("a-b"), "a-b");
        assert_eq!(decode("%61%2Db"), "a-b");
        for as_it_is in ["%", "%6", "%zz", "%ff", "a%"] {
            assert_eq!(decode(as_it_is), as_it_is);
        }
    }

    /// The document and the routes name the same paths and methods.
    #[test]
    fn the_document_has_every_route() {
        let document = include_str!("../../../schemas/generated/openapi.json");
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let mut documented = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item
                .as_object()
                .unwrap()
                .keys()
                .filter(|k| *k != "parameters")
            {
                documented.insert((path.clone(), method.to_uppercase()));
            }
        }
        let undocumented = ["/api/openapi.json", "/api/docs/", "/api/docs/{file}"];
        let mut routed = BTreeSet::new();
        for route in ROUTES
            .iter()
            .filter(|r| !undocumented.contains(&r.template))
        {
            for (method, _) in route.methods {
                routed.insert((route.template.to_owned(), method.to_string()));
                assert!(route.allow.split(", ").any(|m| m == method.as_str()));
            }
        }
        assert_eq!(documented, routed);
    }
}
