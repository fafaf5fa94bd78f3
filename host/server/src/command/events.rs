//! `wharf events`, the operator's with `--config` and the user's without.

use super::ConfigFile;
use super::operator::{OperatorCommand, Settings};
use crate::http::AdminRouter;
use crate::operation::Operation;
use anyhow::Result;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wharf_cli::UserEvents;
use wharf_cli::output::line;
use wharf_domain::error::Error;
use wharf_instances::Selector;
use wharf_operations::Operator;
use wharf_operations::history::{self, EventLine};

/// Show the events of your instances: time, name, event, state, message
///
/// With --config, the operator's view of one instance: time, event, state, size, actor, reason.
#[derive(Args)]
pub struct Events {
    #[command(flatten)]
    user: UserEvents,
    /// Configuration file (TOML) of the server: ask it as the operator
    #[arg(long, value_name = "FILE", requires = "instance", conflicts_with_all = ["follow", "after", "profile"])]
    config: Option<PathBuf>,
}

impl OperatorCommand for Box<Events> {
    fn run(self) -> Result<()> {
        let Events { user, config } = *self;
        let (Some(_), Some(instance)) = (&config, user.instance.clone()) else {
            return user.run();
        };
        let settings = Settings {
            config: ConfigFile { config },
            output: user.output(),
        };
        settings.perform(ShowEvents { instance })
    }

    fn serve(admin: AdminRouter) -> AdminRouter {
        admin.with::<ShowEvents>()
    }
}

/// Shows the event log of an instance.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowEvents {
    /// The UUID of an instance, or the name of one that is not deleted.
    instance: String,
}

impl Operation for ShowEvents {
    const PATH: &'static str = "/events";
    type Reply = Vec<EventLine>;

    async fn run(&self, operator: Operator<'_>) -> Result<Vec<EventLine>, Error> {
        history::events(operator.db, &Selector::parse(&self.instance))
    }

    fn print(&self, events: &Vec<EventLine>) -> Result<()> {
        events.iter().try_for_each(|event| line(&event.to_string()))
    }
}
