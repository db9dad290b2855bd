//! The stages of one iteration along the time.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{
    Area, FAINT, GRID, HIP_COLOUR, INK, OPENCL_COLOUR, STAGE_HEIGHT, failed, headline, significant, text, tick, ticks,
};
use crate::Result;
use crate::report::Report;
use crate::timing::ApiName;

const LEFT: i32 = 250;
const RIGHT: i32 = 30;
const TOP: i32 = 70;

pub(super) fn draw<B: DrawingBackend>(area: &Area<B>, report: &Report) -> Result<()> {
    let (width, _) = area.dim_in_pixel();
    let right = width as i32 - RIGHT;
    let stages: f64 = report.stages.iter().map(|stage| stage.median_us).sum();
    let end_us = report.iteration_us.max(stages).max(1e-3);
    let (unit, scale) = if end_us >= 1e4 { ("ms", 1e-3) } else { ("µs", 1.0) };
    let x_of = |us: f64| LEFT + (us / end_us * f64::from(right - LEFT)).round() as i32;
    let bottom = TOP + report.stages.len() as i32 * STAGE_HEIGHT as i32;

    let title = format!(
        "{} on {}: one iteration, {} {unit} (route {}, {})",
        report.job,
        report.platform,
        significant(report.iteration_us * scale),
        report.route,
        if report.verified { "verified" } else { "NOT verified" },
    );
    area.draw_text(&title, &headline(18), (14, 12)).map_err(failed)?;
    let mut x = 14;
    for (name, colour) in [("OpenCL", OPENCL_COLOUR), ("HIP", HIP_COLOUR)] {
        area.draw(&Rectangle::new([(x, 44), (x + 14, 58)], colour.filled()))
            .map_err(failed)?;
        area.draw_text(
            name,
            &text(14, INK).pos(Pos::new(HPos::Left, VPos::Center)),
            (x + 20, 51),
        )
        .map_err(failed)?;
        x += 100;
    }
    let share = "dark: the time that the memory's measured bandwidth allows";
    area.draw_text(
        share,
        &text(14, FAINT).pos(Pos::new(HPos::Left, VPos::Center)),
        (LEFT, 51),
    )
    .map_err(failed)?;

    for step in ticks(end_us * scale, 8.0) {
        let x = x_of(step / scale);
        area.draw(&PathElement::new([(x, TOP), (x, bottom + 5)], GRID))
            .map_err(failed)?;
        let style = text(14, INK).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw_text(&tick(step, end_us * scale), &style, (x, bottom + 8))
            .map_err(failed)?;
    }
    area.draw(&PathElement::new([(LEFT, bottom), (right, bottom)], INK))
        .map_err(failed)?;
    let style = text(15, INK).pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_text(&format!("time in {unit}"), &style, ((LEFT + right) / 2, bottom + 26))
        .map_err(failed)?;

    let mut start = 0.0;
    for (row, stage) in report.stages.iter().enumerate() {
        let y = TOP + row as i32 * STAGE_HEIGHT as i32;
        let (top, foot) = (y + 5, y + STAGE_HEIGHT as i32 - 5);
        let colour = match stage.api {
            ApiName::OpenCl => OPENCL_COLOUR,
            ApiName::Hip => HIP_COLOUR,
        };
        let (from, to) = (x_of(start), x_of(start + stage.median_us).max(x_of(start) + 1));
        area.draw(&Rectangle::new([(from, top), (to, foot)], colour.mix(0.75).filled()))
            .map_err(failed)?;
        let at_limit = stage.median_us * (stage.percent_of_limit / 100.0).clamp(0.0, 1.0);
        let dark = RGBColor(colour.0 / 2, colour.1 / 2, colour.2 / 2);
        area.draw(&Rectangle::new(
            [(from, foot - 5), (x_of(start + at_limit), foot)],
            dark.filled(),
        ))
        .map_err(failed)?;

        let middle = (top + foot) / 2;
        let name = text(15, INK).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw_text(&stage.name, &name, (LEFT - 10, middle))
            .map_err(failed)?;
        let figures = format!(
            "{} {unit}, {} GB/s, {:.0} %",
            significant(stage.median_us * scale),
            significant(stage.gb_s),
            stage.percent_of_limit
        );
        // beside the bar where there is room, else before it, else on it
        let needed = 9 * figures.len() as i32;
        let (x, side, ink) = if to + needed < right {
            (to + 8, HPos::Left, INK)
        } else if from - needed > LEFT {
            (from - 8, HPos::Right, INK)
        } else {
            (from + 8, HPos::Left, WHITE)
        };
        area.draw_text(
            &figures,
            &text(14, ink).pos(Pos::new(side, VPos::Center)),
            (x, middle - 2),
        )
        .map_err(failed)?;
        start += stage.median_us;
    }
    Ok(())
}
