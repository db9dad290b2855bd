//! Where each part of a chart of bars stands, in pixels.
//!
//! Names have a column on the left, bars one in the middle, labels one on the right: whatever their lengths, they do
//! not meet. A text that is too long for its column is broken into lines, and its row grows.

use plotters::style::{RGBColor, WHITE};

use super::bars::{Bars, Group, Row};
use super::scale::{tick, ticks};
use super::style::{FAINT, GRID, INK, WIDTH, failed, text};
use crate::Result;

const MARGIN: i32 = 24;
/// Between two columns.
const GAP: i32 = 14;
const TITLE: u32 = 28;
const HEADING: u32 = 21;
const TEXT: u32 = 19;
/// The widest that names and labels get.
const NAMES: i32 = 470;
const LABELS: i32 = 390;
/// Height of a bar, and between two rows.
const BAR: i32 = 18;
const BETWEEN: i32 = 8;

/// A part of the picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A filled rectangle, from its upper left to its lower right corner.
    Box {
        from: (i32, i32),
        to: (i32, i32),
        ink: RGBColor,
    },
    /// A line.
    Line {
        from: (i32, i32),
        to: (i32, i32),
        width: u32,
        ink: RGBColor,
    },
    /// A line of text, in the middle of whose height `at` lies.
    Text {
        at: (i32, i32),
        align: Align,
        size: u32,
        ink: RGBColor,
        text: String,
    },
}

/// The end of a text that lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// A picture as parts.
#[derive(Debug)]
pub(super) struct Scene {
    pub height: u32,
    pub shapes: Vec<Shape>,
}

/// Places everything.
pub(super) fn scene(bars: &Bars) -> Result<Scene> {
    let mut page = Page::default();
    let wide = WIDTH as i32 - 2 * MARGIN;
    page.y = MARGIN;
    page.lines(&bars.title, TITLE, INK, wide)?;
    page.lines(&bars.subtitle, TEXT, FAINT, wide)?;
    page.legend(bars)?;
    if bars.groups.iter().all(|group| group.rows.is_empty()) {
        page.y += GAP;
        page.lines(&bars.empty, HEADING, INK, wide)?;
    } else {
        page.plot(bars)?;
    }
    Ok(Scene {
        height: (page.y + MARGIN) as u32,
        shapes: page.shapes,
    })
}

/// Parts from the top to the bottom.
#[derive(Default)]
struct Page {
    shapes: Vec<Shape>,
    /// Where the next part begins.
    y: i32,
}

/// The columns.
struct Columns {
    names: i32,
    labels: i32,
    /// Of the axis.
    end: f64,
}

impl Columns {
    fn of(bars: &Bars) -> Result<Self> {
        let rows = || bars.groups.iter().flat_map(|group| &group.rows);
        let names = widest(rows().map(|row| &row.name))?.min(NAMES);
        let labels = widest(rows().flat_map(|row| &row.bars).map(|bar| &bar.label))?.min(LABELS);
        Ok(Self {
            names,
            labels,
            end: bars.axis.end(bars),
        })
    }

    fn left(&self) -> i32 {
        MARGIN + self.names + GAP
    }

    fn right(&self) -> i32 {
        WIDTH as i32 - MARGIN - self.labels - GAP
    }

    /// The place of a value.
    fn x(&self, value: f64) -> i32 {
        let length = f64::from(self.right() - self.left());
        self.left() + (value / self.end * length).round() as i32
    }
}

impl Page {
    fn text(&mut self, at: (i32, i32), align: Align, size: u32, ink: RGBColor, text: &str) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text {
            at,
            align,
            size,
            ink,
            text,
        });
    }

    /// A paragraph.
    fn lines(&mut self, paragraph: &str, size: u32, ink: RGBColor, room: i32) -> Result<()> {
        for line in broken(paragraph, size, room)? {
            self.text((MARGIN, self.y + height(size) / 2), Align::Left, size, ink, &line);
            self.y += height(size);
        }
        Ok(())
    }

    fn legend(&mut self, bars: &Bars) -> Result<()> {
        let mut x = MARGIN;
        let colours = bars.colours();
        if colours.is_empty() {
            return Ok(());
        }
        self.y += BETWEEN;
        let middle = self.y + height(TEXT) / 2;
        for colour in colours {
            let half = BAR / 2;
            self.shapes.push(Shape::Box {
                from: (x, middle - half),
                to: (x + BAR, middle + half),
                ink: colour.ink(),
            });
            x += BAR + BETWEEN;
            self.text((x, middle), Align::Left, TEXT, INK, colour.name());
            x += width(colour.name(), TEXT)? + 2 * GAP;
        }
        self.y += height(TEXT);
        Ok(())
    }

    fn plot(&mut self, bars: &Bars) -> Result<()> {
        let columns = Columns::of(bars)?;
        // Behind the bars, and as long as all of them.
        let grid = self.shapes.len();
        let top = self.y + BETWEEN;
        if let Some((value, name)) = &bars.axis.reference {
            self.y += BETWEEN;
            let middle = self.y + height(TEXT) / 2;
            self.centred(columns.x(*value), middle, INK, name)?;
            self.y += height(TEXT);
        }
        let first = self.y;
        for group in bars.groups.iter().filter(|group| !group.rows.is_empty()) {
            self.group(group, &columns)?;
        }
        let bottom = self.y + BETWEEN;
        self.y = bottom + BETWEEN / 2;
        let middle = self.y + height(TEXT) / 2;
        let mut lines = Vec::new();
        for value in ticks(columns.end, 5.0) {
            let x = columns.x(value);
            lines.push(line((x, first), (x, bottom), 1, GRID));
            self.text((x, middle), Align::Middle, TEXT, INK, &tick(value, columns.end));
        }
        if let Some((value, _)) = &bars.axis.reference {
            let x = columns.x(*value);
            lines.push(line((x, top + height(TEXT)), (x, bottom), 2, INK));
        }
        self.shapes.splice(grid..grid, lines);
        self.y += height(TEXT);
        let middle = self.y + height(TEXT) / 2;
        self.centred((columns.left() + columns.right()) / 2, middle, FAINT, &bars.axis.label)?;
        self.y += height(TEXT);
        Ok(())
    }

    /// A line of text around `x`, as far as the picture has room on both sides.
    fn centred(&mut self, x: i32, y: i32, ink: RGBColor, text: &str) -> Result<()> {
        let half = width(text, TEXT)? / 2 + 1;
        let x = x.min(WIDTH as i32 - MARGIN - half).max(MARGIN + half);
        self.text((x, y), Align::Middle, TEXT, ink, &cleaned(text));
        Ok(())
    }

    fn group(&mut self, group: &Group, columns: &Columns) -> Result<()> {
        self.y += BETWEEN;
        self.lines(&group.heading, HEADING, INK, WIDTH as i32 - 2 * MARGIN)?;
        self.y += BETWEEN / 2;
        for row in &group.rows {
            self.row(row, columns)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row, columns: &Columns) -> Result<()> {
        let line_height = height(TEXT);
        let names = broken(&row.name, TEXT, columns.names)?;
        let labels = row.bars.iter().map(|bar| broken(&bar.label, TEXT, columns.labels));
        let labels = labels.collect::<Result<Vec<_>>>()?;
        // One line stands in the middle of its bar.
        let heights: Vec<i32> = labels
            .iter()
            .map(|lines| line_height * lines.len().max(1) as i32)
            .collect();
        let bars_height: i32 = heights.iter().sum();
        let row_height = bars_height.max(line_height * names.len() as i32);

        let mut y = self.y + (row_height - line_height * names.len() as i32) / 2 + line_height / 2;
        for name in &names {
            self.text((MARGIN + columns.names, y), Align::Right, TEXT, INK, name);
            y += line_height;
        }
        let mut y = self.y + (row_height - bars_height) / 2;
        for ((bar, lines), height) in row.bars.iter().zip(&labels).zip(&heights) {
            let middle = y + height / 2;
            if let Some(value) = bar.length() {
                let is_broken = value > columns.end;
                let right = columns.x(value.min(columns.end)).max(columns.left() + 1);
                let (top, foot) = (middle - BAR / 2, middle + BAR / 2);
                self.shapes.push(Shape::Box {
                    from: (columns.left(), top),
                    to: (right, foot),
                    ink: bar.colour.ink(),
                });
                if is_broken {
                    for x in [right - 20, right - 12] {
                        self.shapes.push(line((x, foot), (x + 6, top), 3, WHITE));
                    }
                }
            }
            let ink = if bar.length().is_some() { INK } else { FAINT };
            let mut label_y = y + line_height / 2;
            for label in lines {
                let at = (columns.right() + GAP, label_y);
                self.text(at, Align::Left, TEXT, ink, label);
                label_y += line_height;
            }
            y += height;
        }
        self.y += row_height + BETWEEN;
        Ok(())
    }
}

fn line(from: (i32, i32), to: (i32, i32), width: u32, ink: RGBColor) -> Shape {
    Shape::Line { from, to, width, ink }
}

/// Height of a line of text, with its share of the space to the next one.
fn height(size: u32) -> i32 {
    (size * 6).div_ceil(5) as i32
}

/// Width of a text in the embedded typeface, which is wider than most.
pub(super) fn width(line: &str, size: u32) -> Result<i32> {
    let (width, _) = text(size, INK).font.box_size(line).map_err(failed)?;
    Ok(width as i32 + 1)
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> Result<i32> {
    texts
        .map(|it| width(&cleaned(it), TEXT))
        .try_fold(0, |most, it| Ok(most.max(it?)))
}

/// Without characters that XML does not allow.
fn cleaned(text: &str) -> String {
    let is_wrong = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    let words: String = text.chars().map(|c| if is_wrong(c) { ' ' } else { c }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of a text, none wider than `room`: broken at spaces, and in a word that is wider by itself.
fn broken(text: &str, size: u32, room: i32) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in cleaned(text).split(' ').filter(|word| !word.is_empty()) {
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if width(&longer, size)? <= room {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            let longer = format!("{line}{c}");
            if width(&longer, size)? > room && !line.is_empty() {
                lines.push(std::mem::replace(&mut line, c.to_string()));
            } else {
                line = longer;
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    Ok(lines)
}
