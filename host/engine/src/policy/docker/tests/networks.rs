//! Bodies that create and connect networks.

use super::{ID, ask, creation, scope};
use crate::Body;
use serde_json::{Value, json};
use wharf_requests::CallScope;

#[test]
fn networks_are_the_owners() {
    let good = json!({
        "Name": "wharf-n0a500100ome", "Driver": "bridge", "CheckDuplicate": true,
        "Labels": { "io.wharf.installation": "home" },
        "IPAM": { "Driver": "default", "Config": [{ "Subnet": "10.80.1.0/24", "Gateway": "10.80.1.1" }] },
        "Options": { "com.docker.network.bridge.name": "whfn0a500100ome" },
    });
    let send = |body: &Value| {
        ask(
            &scope(),
            "POST",
            "/networks/create",
            Body::Json(body.to_string()),
        )
    };
    send(&good).unwrap();
    for (pointer, key, value) in [
        ("", "Name", json!("bridge")),
        ("", "Driver", json!("host")),
        ("", "Driver", json!("macvlan")),
        ("", "Attachable", json!(true)),
        ("", "ConfigFrom", json!({ "Network": "x" })),
        ("", "Labels", json!({})),
        (
            "/Options",
            "com.docker.network.bridge.name",
            json!("docker0"),
        ),
        (
            "/Options",
            "com.docker.network.bridge.host_binding_ipv4",
            json!("0.0.0.0"),
        ),
        ("/Options", "parent", json!("eth0")),
        ("/IPAM/Config/0", "Subnet", json!("10.0.0.0/8")),
        ("/IPAM/Config/0", "Gateway", json!("10.80.1.2")),
        ("/IPAM/Config/0", "IPRange", json!("10.80.1.0/25")),
        ("/IPAM", "Options", json!({})),
    ] {
        let mut body = good.clone();
        body.pointer_mut(pointer).unwrap()[key] = value.clone();
        assert!(send(&body).is_err(), "{pointer} {key} {value}");
    }
    let attach = |body: Value| {
        ask(
            &scope(),
            "POST",
            "/networks/wharf-n0a500100ome/connect",
            Body::Json(body.to_string()),
        )
    };
    let address = json!({ "IPAMConfig": { "IPv4Address": "10.80.1.7" } });
    assert!(
        attach(json!({ "Container": format!("wharf-{ID}"), "EndpointConfig": address })).is_ok()
    );
    assert!(attach(json!({ "Container": "postgres" })).is_err());
    assert!(attach(json!({})).is_err());
}

#[test]
fn only_a_survey_sees_the_networks_and_images_of_others() {
    let survey = CallScope::survey("home", &["localhost/wharf/base:1".into()]);
    ask(&survey, "GET", "/networks", Body::Empty).unwrap();
    ask(
        &survey,
        "GET",
        "/images/localhost/wharf/base:1/json",
        Body::Empty,
    )
    .unwrap();
    assert!(ask(&survey, "GET", "/images/other:1/json", Body::Empty).is_err());
    assert!(ask(&survey, "DELETE", "/networks/x", Body::Empty).is_err());
    assert!(ask(&CallScope::node("home"), "GET", "/networks", Body::Empty).is_err());
}

/// A network of an earlier version has no part of the installation's id in its name.
#[test]
fn a_network_keeps_its_earlier_name_and_none_is_made_with_it() {
    const EARLIER: &str = "wharf-n0a50010018";
    let path = format!("/networks/{EARLIER}");
    for method in ["GET", "DELETE"] {
        ask(&scope(), method, &path, Body::Empty).unwrap();
    }
    let body = json!({
        "Container": format!("wharf-{ID}"),
        "EndpointConfig": { "IPAMConfig": { "IPv4Address": "10.80.1.7" } },
    });
    let connect = Body::Json(body.to_string());
    ask(&scope(), "POST", &format!("{path}/connect"), connect).unwrap();
    let text = creation()
        .to_string()
        .replace("wharf-n0a500100ome", EARLIER);
    let create = format!("/containers/create?name=wharf-{ID}");
    ask(&scope(), "POST", &create, Body::Json(text)).unwrap();
    let network = json!({
        "Name": EARLIER, "Driver": "bridge", "Labels": { "io.wharf.installation": "home" },
        "IPAM": { "Config": [{ "Subnet": "10.80.1.0/24", "Gateway": "10.80.1.1" }] },
        "Options": { "com.docker.network.bridge.name": "whfn0a50010018" },
    });
    let make = Body::Json(network.to_string());
    assert!(ask(&scope(), "POST", "/networks/create", make).is_err());
    // Other addresses, or the end of another installation's id.
    for other in [
        "wharf-n0a50020018",
        "wharf-n0a50010019",
        "wharf-n0a500100abc",
    ] {
        assert!(ask(&scope(), "GET", &format!("/networks/{other}"), Body::Empty).is_err());
    }
}

#[test]
fn podmans_own_way_makes_the_same_network_and_no_other() {
    let good = json!({
        "name": "wharf-n0a500100ome", "driver": "bridge", "network_interface": "whfn0a500100ome",
        "subnets": [{ "subnet": "10.80.1.0/24", "gateway": "10.80.1.1" }],
        "labels": { "io.wharf.installation": "home" },
        "dns_enabled": false, "options": { "isolate": "true" },
    });
    let send = |body: &Value| {
        let path = "/v4.0.0/libpod/networks/create";
        ask(&scope(), "POST", path, Body::Json(body.to_string()))
    };
    send(&good).unwrap();
    for (pointer, key, value) in [
        ("", "name", json!("podman")),
        ("", "driver", json!("macvlan")),
        ("", "network_interface", json!("eth0")),
        ("", "dns_enabled", json!(true)),
        ("", "routes", json!([])),
        ("", "labels", json!({})),
        ("", "ipam_options", json!({ "driver": "dhcp" })),
        ("/options", "isolate", json!("false")),
        ("/options", "parent", json!("eth0")),
        ("/subnets/0", "subnet", json!("10.0.0.0/8")),
        ("/subnets/0", "lease_range", json!({})),
    ] {
        let mut body = good.clone();
        body.pointer_mut(pointer).unwrap()[key] = value.clone();
        assert!(send(&body).is_err(), "{pointer} {key} {value}");
    }
}
