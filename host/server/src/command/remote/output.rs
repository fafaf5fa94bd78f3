//! Output: tables and JSON on stdout, progress on stderr.

use anyhow::Result;
use clap::ValueEnum;
use console::{Style, Term};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::{Write, stdout};
use std::time::Duration;

/// The format of the output.
#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// The objects of the REST interface
    Json,
}

/// Prints a line.
pub fn line(text: &str) -> Result<()> {
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// Prints an object of the interface.
pub fn json(value: &Value) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints a note for people on stderr.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints rows below their header, each column as wide as its widest cell.
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> Result<()> {
    let mut widths = header.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let print = |cells: [&str; N], is_header: bool| {
        let padded = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let cell = plain(cell);
                // The last column ends the line.
                let width = if column + 1 == N { 0 } else { width };
                let style = if is_header {
                    Style::new().bold()
                } else {
                    style_of(&cell)
                };
                style.apply_to(format!("{cell:<width$}")).to_string()
            });
        line(padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    print(header, true)?;
    rows.iter()
        .try_for_each(|row| print(row.each_ref().map(String::as_str), false))
}

/// Prints names and values.
pub fn list(rows: &[(&str, String)]) -> Result<()> {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().try_for_each(|(name, value)| {
        let value = plain(value);
        let value = style_of(&value).apply_to(value.as_str());
        line(&format!("{name:<width$}  {value}"))
    })
}

/// Text of the server without control characters, which could move the terminal's cursor.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The colour of a state. `NO_COLOR`, and an output that is no terminal, turn colours off.
fn style_of(cell: &str) -> Style {
    match cell {
        "running" => Style::new().green(),
        "provisioning" => Style::new().yellow(),
        "error" => Style::new().red(),
        _ => Style::new(),
    }
}

/// A value as the text of a cell.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        // Amounts of RAM are whole numbers, which the interface writes as 4.0.
        Value::Number(number) => number
            .as_f64()
            .filter(|number| number.fract() == 0.0 && number.abs() < 1e15)
            .map_or_else(|| number.to_string(), |whole| format!("{whole:.0}")),
        other => other.to_string(),
    }
}

/// A field of an object as the text of a cell.
pub fn field(object: &Value, name: &str) -> String {
    cell(object.get(name).unwrap_or(&Value::Null))
}

/// A time to the second.
pub fn time(object: &Value, name: &str) -> String {
    let text = field(object, name);
    let to_the_second = text.split_once('.').map(|(time, _)| time.replace('T', " "));
    to_the_second.unwrap_or(text)
}

/// Shows that the command waits, on stderr and only on a terminal.
pub fn progress(text: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.set_message(text.to_owned());
    if Term::stderr().is_term() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}
