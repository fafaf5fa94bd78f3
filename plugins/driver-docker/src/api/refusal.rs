//! The meaning of answers with an error status.

use crate::lxcfs;
use serde::Deserialize;
use std::ops::Deref;
use wharf_guest::EngineAnswer;

/// The engine's answer to a request.
pub type Reply<T> = Result<T, Refusal>;

/// A request that the engine did not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(wharf_guest::Refusal);

impl Deref for Refusal {
    type Target = wharf_guest::Refusal;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Refusal {
    /// Reads `{"message": …}`, or else takes the whole body as the message.
    pub fn read(answer: &EngineAnswer) -> Self {
        #[derive(Deserialize)]
        struct Message {
            message: String,
        }
        let message = answer.json::<Message>().ok().map(|body| body.message);
        Self(wharf_guest::Refusal::new(
            answer.status,
            message,
            &answer.body,
        ))
    }

    /// The object does not exist; its kind depends on the request. Podman answers with 500 if a container goes
    /// while it reads it.
    pub fn is_not_found(&self) -> bool {
        self.status == 404 || self.says(&["no such container"])
    }

    /// The container does not exist.
    pub fn is_no_container(&self) -> bool {
        self.is_not_found() && self.says(&["no such container", "no container with name"])
    }

    /// The image is not on the node.
    pub fn is_no_image(&self) -> bool {
        self.says(&["no such image", "image not known"])
    }

    /// A network of the container does not exist.
    pub fn is_no_network(&self) -> bool {
        self.says(&["network"]) && self.says(&["not found", "no such network"])
    }

    /// The bridge of a network is missing on the node.
    pub fn is_no_bridge(&self) -> bool {
        self.says(&["could not find bridge"]) || self.says(&["to bridge"]) && self.says(&["failed"])
    }

    /// Another network has the addresses.
    pub fn is_subnet_taken(&self) -> bool {
        self.says(&[
            "pool overlaps",
            "is already used on the host",
            "conflicts with network",
        ])
    }

    /// Another object has the name. Podman answers with 500.
    pub fn is_name_taken(&self) -> bool {
        self.status == 409
            || self.says(&["name"]) && self.says(&["already in use"])
            || self.says(&["network already exists"])
    }

    /// The container is on the network already.
    pub fn is_attached(&self) -> bool {
        self.says(&["already exists in network", "already connected to network"])
    }

    /// The node has no hardware virtualisation.
    pub fn is_no_kvm(&self) -> bool {
        self.says(&["/dev/kvm"])
    }

    /// The node has no lxcfs, or it has ended.
    pub fn is_no_lxcfs(&self) -> bool {
        self.says(&[lxcfs::DIRECTORY])
    }

    /// The engine cannot mount files of lxcfs into the container, such as into its user namespace.
    pub fn is_unmountable_lxcfs(&self) -> bool {
        self.is_no_lxcfs()
            && self.says(&["mounting"])
            && self.says(&[
                "operation not permitted",
                "permission denied",
                "invalid argument",
            ])
    }

    /// A network has containers. Docker answers with 403, Podman with 409 or 500.
    pub fn is_in_use(&self) -> bool {
        matches!(self.status, 403 | 409) || self.says(&["network is being used"])
    }

    /// The engine does not support the request at all.
    pub fn is_unknown_request(&self) -> bool {
        self.is_not_found() && !self.is_no_container()
    }

    /// The engine's storage cannot limit the size of a container's disk.
    pub fn is_no_disk_limit(&self) -> bool {
        self.says(&[
            "storage-opt",
            "storage option",
            "project quota",
            "quota not supported",
            "btrfs quota",
        ])
    }

    /// Podman was killed in an earlier start of the container, which its runtime starts no more.
    pub fn is_half_started(&self) -> bool {
        self.says(&["runc start", "crun start"]) && self.says(&["exit status 1"])
    }

    /// The disk is full, or has reached its limit.
    pub fn is_no_space(&self) -> bool {
        self.says(&["no space left", "quota exceeded"])
    }

    /// The content exceeds the host's bounds for transfers.
    pub fn is_immovable(&self) -> bool {
        self.status == 413
    }

    /// The node has no such device, or no CDI file that describes it.
    pub fn is_no_device(&self) -> bool {
        self.says(&["cdi device", "could not select device driver"])
    }

    /// The kernel forbids the operation, such as a limit above the engine's own.
    pub fn is_forbidden(&self) -> bool {
        self.says(&["oci permission denied"])
    }

    /// The request itself is wrong; a retry would fail too.
    pub fn is_final(&self) -> bool {
        self.status == 400
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;
    use wharf_guest::EngineAnswer;

    fn refusal(status: u16, body: &str) -> Refusal {
        Refusal::read(&EngineAnswer {
            status,
            headers: Vec::new(),
            body: body.into(),
        })
    }

    #[test]
    fn messages_of_engines_are_recognised() {
        let image = refusal(
            404,
            r#"{"message":"No such image: localhost/wharf/base:1"}"#,
        );
        assert!(image.is_no_image() && !image.is_no_network());
        let network = refusal(404, r#"{"message":"network wharf-t1 not found"}"#);
        assert!(network.is_no_network() && !network.is_no_image());
        let podman = r#"{"cause":"network not found","message":"unable to find network with name or ID wharf-t1: network not found","response":500}"#;
        assert!(refusal(500, podman).is_no_network());
        let taken = r#"{"message":"creating container storage: the container name \"wharf-a\" is already in use by 12"}"#;
        assert!(refusal(500, taken).is_name_taken());
        assert!(refusal(409, r#"{"message":"Conflict."}"#).is_name_taken());
        let network = r#"{"message":"network name wharf-t1 already used: network already exists"}"#;
        assert!(refusal(500, network).is_name_taken());
        let subnet = r#"{"message":"subnet 10.1.0.0/24 is already used on the host"}"#;
        assert!(!refusal(500, subnet).is_name_taken() && refusal(500, subnet).is_subnet_taken());
        let pool = r#"{"message":"Pool overlaps with other one on this address space"}"#;
        assert!(refusal(403, pool).is_subnet_taken() && !refusal(403, pool).is_name_taken());
        let bridge = r#"{"message":"failed to create endpoint c on network wharf-n1: failed to add the host (veth1) <=> sandbox (veth2) pair interfaces: could not find bridge whfn1: route ip+net: no such network interface"}"#;
        assert!(refusal(500, bridge).is_no_bridge());
        let used = r#"{"message":"\"wharf-t1\" has associated containers with it. Use -f to forcibly delete containers and pods: network is being used"}"#;
        assert!(refusal(500, used).is_in_use());
        assert!(refusal(404, "Not Found").is_unknown_request());
        let limit = r#"{"message":"runc: runc create failed: error setting rlimit type 7: operation not permitted: OCI permission denied"}"#;
        assert!(refusal(500, limit).is_forbidden() && !refusal(500, taken).is_forbidden());
        let lxcfs = r#"{"message":"invalid mount config for type \"bind\": bind source path does not exist: /var/lib/lxcfs/proc/cpuinfo"}"#;
        assert!(refusal(400, lxcfs).is_no_lxcfs() && !refusal(500, limit).is_no_lxcfs());
        assert!(!refusal(400, lxcfs).is_unmountable_lxcfs());
        let locked = r#"{"message":"runc create failed: unable to start container process: error during container init: error mounting \"/var/lib/lxcfs/proc/cpuinfo\" to rootfs at \"/proc/cpuinfo\": mount /proc/self/fd/6:/proc/cpuinfo (via /proc/self/fd/14), flags: 0x5021: operation not permitted"}"#;
        assert!(refusal(500, locked).is_unmountable_lxcfs());
        let gone = r#"{"message":"no container with ID or name \"x\" found: no such container"}"#;
        assert!(!refusal(404, gone).is_unknown_request());
        let going = r#"{"message":"no container with ID 12 found in database: no such container"}"#;
        assert!(refusal(500, going).is_not_found() && refusal(500, going).is_no_container());
        let quota = r#"{"message":"--storage-opt is supported only for overlay over xfs with 'pquota' mount option"}"#;
        assert!(refusal(500, quota).is_no_disk_limit());
        let podman = r#"{"message":"storage option overlay.size and overlay.inodes not supported. Filesystem does not support, Project Quota"}"#;
        assert!(refusal(500, podman).is_no_disk_limit());
    }
}
