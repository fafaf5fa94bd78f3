//! Terminals: Wharf signs in to the instance over SSH with the instance's own password.

use super::App;
use super::connection_record::Opening;
use super::find::{Selector, find};
use super::private_ports::{NO_SHELL, has_shell};
use wharf_db::Read;
use wharf_domain::error::Error;
use wharf_domain::instance::Instance;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;
use wharf_terminal::{
    IsKnown, Opener, OverLimit, SshTarget, TerminalAttachment, TerminalBounds, TerminalSize,
};

/// The opening of a terminal.
const OPENING: Opening = Opening {
    operation: "terminal.open",
    verb: "open a terminal of",
};

/// Length of a terminal's id in bytes. It cannot be guessed, and it opens nothing without the key.
const ID: usize = 16;

/// A request for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRequest {
    pub size: TerminalSize,
    /// A terminal to attach to. If the caller has no such terminal, a new one is opened.
    pub session: Option<String>,
}

impl App {
    /// Checks that a terminal can be opened, without opening it.
    pub fn check_terminal(
        &self,
        caller: &Caller,
        selector: &Selector,
        request: &TerminalRequest,
    ) -> Result<(), Error> {
        let instance = self.terminal_instance(caller, selector)?;
        let opener = opener(caller, &instance);
        let known = request.session.as_ref();
        if known.is_some_and(|id| self.terminals.has(id, &opener)) {
            return Ok(());
        }
        (self.terminals)
            .check(caller.user, self.terminal_bounds())
            .map_err(refused)
    }

    /// Opens a terminal of an instance, or attaches to one that the caller has opened. The audit log has
    /// it before it begins.
    pub async fn open_terminal(
        &self,
        caller: &Caller,
        selector: &Selector,
        request: TerminalRequest,
    ) -> Result<TerminalAttachment, Error> {
        let instance = self.terminal_instance(caller, selector)?;
        let opener = opener(caller, &instance);
        if let Some(id) = &request.session
            && self.terminals.has(id, &opener)
        {
            self.record_opening(caller, selector, OPENING, None, "attached")
                .await?;
            // It may have ended meanwhile.
            if let Some(attachment) = self.terminals.attach(id, &opener, request.size) {
                return Ok(attachment);
            }
        }
        let bounds = self.terminal_bounds();
        let admitted =
            (self.terminals).admit(self.random.text::<ID>()?, opener, request.size, bounds);
        let admitted = admitted.map_err(refused)?;
        let instance = self
            .record_opening(caller, selector, OPENING, None, "opened")
            .await?;
        let is_known = self.host_key_check(caller, instance.id);
        Ok(admitted.begin(self.ssh_target(&instance, is_known)?))
    }

    fn terminal_instance(&self, caller: &Caller, selector: &Selector) -> Result<Instance, Error> {
        let instance = (self.db).read(|rows| reachable(rows, caller, selector, &OPENING))?;
        let bounds = self.terminal_bounds();
        match bounds.of_one_user.min(bounds.in_all) {
            0 => Err(Error::NotApplicable("this service offers no terminals")),
            _ => Ok(instance),
        }
    }

    /// The SSH server on the user's own path, which the readiness probe takes too.
    pub(super) fn ssh_target(
        &self,
        instance: &Instance,
        is_known: IsKnown,
    ) -> Result<SshTarget, Error> {
        let (host, port) = self.ssh_address(instance);
        Ok(SshTarget {
            host,
            port,
            user: instance.login_user.clone(),
            password: self.vault.decrypt_text(instance.id, &instance.password)?,
            is_known,
        })
    }

    fn terminal_bounds(&self) -> TerminalBounds {
        let limits = self.config().limits;
        TerminalBounds {
            of_one_user: limits.terminals_per_user,
            in_all: limits.terminals,
        }
    }
}

/// The caller's instance, if its SSH server is reachable.
pub(super) fn reachable(
    rows: &impl Read,
    caller: &Caller,
    selector: &Selector,
    opening: &Opening,
) -> Result<Instance, Error> {
    let instance = find(rows, caller.user, selector)?;
    if !has_shell(rows, &instance)? {
        return Err(NO_SHELL);
    }
    match instance.state() {
        InstanceState::Running => Ok(instance),
        state => Err(Error::State {
            verb: opening.verb,
            state,
            needed: "running",
        }),
    }
}

pub(super) fn opener(caller: &Caller, instance: &Instance) -> Opener {
    Opener {
        user: caller.user,
        actor: caller.origin().actor,
        instance: instance.id,
    }
}

fn refused(full: OverLimit) -> Error {
    match full {
        OverLimit::User(limit) => Error::TooManyTerminals(limit),
        OverLimit::Service => Error::NoTerminalFree,
    }
}
