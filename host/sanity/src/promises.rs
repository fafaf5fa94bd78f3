//! The promises of a driver.

mod absent;
mod content;
mod engine;
mod interrupted;
mod life;
mod moves;
mod size;
mod snapshots;
mod volumes;

use crate::subject::Subject;
use anyhow::Result;
use futures_util::future::LocalBoxFuture;

/// The result for a promise that is not broken.
pub enum Verdict {
    Kept,
    /// The driver does not make the promise, for this reason.
    NotApplicable(&'static str),
}

/// Checks one promise.
pub type Check = for<'a> fn(&'a Subject) -> LocalBoxFuture<'a, Result<Verdict>>;

/// Names a check after its promise.
macro_rules! promises {
    ($($name:literal => $check:path,)*) => {
        &[$(($name, |subject| Box::pin($check(subject)))),*]
    };
}

/// All promises, in the order of a life.
pub const PROMISES: &[(&str, Check)] = promises![
    "probe reports a usable node" => engine::probe,
    "an engine that does not answer is unreachable, not empty" => engine::unreachable,
    "a store keeps its first mark" => engine::mark,
    "an absent instance is reported as absent" => absent::inspect,
    "stop and delete of an absent instance succeed" => absent::stop_and_delete,
    "start, resize and stats of an absent instance are errors" => absent::others,
    "ensure brings an instance up, and its port answers" => life::ensure,
    "ensure again changes nothing" => life::ensure_again,
    "another specification under a tag is a conflict" => life::conflict,
    "list has exactly the instances of its installation" => life::list,
    "another incarnation is another object" => life::incarnation,
    "a start of a running instance succeeds" => life::start_running,
    "a stopped instance is stopped, and stop again succeeds" => life::stop,
    "ensure does not start a stopped instance" => life::ensure_stopped,
    "a start brings a stopped instance up again" => life::start,
    "delete removes an instance that runs or is stopped" => life::delete,
    "stats count what a running instance uses" => life::stats,
    "sizes of a running instance change" => size::resize,
    "a disk grows when probe says so" => size::grow,
    "moves keep the disk and leave one instance, or are unsupported" => moves::moves,
    "content is offered without a change, or that is unsupported" => content::offered,
    "a volume is made once, and belongs to its installation alone" => volumes::made,
    "a volume stays while an instance has it, and outlives the instance" => volumes::kept,
    "an instance gets and loses volumes, or that is unsupported" => volumes::late,
    "interrupted makes and removals of volumes are continued" => volumes::interrupted,
    "the content of a volume is sent to the host alone, and comes from it alone, or that is unsupported" => volumes::content,
    "a proof of limits succeeds and leaves nothing, also after an interrupted one" => volumes::proven,
    "a snapshot is taken once, and belongs to its installation alone" => snapshots::taken,
    "a restore brings a snapshot back, more than once" => snapshots::restored,
    "a clone outlives its source" => snapshots::cloned,
    "the content of a snapshot is sent to the host alone, or that is unsupported" => snapshots::sent,
    "interrupted takes, restores, clones and removals of snapshots are continued" => snapshots::interrupted,
    "several instances come and go at once" => interrupted::at_once,
    "an interrupted ensure is continued" => interrupted::ensure,
    "interrupted starts, stops and deletions are continued" => interrupted::others,
    "nothing is left" => life::nothing_is_left,
];
