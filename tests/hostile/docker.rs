//! A driver for Docker that asks for what it must not have.

use crate::requests::{attack, reached};
use serde_json::json;

/// The requests of the call that creates the instance. The first ones are allowed.
const OF_CREATION: &[&str] = &[
    "send create DIGEST -> sent: 500",
    // A driver may repeat itself.
    "send create DIGEST name=OWN -> sent: 500",
    "send stop grace=5 -> sent: 500",
    "job pull-image -> sent: a job",
    "transfer content -> sent: a transfer",
    "show create DIGEST -> written: POST /containers/create?name=wharf-",
    // Nothing of the files is shown.
    "show write-files -> ?path=%2F ",
    // Ports on an address of its choice.
    "send create DIGEST address=0.0.0.0 -> refused: create: there is no argument",
    "send create-podman DIGEST host_ip=0.0.0.0 -> refused: create-podman: there is no argument",
    // Names that the file does not have.
    "send EMPTY -> refused: ",
    "send exec -> refused: ",
    "send Create DIGEST -> refused: ",
    "send create␠ DIGEST -> refused: ",
    "send request.create DIGEST -> refused: ",
    "send ../create DIGEST -> refused: ",
    "send GIANT -> refused: ",
    "show POST␠/containers/create -> refused: ",
    // Another purpose.
    "job create DIGEST -> refused: create",
    "transfer create DIGEST -> refused: ",
    "send pull-image -> refused: pull-image",
    "send content -> refused: ",
    "job content -> refused: ",
    // Requests of other calls.
    "send mark-store -> refused: mark-store",
    "send read-store -> refused: read-store",
    "send survey-networks -> refused: survey-networks",
    "send list -> refused: list",
    "send list-machines -> refused: list-machines",
    "show mark-store -> refused: mark-store",
    // Volumes: those of other calls, of other owners, and directories of the node.
    "send create DIGEST mounts=/ -> refused: create: there is no argument",
    "send read-mount mount=11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f -> refused: read-mount: argument mount",
    "send create-volume -> refused: create-volume",
    "send create-holder -> refused: create-holder",
    "send delete-volume -> refused: delete-volume",
    "send delete-holder -> refused: delete-holder",
    // Other instances' containers.
    "send create DIGEST name=OTHER -> refused: create: argument name",
    "send read container=OTHER -> refused: read: argument container",
    "send start container=OTHER -> refused: start: argument container",
    "send stop container=OTHER grace=0 -> refused: stop: argument container",
    "send delete container=OTHER -> refused: delete: argument container",
    "send resize container=OTHER -> refused: resize: argument container",
    "send write-files container=OTHER -> refused: write-files: argument container",
    "send connect container=OTHER -> refused: connect: argument container",
    "transfer content container=OTHER -> refused: content: argument container",
    // Other spellings.
    "send start container= -> refused: start: argument container",
    "send start container=postgres -> refused: start: argument container",
    "send start container=wharf-INSTANCE/../postgres -> refused: start: argument container",
    "send start container=wharf-INSTANCE%2f.. -> refused: start: argument container",
    "send start container=wharf-INSTANCE␠ -> refused: start: argument container",
    "send start container=wharf-INSTANCE?x=1 -> refused: start: argument container",
    "send start container=wharf-{instance} -> refused: start: argument container",
    "send start container={learnt.container} -> refused: start: argument container",
    "send start container=GIANT -> refused: start",
    "send start container=OWN container=OTHER -> refused: start: the argument",
    // Values outside the arguments' sets.
    "send create -> refused: create: argument digest",
    "send create digest=0123456789ABCDEF -> refused: create: argument digest",
    "send create digest=0123456789abcdef0 -> refused: create: argument digest",
    "send create digest=0123456789abcdef\n -> refused: create: argument digest",
    "send create digest=GIANT -> refused: create",
    "send create DIGEST grown-from=1T -> refused: create: argument grown-from",
    "send create DIGEST network=host -> refused: create: argument network",
    "send create DIGEST own-view=yes -> refused: create: argument own-view",
    "send stop grace=99999999 -> refused: stop: argument grace",
    "send stop grace=-1 -> refused: stop: argument grace",
    "send stop -> refused: stop: argument grace",
    // Arguments that no container has, and one before the engine has refused a limit.
    "send create DIGEST kvm=true -> refused: create: argument kvm",
    "send create DIGEST no-disk-limit=true -> refused: create: argument no-disk-limit",
    // Arguments that the file does not have.
    "send create DIGEST Privileged=true -> refused: create: ",
    "send create DIGEST image=evil -> refused: create: ",
    // A creation without its variables, and labels and networks of another owner.
    "send create DIGEST environment= -> refused: create: ",
    "send create DIGEST io.wharf.network=n0a500200abc -> refused: create: ",
    "send create DIGEST io.wharf.owner=another -> refused: create: ",
    "send create-network network=n0a500200abc -> refused: create-network: argument network",
    "send create-network mtu=68 -> refused: create-network: ",
    "send connect network=public -> refused: connect: ",
    "send ping GIANT=x -> refused: ping: ",
    // Ids that the engine has not told in this call.
    "send set-ports -> refused: set-ports",
    "send set-ports program=0123456789ab -> refused: set-ports: argument program",
    "send resize-back -> refused: resize-back",
];

/// The requests of a call that reads the instance.
const OF_STATS: &[&str] = &[
    "send read -> sent: 500",
    "send start -> refused: start",
    "send delete -> refused: delete",
    "send create DIGEST -> refused: create",
    "job pull-image -> refused: pull-image",
    "transfer content -> refused: ",
    "show create DIGEST -> refused: create",
];

/// The requests of a call about the node.
const OF_PROBE: &[&str] = &[
    "send list -> sent: 500",
    "send mark-store -> refused: mark-store",
    "send read -> refused: read",
    "send start container=OTHER -> refused: start",
    "send find-image -> refused: find-image",
];

#[test]
fn a_driver_for_docker_gets_the_requests_of_its_call_alone() {
    let (asked, id) = attack("docker", "", [OF_PROBE, OF_CREATION, OF_STATS]);
    let own = format!("wharf-{id}");
    let creation = format!("POST /containers/create?name={own} ");
    let allowed = [
        creation.clone(),
        format!("POST /containers/{own}/stop?t=5 "),
        "POST /images/create?fromImage=".to_owned(),
        format!("GET /containers/{own}/changes "),
        format!("GET /containers/{own}/json "),
        "GET /containers/json?".to_owned(),
    ];
    reached(&asked, &allowed);
    let mut creations = asked
        .iter()
        .filter(|asked| asked.line.starts_with(&creation));
    let one = creations.next().unwrap();
    assert_eq!(one.body["HostConfig"]["CapDrop"], json!(["NET_RAW"]));
    creations.for_each(|other| assert_eq!(one.body, other.body));
}
