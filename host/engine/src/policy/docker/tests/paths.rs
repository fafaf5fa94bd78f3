//! Methods and paths.

use super::{ID, OTHER, ask, scope};
use crate::Body;

#[test]
fn other_paths_are_refused() {
    for (method, path) in [
        ("GET", "/containers/json?all=true".to_owned()),
        ("GET", "/containers/json?filters=%7B%7D".to_owned()),
        ("GET", "/containers/json?filters=%7B%22label%22%3A%5B%22io.wharf.installation%3Dother%22%5D%7D".to_owned()),
        ("GET", "/containers/json?filters=%7B%22name%22%3A%5B%22io.wharf.installation%3Dhome%22%5D%7D".to_owned()),
        ("GET", format!("/containers/wharf-{OTHER}/json")),
        ("GET", "/containers/postgres/json".to_owned()),
        ("GET", format!("/containers/wharf-{ID}/archive?path=/etc/shadow")),
        ("GET", format!("/containers/wharf-{ID}/logs?stdout=1")),
        ("GET", format!("/containers/wharf-{ID}/export")),
        ("GET", format!("/containers/wharf-{ID}/stats")),
        ("GET", format!("/containers/wharf-{ID}/stats?stream=true")),
        ("POST", format!("/containers/wharf-{ID}/exec")),
        ("POST", format!("/containers/wharf-{ID}/attach")),
        ("POST", format!("/containers/wharf-{ID}/rename?name=x")),
        ("POST", format!("/containers/wharf-{ID}/start?detachKeys=x")),
        ("POST", format!("/containers/wharf-{OTHER}/stop")),
        ("DELETE", format!("/containers/wharf-{OTHER}?force=true")),
        ("DELETE", format!("/containers/wharf-{ID}?link=true")),
        ("DELETE", "/networks/bridge".to_owned()),
        ("DELETE", "/networks/wharf-o2".to_owned()),
        ("GET", "/networks".to_owned()),
        ("POST", "/networks/prune".to_owned()),
        ("POST", "/containers/prune".to_owned()),
        ("POST", "/images/create?fromImage=docker.io%2Fevil".to_owned()),
        ("POST", "/images/create?fromSrc=http%3A%2F%2Fevil&repo=localhost%2Fwharf%2Fbase&tag=1".to_owned()),
        ("POST", "/images/load".to_owned()),
        ("POST", "/build".to_owned()),
        ("POST", "/commit?container=x".to_owned()),
        ("DELETE", "/images/localhost/wharf/base:1".to_owned()),
        ("GET", "/images/docker.io/evil/history".to_owned()),
        ("GET", "/volumes".to_owned()),
        ("POST", "/volumes/create".to_owned()),
        ("GET", "/events".to_owned()),
        ("POST", "/swarm/init".to_owned()),
        ("GET", "/secrets".to_owned()),
        ("POST", "/plugins/pull?remote=x".to_owned()),
        ("GET", "/system/df".to_owned()),
        ("POST", "/session".to_owned()),
        ("POST", "/grpc".to_owned()),
        ("GET", "/v4.3.1/libpod/containers/json".to_owned()),
        ("POST", "/v4.3.1/libpod/containers/create".to_owned()),
        ("GET", format!("/libpod/containers/wharf-{ID}/json")),
        ("GET", "/v1/info".to_owned()),
        ("GET", "/v1.41/v1.41/info".to_owned()),
        ("GET", format!("/containers/wharf-{ID}/../postgres/json")),
        ("GET", format!("/containers/wharf-{ID}%2f..%2fpostgres/json")),
        ("GET", format!("//containers/wharf-{ID}/json")),
        ("GET", format!("/containers/wharf-{}/json", ID.to_uppercase())),
        ("PATCH", "/info".to_owned()),
        ("POST", "/info".to_owned()),
    ] {
        assert!(ask(&scope(), method, &path, Body::Empty).is_err(), "{method} {path}");
    }
}
