//! The help of `wharf`, with its commands under two headings.

use super::Cli;
use clap::{Command, CommandFactory, Subcommand};
use wharf_cli::UserCommand;

/// The command line with its help.
pub fn command() -> Command {
    let command = Cli::command();
    let users = UserCommand::augment_subcommands(Command::new("users"));
    let is_for_users = |command: &&Command| {
        let name = command.get_name();
        name == "events" || users.find_subcommand(name).is_some()
    };
    let (for_users, for_operators): (Vec<_>, Vec<_>) = command
        .get_subcommands()
        .filter(is_shown)
        .partition(is_for_users);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands for users:\n{}\n\
         Commands for operators, on the machine of the server:\n{}\nOptions:\n{{options}}\n\n\
         `wharf COMMAND --help` shows the options of a command. Sign in with `wharf login URL`.\n",
        list(&for_users),
        list(&for_operators),
    );
    command.help_template(template)
}

fn is_shown(command: &&Command) -> bool {
    !command.is_hide_set()
}

fn list(commands: &[&Command]) -> String {
    let names = commands.iter().map(|command| command.get_name().len());
    let width = names.max().unwrap_or(0);
    let lines = commands.iter().map(|command| {
        let about = command.get_about().map(ToString::to_string);
        format!(
            "  {:width$}  {}\n",
            command.get_name(),
            about.unwrap_or_default()
        )
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn the_arguments_are_consistent_and_every_command_is_in_the_help() {
        command().debug_assert();
        let help = command().render_help().to_string();
        for subcommand in command().get_subcommands().filter(super::is_shown) {
            let name = subcommand.get_name();
            assert!(
                help.lines()
                    .any(|line| line.starts_with(&format!("  {name} "))),
                "{name}\n{help}"
            );
        }
    }
}
