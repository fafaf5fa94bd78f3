//! Commands of the operator, and those among them that are operations.

use super::{ConfigFile, runtime};
use crate::http::AdminRouter;
use crate::log;
use crate::operation::{Operation, Performer};
use anyhow::Result;
use clap::Args;
use wharf_cli::output::OutputFormat;
use wharf_domain::time::Timestamp;

/// A command of the operator.
pub trait OperatorCommand {
    /// Runs the command.
    fn run(self) -> Result<()>;

    /// Adds the operations of the command to the admin service.
    fn serve(admin: AdminRouter) -> AdminRouter {
        admin
    }
}

/// Declares commands of the operator, whose help is that of their types.
macro_rules! operator_commands {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$option:meta])* $variant:ident($command:ty),)+
    }) => {
        $(#[$about])*
        #[derive(clap::Subcommand)]
        pub enum $name { $($(#[$option])* $variant($command),)+ }

        impl $crate::command::operator::OperatorCommand for $name {
            fn run(self) -> anyhow::Result<()> {
                match self { $(Self::$variant(command) => command.run(),)+ }
            }

            fn serve(admin: $crate::http::AdminRouter) -> $crate::http::AdminRouter {
                $(let admin = <$command>::serve(admin);)+
                admin
            }
        }
    };
}
pub(super) use operator_commands;

// The help is that of the operation, so this type has no doc comment.
#[derive(Args)]
pub struct Perform<O: Operation + Args> {
    #[command(flatten)]
    pub operation: O,
    #[command(flatten)]
    pub settings: Settings,
}

// The options of every operation.
#[derive(Args)]
pub struct Settings {
    #[command(flatten)]
    pub config: ConfigFile,
    /// Format of the output: columns for people, or JSON for programs
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output: OutputFormat,
}

impl<O: Operation + Args> OperatorCommand for Perform<O> {
    fn run(self) -> Result<()> {
        self.settings.perform(self.operation)
    }

    fn serve(admin: AdminRouter) -> AdminRouter {
        admin.with::<O>()
    }
}

/// A time in an argument.
pub fn timestamp(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse(text).ok_or("must be like 2026-11-20 or 2026-11-20T19:55:44Z")
}

impl Settings {
    /// Runs an operation, in the server if it runs, and prints its reply.
    pub fn perform<O: Operation>(&self, mut operation: O) -> Result<()> {
        let runtime = runtime()?;
        let _log = log::to_stderr(false);
        let config = self.config.load()?;
        let performer = runtime.block_on(Performer::find(&config))?;
        loop {
            let reply = runtime.block_on(performer.perform(&operation))?;
            match self.output {
                OutputFormat::Table => operation.print(&reply)?,
                OutputFormat::Json => operation.print_json(&reply)?,
            }
            operation.verdict(&reply)?;
            match operation.next(&reply) {
                Some(next) => operation = next,
                None => return Ok(()),
            }
        }
    }
}
