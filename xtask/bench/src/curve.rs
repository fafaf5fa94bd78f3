//! Curves as CSV, and as SVG with logarithmic axes.

use crate::table::Curve;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// A size and a figure.
pub type Point = (f64, f64);

/// The area of the lines in the drawing: left, top, width and height.
const AREA: [f64; 4] = [90.0, 50.0, 780.0, 440.0];
const COLOURS: [&str; 4] = ["blue", "red", "green", "black"];

/// The sharpest bend of a line, on logarithmic axes.
pub struct Bend {
    /// The size at the bend.
    pub at: f64,
    /// The factor of the figure for ten times the size, before the bend.
    pub before: f64,
    /// The factor after the bend.
    pub after: f64,
}

/// Finds the sharpest bend; `None` with fewer than three points.
pub fn bend(line: &[Point]) -> Option<Bend> {
    let slope = |from: Point, to: Point| (to.1 / from.1).ln() / (to.0 / from.0).ln();
    let bends = line.windows(3).filter_map(|points| match points {
        [a, b, c] => Some((b.0, slope(*a, *b), slope(*b, *c))),
        _ => None,
    });
    let most = bends.max_by(|a, b| (a.1 - a.2).abs().total_cmp(&(b.1 - b.2).abs()));
    most.map(|(at, before, after)| Bend {
        at,
        before: 10_f64.powf(before),
        after: 10_f64.powf(after),
    })
}

/// Writes a curve to `NAME.csv` and `NAME.svg`.
pub fn draw(curve: &Curve, directory: &Path) -> Result<()> {
    for (extension, text) in [("csv", csv(curve)?), ("svg", svg(curve)?)] {
        let file = directory.join(format!("{}.{extension}", curve.name));
        std::fs::write(&file, text).with_context(|| format!("{}", file.display()))?;
    }
    Ok(())
}

fn csv(curve: &Curve) -> Result<String> {
    let mut text = format!("line,{},{}\n", curve.size, curve.unit);
    for (name, points) in &curve.lines {
        for (size, figure) in points {
            writeln!(text, "{name},{size},{figure}")?;
        }
    }
    Ok(text)
}

/// The decades around some figures, as logarithms.
fn decades(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    let range = figures.filter(|figure| *figure > 0.0).map(f64::log10);
    let (least, most) = range.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), figure| (least.min(figure.floor()), most.max(figure.ceil())),
    );
    if least.is_finite() {
        (least, most.max(least + 1.0))
    } else {
        (0.0, 1.0)
    }
}

fn svg(curve: &Curve) -> Result<String> {
    let [left, top, width, height] = AREA;
    let (bottom, right) = (top + height, left + width);
    let points = || curve.lines.iter().flat_map(|(_, points)| points);
    let (sizes, figures) = (
        decades(points().map(|p| p.0)),
        decades(points().map(|p| p.1)),
    );
    let x = |log: f64| left + width * (log - sizes.0) / (sizes.1 - sizes.0);
    let y = |log: f64| bottom - height * (log - figures.0) / (figures.1 - figures.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 560\" font-family=\"sans-serif\">\n\
         <rect width=\"900\" height=\"560\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"30\" font-size=\"20\">{}: {} over {}</text>\n",
        curve.name, curve.unit, curve.size
    );
    let mut decade = |log: f64, from: (f64, f64), to: (f64, f64), label: (f64, f64)| {
        let (power, at) = (10_f64.powf(log), label);
        writeln!(
            text,
            "<path d=\"M{} {}L{} {}\" stroke=\"lightgrey\"/>\n\
             <text x=\"{}\" y=\"{}\" font-size=\"13\" text-anchor=\"end\">{power}</text>",
            from.0, from.1, to.0, to.1, at.0, at.1
        )
    };
    for log in steps(sizes) {
        decade(
            log,
            (x(log), top),
            (x(log), bottom),
            (x(log) + 8.0, bottom + 20.0),
        )?;
    }
    for log in steps(figures) {
        decade(
            log,
            (left, y(log)),
            (right, y(log)),
            (left - 8.0, y(log) + 4.0),
        )?;
    }
    for (n, ((name, points), colour)) in curve.lines.iter().zip(COLOURS.iter().cycle()).enumerate()
    {
        let shown = points.iter().filter(|p| p.0 > 0.0 && p.1 > 0.0);
        let shown = shown.map(|p| format!("{:.1},{:.1}", x(p.0.log10()), y(p.1.log10())));
        let shown = shown.collect::<Vec<_>>().join(" ");
        writeln!(
            text,
            "<polyline points=\"{shown}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <text x=\"{left}\" y=\"{}\" font-size=\"14\" fill=\"{colour}\">{name}</text>",
            top + 18.0 * (n as f64 + 1.0)
        )?;
    }
    Ok(text + "</svg>\n")
}

/// The whole logarithms of a range.
fn steps((least, most): (f64, f64)) -> impl Iterator<Item = f64> {
    (least as i32..=most as i32).map(f64::from)
}
