//! Output: tables and JSON on stdout, progress on stderr.

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};
use console::{Style, Term};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::io::{Write, stdout};
use std::str::FromStr;
use std::time::Duration;
use wharf_client::Reply;
use wharf_client::types::Time;

/// The format of the output.
#[derive(ValueEnum, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    #[default]
    Table,
    Json,
}

/// Prints a line.
pub fn line(text: &str) -> Result<()> {
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// Prints an object as JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Prints a note for people on stderr.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The header of a column.
#[derive(Clone, Copy)]
pub enum Column {
    Text(&'static str),
    /// A column whose cells have one line on each terminal, such as a name.
    Whole(&'static str),
    /// A column of numbers, which end below each other.
    Number(&'static str),
}

impl Column {
    fn name(self) -> &'static str {
        let (Self::Text(name) | Self::Whole(name) | Self::Number(name)) = self;
        name
    }
}

/// Prints rows below their header. On a terminal that is too narrow, cells take several lines.
pub fn table<const N: usize>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<()> {
    let width = Term::stdout().size_checked().map(|(_, width)| width);
    let text = arranged(columns, rows, width);
    let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
    line(&Style::new().bold().apply_to(header).to_string())?;
    rows.lines().try_for_each(|row| line(&coloured(row)))
}

fn arranged<const N: usize>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [String; N]>,
    width: Option<u16>,
) -> String {
    let mut table = comfy_table::Table::new();
    table.set_header(columns.map(Column::name));
    let rows = rows.into_iter().map(|row| row.map(|cell| plain(&cell)));
    let rows: Vec<_> = rows.collect();
    table.add_rows(rows.clone());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    for (number, (column, of)) in table.column_iter_mut().zip(columns).enumerate() {
        if let Column::Number(_) = of {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut least = of.name().len();
        if let Column::Number(_) = of {
            let cells = rows.iter().filter_map(|row| row.get(number));
            let words = cells.flat_map(|cell| cell.split(' '));
            least = words.map(str::len).fold(least, usize::max);
        }
        let least = u16::try_from(least).unwrap_or_default() + GAP;
        column.set_constraint(match (number, of) {
            // The first column names things for other commands.
            (0, _) | (_, Column::Whole(_)) => ColumnConstraint::ContentWidth,
            // The header has one line, and so has a number.
            _ => ColumnConstraint::LowerBoundary(Width::Fixed(least)),
        });
    }
    aligned(table)
}

/// Prints names and values, each value in one line that can be copied.
pub fn list(rows: &[(&str, String)]) -> Result<()> {
    let mut table = comfy_table::Table::new();
    table.add_rows(
        rows.iter()
            .map(|(name, value)| [(*name).to_owned(), plain(value)]),
    );
    aligned(table)
        .lines()
        .try_for_each(|row| line(&coloured(row)))
}

/// Spaces between columns.
const GAP: u16 = 2;

/// The text of a table.
fn aligned(mut table: comfy_table::Table) -> String {
    table.load_style(NOTHING);
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    table.trim_fmt()
}

/// Text without control characters, which could move the terminal's cursor.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A row with the colours of states. An output that is no terminal turns colours off.
fn coloured(row: &str) -> String {
    let cells = row.split("  ").map(|cell| {
        let state = cell.trim();
        let style = match state {
            "running" => Style::new().green(),
            "provisioning" => Style::new().yellow(),
            "error" => Style::new().red(),
            _ => return cell.to_owned(),
        };
        cell.replace(state, &style.apply_to(state).to_string())
    });
    cells.collect::<Vec<_>>().join("  ")
}

/// Turns colours off if `NO_COLOR` is set; other variables do not count then.
pub fn heed_no_color() {
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        console::set_colors_enabled(false);
        console::set_colors_enabled_stderr(false);
    }
}

/// Parses one of the values of an enumeration of the interface.
pub fn one_of<T, const N: usize>(values: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values).try_map(|value| value.parse())
}

/// A value, or a dash for none.
pub fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Values with commas between, or a dash for none.
pub fn joined(values: impl IntoIterator<Item = impl ToString>) -> String {
    let values: Vec<_> = values.into_iter().map(|value| value.to_string()).collect();
    or_none(Some(values.join(",")).filter(|text| !text.is_empty()))
}

/// The fields of an object as names and values, those that this version does not know too.
pub fn fields<T>(reply: &Reply<T>) -> impl Iterator<Item = (&str, String)> {
    let fields = reply.value().as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.as_str(), text_of(value)))
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => or_none(None::<String>),
        Value::String(text) => text.clone(),
        Value::Array(items) => joined(items.iter().map(text_of)),
        // Rust writes 4.0 as 4, which RAM is, and never an exponent.
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// An amount with this number of decimals, for people. An amount that would show as zero has its bound.
pub fn rounded(amount: f64, decimals: usize) -> String {
    let shown = format!("{amount:.decimals$}");
    let is_zero = shown
        .bytes()
        .all(|byte| !byte.is_ascii_digit() || byte == b'0');
    if !is_zero || amount == 0.0 {
        return shown;
    }
    let sign = if amount < 0.0 { "-" } else { "" };
    let least = 10_f64.powi(-i32::try_from(decimals).unwrap_or_default());
    format!("{sign}<{least:.decimals$}")
}

/// An amount of USD.
pub fn usd(amount: f64) -> String {
    rounded(amount, 2)
}

/// An amount of USD for an hour, which is small.
pub fn hourly_usd(amount: f64) -> String {
    rounded(amount, 4)
}

/// A time to the second.
pub fn time(at: Option<&Time>) -> String {
    let to_the_second = |at: &Time| match at.split_once('.') {
        Some((time, _)) => time.replace('T', " "),
        None => at.to_string(),
    };
    or_none(at.map(to_the_second))
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
    use super::Column::{Number, Text, Whole};
    use super::{arranged, coloured, rounded, text_of};
    use serde_json::json;

    const COLUMNS: [super::Column; 3] = [Text("NAME"), Number("MEM"), Text("WORDS")];

    fn rows() -> [[String; 3]; 2] {
        let words = "a \x1b[2Jb";
        [["box", "4 GiB", "-"], ["a-long-name", "256 GiB", words]].map(|row| row.map(str::to_owned))
    }

    #[test]
    fn numbers_end_below_each_other_and_nothing_else_moves_the_cursor() {
        let text = "NAME             MEM  WORDS\n\
                    box            4 GiB  -\n\
                    a-long-name  256 GiB  a  [2Jb";
        assert_eq!(arranged(COLUMNS, rows(), None), text);
    }

    #[test]
    fn a_narrow_terminal_splits_cells_but_no_name_and_no_header() {
        for width in 10..40 {
            let text = arranged(COLUMNS, rows(), Some(width));
            let lines: Vec<_> = text.lines().collect();
            let header: Vec<_> = lines[0].split_whitespace().collect();
            assert_eq!(header, ["NAME", "MEM", "WORDS"], "{text}");
            assert!(lines.iter().any(|line| line.starts_with("a-long-name ")));
            let fits = lines.iter().all(|line| line.len() <= width.into());
            assert!(fits || width < 25, "{width}\n{text}");
        }
    }

    #[test]
    fn a_narrow_terminal_splits_no_state_no_address_and_no_number() {
        let columns = [
            Text("NAME"),
            Whole("STATE"),
            Text("SIZE"),
            Number("USD"),
            Whole("ADDRESS"),
        ];
        let row = [
            "box",
            "running",
            "1 vCPU, 1 GiB, 10 GiB",
            "0.00131",
            "ssh -p 1 a@example.org",
        ];
        let text = arranged(columns, [row.map(str::to_owned)], Some(40));
        assert!(text.contains("running "), "{text}");
        assert!(text.contains("0.00131 "), "{text}");
        assert!(text.contains("ssh -p 1 a@example.org"), "{text}");
        assert!(!text.contains("1 vCPU, 1 GiB, 10 GiB"), "{text}");
    }

    #[test]
    fn a_state_has_its_colour_only_as_a_whole_cell() {
        console::set_colors_enabled(true);
        let row = coloured("box  running  an error of error");
        console::set_colors_enabled(false);
        assert_eq!(row, "box  \x1b[32mrunning\x1b[0m  an error of error");
    }

    #[test]
    fn numbers_are_for_people() {
        for (value, shown) in [
            (json!(4.0), "4"),
            (json!(1.5), "1.5"),
            (json!(7e-6), "0.000007"),
            (json!(u64::MAX), "18446744073709551615"),
        ] {
            assert_eq!(text_of(&value), shown);
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
