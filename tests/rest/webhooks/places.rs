//! The requests that run at once.

use super::{LOOPBACK, Receiver, create, post, start_with};
use crate::until_true;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The users with slow receivers. With 20 webhooks each, they have more than 256 requests.
const USERS: usize = 13;
/// Less than a request waits for the answer of its receiver, which is 20 s.
const SOON: Duration = Duration::from_secs(10);

/// A receiver that takes connections and never answers. Returns its URL and the number of connections.
fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for connection in listener.incoming() {
            open.push(connection);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (url, taken)
}

#[test]
fn slow_receivers_of_many_users_delay_no_other_user() {
    let (server, ann) = start_with(LOOPBACK);
    let receiver = Receiver::start();
    let (webhook, _) = create(&ann, &receiver, &[]);
    let (url, taken) = silent();
    let mut slow = Receiver::start();
    slow.url = url;
    let mut hooks = Vec::new();
    for user in 0..USERS {
        let user = server.user(&format!("user-{user}@example.com")).unwrap();
        for _ in 0..20 {
            hooks.push((user.clone(), create(&user, &slow, &[]).0));
        }
    }
    let begin = Instant::now();
    for (user, hook) in &hooks {
        post(user, &format!("{hook}test/"), 202);
    }
    // Each user has some places at once.
    until_true("the slow receivers have requests", || {
        taken.load(Ordering::SeqCst) >= 8 * USERS
    });
    let asked = Instant::now();
    post(&ann, &format!("{webhook}test/"), 202);
    receiver.wait(1);
    let waited = asked.elapsed();
    assert!(
        waited < SOON,
        "{waited:?}, {:?} after the first",
        begin.elapsed()
    );
}
