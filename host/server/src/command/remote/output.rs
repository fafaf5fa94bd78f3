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

/// Turns colours off if `NO_COLOR` is set, whatever the other variables say.
pub fn heed_no_color() {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        console::set_colors_enabled(false);
        console::set_colors_enabled_stderr(false);
    }
}

/// The colour of a state. An output that is no terminal turns colours off.
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
        // Rust writes 4.0 as 4, which RAM is, and never an exponent.
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// A field of an object as the text of a cell.
pub fn field(object: &Value, name: &str) -> String {
    cell(object.get(name).unwrap_or(&Value::Null))
}

/// An amount with so many decimals that people read it. An amount that would show as nothing has its bound.
pub fn rounded(amount: f64, decimals: usize) -> String {
    let shown = format!("{amount:.decimals$}");
    let is_zero = shown
        .bytes()
        .all(|byte| !byte.is_ascii_digit() || byte == b'0');
    match is_zero && amount != 0.0 {
        true => {
            let sign = if amount < 0.0 { "-" } else { "" };
            let least = 10_f64.powi(-i32::try_from(decimals).unwrap_or_default());
            format!("{sign}<{least:.decimals$}")
        }
        false => shown,
    }
}

/// An amount of USD.
pub fn usd(object: &Value, name: &str) -> String {
    rounded(number(object, name), 2)
}

/// An amount of USD for an hour, which is small.
pub fn hourly_usd(object: &Value, name: &str) -> String {
    rounded(number(object, name), 4)
}

/// A number of an object.
pub fn number(object: &Value, name: &str) -> f64 {
    let number = object.get(name).and_then(Value::as_f64);
    number.unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::{cell, rounded};
    use serde_json::json;

    #[test]
    fn numbers_are_for_people() {
        for (value, shown) in [
            (json!(4.0), "4"),
            (json!(1.5), "1.5"),
            (json!(7e-6), "0.000007"),
            (json!(u64::MAX), "18446744073709551615"),
        ] {
            assert_eq!(cell(&value), shown);
        }
        for (amount, decimals, shown) in [
            (0.0, 2, "0.00"),
            (6.974e-6, 2, "<0.01"),
            (-6.974e-6, 2, "-<0.01"),
            (0.0174, 4, "0.0174"),
            (-1.25, 2, "-1.25"),
            (1234.567, 2, "1234.57"),
        ] {
            assert_eq!(rounded(amount, decimals), shown);
        }
    }
}
