//! Shortages, with the command that would succeed.

use crate::failure::Failure;
use anyhow::Error;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use wharf_client::Error as ClientError;
use wharf_client::types::Shortage;

/// The smallest amounts that an instance can have, and the options that set them.
const SIZES: [(&str, &str, u64); 3] = [
    ("n_vcpus", "--vcpus", 1),
    ("mem_gib", "--mem", 1),
    ("disk_size_gib", "--disk", 10),
];

/// The field that says that the figures are those of the host of the volumes, as the message does.
const VOLUMES: &str = "volumes";

/// An option, and the amount that is available.
type Fitting = (&'static str, u64);

/// Adds the command that would succeed to the shortage of a new instance.
pub fn of_creation(error: Error) -> Error {
    explain(error, |options, has_gpu| {
        let arguments = env::args_os().skip(1).map(OsString::into_string);
        let arguments: Result<Vec<_>, _> = arguments.collect();
        Some(with_other_amounts(arguments.ok()?, options, has_gpu))
    })
}

/// Adds the command that would succeed to the shortage of an existing instance.
pub fn of_instance(name: &str, error: Error) -> Error {
    explain(error, |options, _| {
        let words = options
            .iter()
            .map(|(option, amount)| format!(" {option} {amount}"));
        let words: String = words.collect();
        (!words.is_empty()).then(|| format!("wharf resize {name}{words}"))
    })
}

fn explain(error: Error, command: impl FnOnce(&[Fitting], bool) -> Option<String>) -> Error {
    let refusal = error.downcast_ref().and_then(ClientError::refusal);
    let Some(shortage) = refusal.and_then(|refusal| refusal.shortage.as_ref()) else {
        return error;
    };
    let has_gpu = !shortage.bottleneck.iter().any(|field| field == "n_gpus");
    // Volumes are on one host. If it has the sizes, it does not run such an instance.
    let options = options_that_fit(shortage).filter(|_| shortage.bottleneck != [VOLUMES]);
    let command = options.and_then(|options| command(&options, has_gpu));
    let message = message(shortage, command);
    match error.downcast::<ClientError>() {
        Ok(source) => Failure::Insufficient { message, source }.into(),
        Err(error) => error,
    }
}

/// None if no instance fits.
fn options_that_fit(shortage: &Shortage) -> Option<Vec<Fitting>> {
    let of_sizes = |field: &&String| *field != "n_gpus" && *field != VOLUMES;
    let missing = shortage.bottleneck.iter().filter(of_sizes);
    let options = missing.map(|field| {
        let (_, option, minimum) = SIZES.iter().find(|(name, ..)| name == field)?;
        let amount = shortage.nearest_available.get(field)?;
        (amount >= minimum).then_some((*option, *amount))
    });
    options.collect()
}

/// A command with other amounts, and without a GPU if there is none.
fn with_other_amounts(arguments: Vec<String>, options: &[Fitting], has_gpu: bool) -> String {
    let mut words = vec!["wharf".to_owned()];
    let mut names = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        // No option follows it.
        if argument == "--" {
            names = [argument].into_iter().chain(arguments).collect();
            break;
        }
        let (name, has_value) = match argument.split_once('=') {
            Some((name, _)) => (name, true),
            None => (argument.as_str(), false),
        };
        let is_other = options.iter().any(|(option, _)| *option == name);
        if !is_other && (has_gpu || name != "--gpu") {
            words.push(quoted(&argument));
        } else if !has_value {
            arguments.next();
        }
    }
    words.extend(
        options
            .iter()
            .map(|(option, amount)| format!("{option} {amount}")),
    );
    words.extend(names.iter().map(|name| quoted(name)));
    words.join(" ")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn message(shortage: &Shortage, command: Option<String>) -> String {
    // No amount would do.
    if shortage.bottleneck == ["flavor"] {
        return format!("{} `wharf flavors` lists the others.", shortage.message);
    }
    let sizes = shortage.bottleneck.iter().filter(|field| *field != VOLUMES);
    let amounts = sizes.map(|field| {
        let of = |amounts: &BTreeMap<String, u64>| {
            amounts.get(field).map_or("-".to_owned(), u64::to_string)
        };
        let (requested, available) = (of(&shortage.requested), of(&shortage.nearest_available));
        format!("\n  {field}: requested {requested}, available {available}")
    });
    let command = command.map(|command| format!("\nThis would fit: {command}"));
    let lines: String = amounts.chain(command).collect();
    format!("{}{lines}", shortage.message)
}

#[cfg(test)]
mod tests {
    use super::{quoted, with_other_amounts};

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a-b.pub"), "a-b.pub");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn options_are_replaced_before_the_names() {
        for (before, after) in [
            (
                "create --vcpus 9 a --disk=90",
                "wharf create a --vcpus 4 --disk 20",
            ),
            (
                "create --vcpus=9 --gpu x -- --vcpus",
                "wharf create --vcpus 4 --disk 20 -- --vcpus",
            ),
        ] {
            let arguments = before.split(' ').map(str::to_owned).collect();
            let fitting = [("--vcpus", 4), ("--disk", 20)];
            assert_eq!(with_other_amounts(arguments, &fitting, false), after);
        }
    }
}
