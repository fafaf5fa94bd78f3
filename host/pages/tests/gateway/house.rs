//! A house with one page, `demo`, whose owner has the session `owner`, and a gateway before it.

use crate::client::Tls;
use crate::page::Server;
use http::HeaderMap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::secret::SecretText;
use wharf_pages::directory::{
    Answered, Directory, NoVisitor, Page, PageState, Right, Upstream, UpstreamAddress, Visitor,
};
use wharf_pages::{
    AcceptedConnection, Addresses, Gateway, GatewaySettings, PageInBrowser, PageLimits,
};

/// The domain of the pages.
pub const DOMAIN: &str = "pages.example";
pub const HOST: &str = "demo.pages.example";
pub const ORIGIN: &str = "https://demo.pages.example";

/// The password of the instance, and its value of `Authorization`.
pub const PASSWORD: &str = "open sesame";
pub const BASIC: &str = "Basic dXNlcjpvcGVuIHNlc2FtZQ==";

/// The credential that the page gets.
pub const CREDENTIAL: &str = "token of-the-page";

const STATE: &str = "ssssssssssssssssssssssssssssssss";

/// The answers of the house, which a test changes.
#[derive(Default)]
pub struct Answers {
    pub pages: HashMap<String, Page>,
    pub sessions: HashMap<String, UserId>,
    pub has_other_password: bool,
}

#[derive(Default)]
pub struct House {
    pub answers: Mutex<Answers>,
    pub attempts: AtomicUsize,
    /// The questions for a right that were uses of it.
    pub uses: AtomicUsize,
    /// The connections of visitors with a right of their own.
    pub welcomed: AtomicUsize,
    pub reports: Mutex<Vec<String>>,
}

impl House {
    /// Takes one of five attempts.
    fn attempt(&self) -> Result<(), NoVisitor> {
        let taken = self.attempts.fetch_add(1, Ordering::Relaxed);
        if taken < 5 {
            Ok(())
        } else {
            Err(NoVisitor::TooMany)
        }
    }

    fn right_of(&self, page: &Page, visitor: &Visitor) -> Option<Right> {
        let answers = self.answers.lock();
        let user = match visitor {
            Visitor::Session(id) => *answers.sessions.get(id)?,
            Visitor::Password(_) if answers.has_other_password => return None,
            Visitor::Password(_) => page.owner,
            Visitor::Anyone => page.is_public.then_some(page.owner)?,
        };
        let is_of_owner = user == page.owner;
        (is_of_owner || page.is_public).then_some(Right {
            user,
            is_owner: is_of_owner && matches!(visitor, Visitor::Session(_)),
        })
    }
}

impl Directory for House {
    fn page(&self, label: &str) -> Option<Page> {
        self.answers.lock().pages.get(label).cloned()
    }

    fn right(&self, page: &Page, visitor: &Visitor) -> Option<Right> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        self.right_of(page, visitor)
    }

    fn keeps_right(&self, page: &Page, visitor: &Visitor) -> bool {
        self.right_of(page, visitor).is_some()
    }

    fn refuse_password(&self, _: &str, _: IpAddr) -> NoVisitor {
        self.attempt().err().unwrap_or(NoVisitor::Wrong)
    }

    fn visitor_with_password(
        &self,
        _: &Page,
        password: &SecretText,
        _: IpAddr,
    ) -> Result<Visitor, NoVisitor> {
        self.attempt()?;
        if password.expose() == PASSWORD {
            Ok(Visitor::Password("digest".to_owned()))
        } else {
            Err(NoVisitor::Wrong)
        }
    }

    fn answered(&self, answered: &Answered<'_>) {
        let Answered {
            method,
            label,
            status,
            user,
            ..
        } = answered;
        let user = user.map(|user| user.0);
        self.reports
            .lock()
            .push(format!("{method} {label:?} {status:?} {user:?}"));
    }

    fn console_url(&self, instance: InstanceId) -> String {
        format!("https://wharf.example/{instance}")
    }
}

/// A running gateway before a page.
pub struct Running {
    pub house: Arc<House>,
    pub gateway: Arc<Gateway>,
    pub address: SocketAddr,
    pub tls: Tls,
    stop: watch::Sender<bool>,
}

impl Running {
    pub async fn start(server: &Server) -> Self {
        let limits = PageLimits {
            connections_per_page: 500,
            connections_per_user: 2_000,
        };
        Self::start_with(server, limits).await
    }

    pub async fn start_with(server: &Server, limits: PageLimits) -> Self {
        let house = Arc::<House>::default();
        let owner = UserId(1);
        {
            let mut answers = house.answers.lock();
            answers
                .pages
                .insert("demo".to_owned(), page("demo", owner, server));
            answers.sessions.insert("owner".to_owned(), owner);
            answers.sessions.insert("other".to_owned(), UserId(2));
        }
        let gateway = Arc::new(Gateway::new(
            Arc::clone(&house) as Arc<dyn Directory>,
            GatewaySettings {
                addresses: Addresses {
                    is_https: true,
                    domain: DOMAIN.to_owned(),
                    port: 443,
                },
                sign_in: "https://wharf.example/auth/page/".to_owned(),
                limits,
                cookie_key: Box::new(|| [7; 32]),
                client: Box::new(|peer: IpAddr, _: &HeaderMap| peer),
            },
        ));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let tls = Tls::new();
        tokio::spawn(accept(
            listener,
            (Arc::clone(&gateway), Arc::clone(&house)),
            tls.clone(),
            stopped.clone(),
        ));
        let watched = Arc::clone(&gateway);
        tokio::spawn(async move { watched.watch(stopped).await });
        Self {
            house,
            gateway,
            address,
            tls,
            stop,
        }
    }

    /// Changes the page `demo`.
    pub fn change(&self, change: impl FnOnce(&mut Page)) {
        change(self.house.answers.lock().pages.get_mut("demo").unwrap());
    }

    /// Ends a session.
    pub fn sign_out(&self, session: &str) {
        self.house.answers.lock().sessions.remove(session);
    }

    /// Lets a session in to the page `demo`, and returns its cookie.
    pub async fn cookie(&self, session: &str) -> String {
        let visitor = Visitor::Session(session.to_owned());
        let way = self
            .gateway
            .entrance(
                visitor,
                PageInBrowser {
                    label: "demo",
                    state: STATE,
                },
                "/lab",
            )
            .unwrap();
        let path = way.expose().strip_prefix(ORIGIN).unwrap();
        let enter = format!("cookie: __Host-wharf-enter={STATE}");
        let entered = self.ask("GET", path, &[&enter]).await;
        assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
        let (_, rest) = entered
            .split_once("set-cookie: __Host-wharf-page=")
            .unwrap();
        let (value, _) = rest.split_once(';').unwrap();
        format!("cookie: __Host-wharf-page={value}")
    }

    /// Sends a request to `demo` with these header lines, and returns the response.
    pub async fn ask(&self, method: &str, path: &str, lines: &[&str]) -> String {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n{lines}\r\n");
        self.exchange(request.as_bytes()).await
    }

    /// Sends bytes, and reads until the gateway closes the connection.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut connection = self.tls.connect(self.address).await;
        connection.send(bytes).await;
        connection.rest(Duration::from_secs(10)).await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A running page.
pub fn page(label: &str, owner: UserId, server: &Server) -> Page {
    let instance = InstanceId(Uuid::from_u128(u128::from(owner.0)));
    Page {
        label: label.to_owned(),
        moved_to: None,
        owner,
        instance,
        state: PageState::Running(Upstream {
            instance,
            incarnation: 1,
            address: UpstreamAddress::Node {
                host: "127.0.0.1".to_owned(),
                port: server.port,
            },
            credential: Some(SecretText::new(CREDENTIAL)),
        }),
        is_public: false,
    }
}

async fn accept(
    listener: TcpListener,
    (gateway, house): (Arc<Gateway>, Arc<House>),
    tls: Tls,
    stopped: watch::Receiver<bool>,
) {
    let mut stop = stopped.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stopped| *stopped) => return,
        };
        let (io, peer) = accepted.unwrap();
        io.set_nodelay(true).unwrap();
        let accepted = AcceptedConnection {
            peer: peer.ip(),
            welcome: {
                let house = Arc::clone(&house);
                Box::new(move || {
                    house.welcomed.fetch_add(1, Ordering::Relaxed);
                })
            },
            stopped: stopped.clone(),
        };
        let (gateway, tls) = (Arc::clone(&gateway), tls.clone());
        tokio::spawn(async move {
            if let Ok(io) = tls.accept(io).await {
                gateway.serve(io, accepted).await;
            }
        });
    }
}
