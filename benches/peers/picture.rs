//! The picture of the page: time against number of files, a line for each program, both scales logarithmic.

use std::fmt::Write;

use crate::contest::Table;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
const COLOURS: [&str; 7] = ["#d62728", "#7f7f7f", "#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf"];

/// A line: what it is called, and its points (files, milliseconds).
type Line = (&'static str, Vec<(f64, f64)>);

/// Draws the runs in which nothing changed.
pub(crate) fn draw(tables: &[Table]) -> String {
    let lines = lines(tables);
    let points = || lines.iter().flat_map(|(_, points)| points);
    let decades = |number: fn(&(f64, f64)) -> f64| {
        let logarithms = points().map(|point| number(point).log10());
        let (least, most) =
            logarithms.fold((f64::MAX, f64::MIN), |(least, most), one| (least.min(one), most.max(one)));
        (least.floor(), most.ceil())
    };
    let (x, y) = (decades(|point| point.0), decades(|point| point.1));
    let place = |(files, time): (f64, f64)| {
        let across = (files.log10() - x.0) / (x.1 - x.0);
        let up = (time.log10() - y.0) / (y.1 - y.0);
        (LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM))
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    grid(&mut svg, x, y, place);
    for ((name, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let path: Vec<String> =
            points.iter().map(|point| place(*point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in points.iter().map(|point| place(*point)) {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        if let Some((x, y)) = points.last().map(|point| place(*point)) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
                x + 8.0,
                y + 4.0
            );
        }
    }
    svg + "</svg>\n"
}

/// Returns the lines of the tables whose title is a number of unchanged files.
fn lines(tables: &[Table]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for table in tables {
        let Some(count) = table.title.strip_suffix(" files unchanged") else { continue };
        let Ok(count) = count.parse::<f64>() else { continue };
        for row in &table.rows {
            match lines.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, points)) => points.push((count, row.best_ms)),
                None => lines.push((row.name, vec![(count, row.best_ms)])),
            }
        }
    }
    lines
}

/// Draws a line for each power of ten.
fn grid(svg: &mut String, x: (f64, f64), y: (f64, f64), place: impl Fn((f64, f64)) -> (f64, f64)) {
    let powers = |(least, most): (f64, f64)| {
        std::iter::successors(Some(least), move |one| (one + 1.0 <= most).then_some(one + 1.0))
    };
    let corner = |x: f64, y: f64| place((10_f64.powf(x), 10_f64.powf(y)));
    let mut line = |from: (f64, f64), to: (f64, f64)| {
        let _ = writeln!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
            from.0, from.1, to.0, to.1
        );
    };
    powers(x).for_each(|power| line(corner(power, y.0), corner(power, y.1)));
    powers(y).for_each(|power| line(corner(x.0, power), corner(x.1, power)));
    for power in powers(x) {
        let (x, y) = corner(power, y.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} files</text>",
            y + 20.0,
            10_f64.powf(power)
        );
    }
    for power in powers(y) {
        let (x, y) = corner(x.0, power);
        let time = match 10_f64.powf(power) {
            seconds if seconds >= 1e3 => format!("{} s", seconds / 1e3),
            milliseconds => format!("{milliseconds} ms"),
        };
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{time}</text>",
            x - 8.0,
            y + 4.0
        );
    }
}
