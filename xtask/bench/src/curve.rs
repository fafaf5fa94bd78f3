//! Curves as SVG, with logarithmic axes.

use crate::table::Curve;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// A size and a figure.
pub type Point = (f64, f64);

const WIDTH: u32 = 900;
const HEIGHT: u32 = 560;
const COLOURS: [RGBColor; 4] = [BLUE, RED, GREEN, BLACK];

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

/// Writes a curve to a file.
pub fn draw(curve: &Curve, file: &Path) -> Result<()> {
    // The library's errors borrow its canvas.
    try_draw(curve, file).map_err(|error| anyhow!("{}: {error}", file.display()))
}

fn try_draw(curve: &Curve, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curve.lines.iter().flat_map(|(_, points)| points);
    let range = |of: fn(&Point) -> f64| {
        let least = points().map(of).fold(f64::INFINITY, f64::min);
        let most = points().map(of).fold(f64::MIN_POSITIVE, f64::max);
        (least.max(f64::MIN_POSITIVE) / 1.5)..(most * 1.5)
    };
    let canvas = SVGBackend::new(file, (WIDTH, HEIGHT)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&canvas)
        .caption(&curve.name, ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(80)
        .build_cartesian_2d(range(|p| p.0).log_scale(), range(|p| p.1).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(&curve.size).y_desc(&curve.unit).draw()?;
    for ((name, points), colour) in curve.lines.iter().zip(COLOURS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], *colour));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    canvas.present()?;
    Ok(())
}
