//! Answers with an error.
//!
//! Incus answers most errors with the status 500, so the driver recognises them by their text.

use serde::Deserialize;
use std::ops::Deref;
use wharf_guest::EngineAnswer;

/// The engine's answer to a request.
pub type Reply<T> = Result<T, Refusal>;

/// A request that the engine did not carry out. Its status is that of the failed operation, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(wharf_guest::Refusal);

impl Deref for Refusal {
    type Target = wharf_guest::Refusal;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    r#type: String,
    error: String,
    error_code: u16,
}

impl Refusal {
    /// Whether an answer with a status of success tells of an error.
    pub fn is_inside(answer: &EngineAnswer) -> bool {
        answer
            .json::<Failure>()
            .is_ok_and(|failure| failure.r#type == "error")
    }

    /// Reads the engine's message, or else takes the whole body as the message.
    pub fn read(answer: &EngineAnswer) -> Self {
        let failure = answer.json::<Failure>().unwrap_or_default();
        let message = Some(failure.error).filter(|error| !error.is_empty());
        let status = match failure.error_code {
            0 => answer.status,
            code => code,
        };
        Self(wharf_guest::Refusal::new(status, message, &answer.body))
    }

    /// The object does not exist; its kind depends on the request.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }

    /// The project has an instance of this name, on any member, or the instance a snapshot of the name.
    pub fn is_name_taken(&self) -> bool {
        self.status == 409
            || self.says(&[
                "unique constraint failed: instances.",
                "unique constraint failed: instances_snapshots.",
                "already exists",
                "already in use",
            ])
    }

    /// The instance has a file or a directory at the path.
    pub fn is_present(&self) -> bool {
        self.says(&["file exists"])
    }

    /// The project has no such image.
    pub fn is_no_image(&self) -> bool {
        self.says(&["image not provided", "image alias", "image not found"])
    }

    /// The instance runs.
    pub fn is_running(&self) -> bool {
        self.says(&["already running", "instance is running"])
    }

    /// The instance does not run.
    pub fn is_stopped(&self) -> bool {
        self.says(&["already stopped", "is not running"])
    }

    /// Another operation of the instance is in progress.
    pub fn is_busy(&self) -> bool {
        self.says(&["instance is busy", "create operation", "being started"])
    }

    /// The operation that [`Self::is_busy`] is about starts the instance.
    pub fn is_starting(&self) -> bool {
        self.says(&["running a \"start\" operation", "being started"])
    }

    /// A wait for an operation has reached its own limit. A failure of the operation has more words.
    pub fn is_still_running(&self) -> bool {
        self.message == "context deadline exceeded"
    }

    /// The instance did not end within the grace.
    pub fn is_too_slow(&self) -> bool {
        self.says(&[
            "failed shutting down",
            "context deadline exceeded",
            "timed out",
        ])
    }

    /// Instances use the network or the volume.
    pub fn is_in_use(&self) -> bool {
        self.says(&["currently in use", "still in use"])
    }

    /// Another request removes the same storage, which has gone between two steps of this one.
    pub fn is_being_removed(&self) -> bool {
        self.says(&["failed deleting subvolume"]) && self.says(&["no such file"])
    }

    /// A member of the cluster that has to take part is down, or has just gone down.
    pub fn is_without_member(&self) -> bool {
        let is_down = self.says(&["peer node"]) && self.says(&["is down"]);
        is_down || self.says(&["failed to connect to peer", "failed to notify peer"])
    }

    /// The disk has no room for a file of the engine.
    pub fn is_full(&self) -> bool {
        self.says(&["disk quota exceeded"])
    }

    /// The pool has the earlier disk of an interrupted restore.
    pub fn is_left_over(&self) -> bool {
        self.says(&[".incustmp"]) && self.is_present()
    }

    /// The snapshot of a restore does not exist.
    pub fn is_absent(&self) -> bool {
        self.says(&["does not exist"])
    }

    /// The project permits no snapshots.
    pub fn is_forbidden(&self) -> bool {
        self.says(&["doesn't allow for snapshot creation"])
    }

    /// The project's own limit of its disks does not allow for more.
    pub fn is_over_project(&self) -> bool {
        self.says(&["reached maximum aggregate value"])
    }

    /// Another network has the address.
    pub fn is_overlap(&self) -> bool {
        self.says(&["overlaps with another"])
    }

    /// The target of a move has the disk of another attempt.
    pub fn is_copied_already(&self) -> bool {
        self.says(&["already exists on migration target storage"])
    }

    /// Another instance still has the address.
    pub fn is_address_taken(&self) -> bool {
        self.says(&["already defined on another nic"])
    }

    /// The host has no room for the content, or does not take it.
    pub fn is_immovable(&self) -> bool {
        self.status == 413
    }

    /// The content of an image does not become a disk.
    pub fn is_unpacking(&self) -> bool {
        self.says(&["unpack failed"])
    }

    /// Another attempt has the same result.
    pub fn is_final(&self) -> bool {
        self.status == 400
            || self.status == 403
            || self.says(&[
                "failed checking if instance creation allowed",
                "invalid config",
                "invalid devices",
                "device validation failed",
            ])
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;
    use wharf_guest::EngineAnswer;

    fn answer(status: u16, body: &str) -> EngineAnswer {
        EngineAnswer {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    #[test]
    fn a_failed_operation_is_an_error_inside_an_answer() {
        let failed = answer(
            200,
            r#"{"type":"error","error_code":500,"error":"Failed creating instance record: Add instance info to the database: Failed to create \"instances\" entry: UNIQUE constraint failed: instances.project_id, instances.name","metadata":null}"#,
        );
        assert!(Refusal::is_inside(&failed));
        let refusal = Refusal::read(&failed);
        assert!(refusal.is_name_taken() && refusal.status == 500);
        assert!(!Refusal::is_inside(&answer(
            200,
            r#"{"type":"sync","metadata":{}}"#
        )));
        assert!(!Refusal::is_inside(&answer(200, "incus_procs_total 3")));
    }

    #[test]
    fn a_start_in_progress_is_told_from_other_operations() {
        let busy = |text: &str| {
            let failed = format!(r#"{{"type":"error","error_code":400,"error":{text:?}}}"#);
            Refusal::read(&answer(200, &failed))
        };
        for other in ["stop", "restart", "restore", "update", "migrate"] {
            let other = busy(&format!("Instance is busy running a {other:?} operation"));
            assert!(other.is_busy() && !other.is_starting());
        }
        let start = busy(r#"Instance is busy running a "start" operation"#);
        assert!(start.is_busy() && start.is_starting());
    }

    #[test]
    fn a_directory_that_is_present_is_recognised() {
        let refused = answer(
            500,
            r#"{"type":"error","error_code":500,"error":"sftp: \"mkdir /etc/wharf/first-boot: file exists\" (SSH_FX_FAILURE)"}"#,
        );
        assert!(Refusal::read(&refused).is_present());
    }

    #[test]
    fn a_removal_beside_another_one_is_recognised() {
        let refused = answer(
            500,
            r#"{"type":"error","error_code":500,"error":"Failed deleting subvolume \"/pool/custom/wharf_wv-1\": Failed to run: btrfs subvolume delete /pool/custom/wharf_wv-1: exit status 1 (ERROR: Could not statfs: No such file or directory)"}"#,
        );
        assert!(Refusal::read(&refused).is_being_removed());
    }
}
