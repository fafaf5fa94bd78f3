//! A driver that asks for what it must not have. It names requests of the file for Docker or for Incus,
//! which the host writes.

use crate::engine::{AskedRequest, RecordingEngine};
use crate::fixtures::Plugins;
use crate::uuid;
use serde_json::Value;
use wharf_tests::{Ports, Server, until};

/// Words of the lists of requests, and what they stand for.
const WORDS: [(&str, &str); 5] = [
    ("DIGEST", "digest=0123456789abcdef"),
    // The container of another instance.
    ("=OTHER", "=wharf-11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f"),
    // The container of the instance of the call, as the driver replaces it.
    ("=OWN", "=wharf-INSTANCE"),
    ("EMPTY", ""),
    ("␠", " "),
];

/// A request.
struct Ask {
    /// How it is sent.
    how: &'static str,
    name: String,
    arguments: Vec<(String, String)>,
    /// Words of the outcome.
    words: &'static str,
}

impl Ask {
    /// Parses `HOW NAME ARGUMENT=VALUE … -> WORDS`.
    fn parse(line: &'static str) -> Self {
        let (asked, words) = line.split_once(" -> ").unwrap();
        let mut parts = asked.split(' ');
        let how = parts.next().unwrap();
        let mut parts = parts.map(|part| {
            let fill = |part: String, (word, text): &(&str, &str)| part.replace(word, text);
            WORDS.iter().fold(part.to_owned(), fill)
        });
        let name = parts.next().unwrap();
        let arguments = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        Self {
            how,
            name,
            arguments: arguments.collect(),
            words,
        }
    }
}

/// The requests of a function, as the node's settings list them.
fn listed(function: &str, asks: &[Ask]) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let one = |ask: &Ask| {
        let arguments = ask.arguments.iter();
        let arguments =
            arguments.map(|(name, value)| format!("[{}, {}]", quoted(name), quoted(value)));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let (how, name) = (ask.how, quoted(&ask.name));
        format!("{{ how = \"{how}\", name = {name}, arguments = [{arguments}] }}")
    };
    let asks = asks.iter().map(one).collect::<Vec<_>>();
    format!("{function} = [{}]", asks.join(", "))
}

/// Waits for the outcome of each request, and compares it.
fn check(server: &Server, function: &str, asks: &[Ask]) {
    for (n, ask) in asks.iter().enumerate() {
        let Ask {
            how,
            name,
            arguments,
            words,
        } = ask;
        let outcome = format!("{function} {n}: ");
        let line = until(&outcome, || {
            let log = server.log();
            let line = log.lines().find(|line| line.contains(&outcome));
            Ok(line.map(str::to_owned))
        });
        let line = line.unwrap();
        let outcome = line.split(&outcome).nth(1).unwrap();
        assert!(
            outcome.contains(words),
            "{function}: {how} {name} {arguments:?}: {outcome} without {words:?}"
        );
        assert!(
            words.starts_with("refused") == outcome.starts_with("refused"),
            "{function}: {how} {name} {arguments:?}: {outcome}"
        );
    }
}

/// Runs the driver with these requests, and returns those that reached the engine, and the instance.
pub fn attack(
    driver: &str,
    settings: &str,
    asks: [&[&'static str]; 3],
) -> (Vec<AskedRequest>, String) {
    let functions = ["probe", "ensure", "stats"];
    let asks = asks.map(|lines| {
        lines
            .iter()
            .map(|line| Ask::parse(line))
            .collect::<Vec<_>>()
    });
    let plugins = Plugins::driver();
    let engine = RecordingEngine::refusing();
    let approved = if driver == "docker" {
        String::new()
    } else {
        plugins.with_requests_of(driver)
    };
    let lists = [0, 1, 2].map(|n| listed(functions[n], &asks[n])).join(", ");
    let settings = format!(
        "plugins_dir = \"{}\"\n{}{approved}[[node]]\nname = \"n1\"\ndriver = \"hostile\"\n\
         endpoint = \"unix://{}\"\nlan_cidr = \"10.80.0.0/16\"\n\
         capacity = {{ n_vcpus = 8, mem_gib = 8, disk_size_gib = 100 }}\n\
         settings = {{ mode = \"asks\", {settings}asks = {{ {lists} }} }}\n",
        plugins.path().display(),
        Ports::take().settings(),
        engine.socket().display(),
    );
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    let id = uuid(&created).to_owned();
    api.wait_for(&id, "running").unwrap();
    let stats = api.get(&format!("/api/instance/{id}/stats/")).unwrap();
    stats.expect(200).unwrap();
    for (function, asks) in functions.into_iter().zip(&asks) {
        check(&server, function, asks);
    }
    api.delete(&id).unwrap().expect(204).unwrap();
    server.finish().unwrap();
    (engine.asked(), id)
}

/// Requires that exactly these requests reached the engine, by the beginnings of their lines.
pub fn reached(asked: &[AskedRequest], allowed: &[String]) {
    for line in allowed {
        let came = asked.iter().any(|asked| asked.line.starts_with(line));
        assert!(came, "{line} did not reach the engine");
    }
    for asked in asked {
        let is_allowed = allowed.iter().any(|line| asked.line.starts_with(line));
        assert!(is_allowed, "{asked:?}");
        assert!(
            asked
                .headers
                .iter()
                .all(|header| !header.contains("upgrade"))
        );
    }
}
