//! Charts of bars as files.

use hipcl::chart::{Axis, Bar, Bars, Colour, Format, Group, Row, render};
use plotters::style::IntoFont as _;

const COLOURS: [(Colour, &str); 4] = [
    (Colour::OpenCl, "#2A78B5"),
    (Colour::Hip, "#D95F02"),
    (Colour::Rate, "#1B9E77"),
    (Colour::Cost, "#7570B3"),
];

fn bar(value: f64, label: &str) -> Bar {
    Bar {
        colour: Colour::Rate,
        value: Some(value),
        label: label.into(),
    }
}

fn chart(rows: impl IntoIterator<Item = (String, Vec<Bar>)>) -> Bars {
    let rows = rows.into_iter().map(|(name, bars)| Row { name, bars }).collect();
    Bars {
        title: "a title".into(),
        subtitle: "and what is below".into(),
        axis: Axis {
            label: "GB/s".into(),
            ..Axis::default()
        },
        groups: vec![Group {
            heading: "a heading".into(),
            rows,
        }],
        empty: "nothing to draw".into(),
    }
}

fn svg(bars: &Bars) -> String {
    String::from_utf8(render(bars, Format::Svg).expect("a picture")).expect("a text")
}

/// A rectangle: left, top, right, foot.
type Area = [i32; 4];

/// What a picture has.
#[derive(Debug)]
struct Parts {
    size: (i32, i32),
    bars: Vec<Area>,
    texts: Vec<(String, Area)>,
}

impl Parts {
    fn of(svg: &str) -> Self {
        let mut parts = Self {
            size: (0, 0),
            bars: Vec::new(),
            texts: Vec::new(),
        };
        // The first box of a colour is the legend's.
        let mut legend = Vec::new();
        let mut lines = svg.lines();
        while let Some(line) = lines.next() {
            let attribute = |name: &str| {
                let (_, rest) = line.split_once(&format!(" {name}=\"")).expect("the attribute");
                rest.split('"').next().unwrap_or_default()
            };
            let number = |name: &str| attribute(name).parse::<i32>().expect("a number");
            if line.starts_with("<svg") {
                parts.size = (number("width"), number("height"));
            } else if line.starts_with("<rect") {
                let fill = attribute("fill");
                let (x, y) = (number("x"), number("y"));
                let area = [x, y, x + number("width"), y + number("height")];
                if !COLOURS.iter().any(|(_, colour)| *colour == fill) {
                    continue;
                }
                match legend.contains(&fill.to_owned()) {
                    true => parts.bars.push(area),
                    false => legend.push(fill.to_owned()),
                }
            } else if line.starts_with("<text") {
                let text = unescaped(lines.next().expect("the text"));
                let size = attribute("font-size").parse::<f64>().expect("a size");
                let font = ("sans-serif", size * 1.24).into_font();
                let width = font.box_size(&text).expect("the embedded typeface").0 as i32;
                let (x, y) = (number("x"), number("y"));
                let left = match attribute("text-anchor") {
                    "start" => x,
                    "middle" => x - width / 2,
                    _ => x - width,
                };
                let half = (size / 2.0).ceil() as i32;
                parts.texts.push((text, [left, y - half, left + width, y + half]));
            }
        }
        parts
    }

    fn says(&self, text: &str) -> bool {
        self.texts.iter().any(|(it, _)| it == text)
    }

    fn lengths(&self) -> Vec<i32> {
        self.bars.iter().map(|[left, _, right, _]| right - left).collect()
    }

    /// Everything is inside, and no text meets another or a bar.
    #[track_caller]
    fn assert_readable(&self) {
        let all = self.texts.iter().map(|(_, area)| area).chain(&self.bars);
        for &[left, top, right, foot] in all {
            let is_inside = left >= 0 && top >= 0 && right <= self.size.0 && foot <= self.size.1;
            assert!(is_inside, "{:?} in {:?}", [left, top, right, foot], self.size);
        }
        for (index, (text, area)) in self.texts.iter().enumerate() {
            for (other, there) in &self.texts[index + 1..] {
                assert!(!meet(area, there), "`{text}` at {area:?} meets `{other}` at {there:?}");
            }
            for bar in &self.bars {
                assert!(!meet(area, bar), "`{text}` at {area:?} meets a bar at {bar:?}");
            }
        }
    }
}

fn meet(one: &Area, two: &Area) -> bool {
    one[0] < two[2] && two[0] < one[2] && one[1] < two[3] && two[1] < one[3]
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&amp;", "&")
}

#[test]
fn bars_are_as_long_as_their_values() {
    let values = [1.0, 2.0, 250.0, 500.0, 1000.0];
    let bars = chart(values.map(|value| (format!("row {value}"), vec![bar(value, &format!("{value} GB/s"))])));
    let parts = Parts::of(&svg(&bars));
    let lengths = parts.lengths();
    let longest = f64::from(lengths[4]);
    assert!(longest > 400.0, "{lengths:?}");
    for (length, value) in lengths.iter().zip(values) {
        assert!(
            (f64::from(*length) - longest * value / 1000.0).abs() <= 1.0,
            "{lengths:?}"
        );
    }
    for value in values {
        assert!(parts.says(&format!("row {value}")) && parts.says(&format!("{value} GB/s")));
    }
    for text in [
        "a title",
        "and what is below",
        "a heading",
        "GB/s",
        "a rate: longer is better",
    ] {
        assert!(parts.says(text), "{text}: {parts:?}");
    }
    parts.assert_readable();
}

#[test]
fn long_names_and_labels_are_broken_and_meet_nothing() {
    let words = "a product of two matrices with a name that goes on ".repeat(4);
    let path = "/opt/x".repeat(60);
    let mut bars = chart((0..6).map(|row| {
        let name = if row % 2 == 0 { &words } else { &path };
        (format!("{row} {name}"), vec![bar(1.0, &words), bar(2.0, &path)])
    }));
    bars.title = words.repeat(2);
    bars.groups[0].heading = path.repeat(2);
    let parts = Parts::of(&svg(&bars));
    parts.assert_readable();
    assert_eq!(parts.bars.len(), 12);
    let said: String = parts.texts.iter().map(|(text, _)| text.replace(' ', "")).collect();
    assert!(said.matches(&path).count() >= 9, "nothing is lost");
}

#[test]
fn forty_bars_and_one_bar_are_as_readable_as_a_few() {
    for count in [1_usize, 40] {
        let rows = (1..=count).map(|row| (format!("row {row}"), vec![bar(row as f64, &format!("{row} us"))]));
        let parts = Parts::of(&svg(&chart(rows)));
        assert_eq!(parts.bars.len(), count);
        parts.assert_readable();
        let lengths = parts.lengths();
        assert!(lengths.is_sorted() && lengths[count - 1] > 600, "{lengths:?}");
        assert!(parts.says(&format!("{count} us")));
    }
}

#[test]
fn a_chart_without_rows_says_why() {
    for bars in [
        chart([]),
        Bars {
            groups: Vec::new(),
            ..chart([])
        },
    ] {
        let parts = Parts::of(&svg(&bars));
        assert!(parts.says("nothing to draw") && parts.says("a title"), "{parts:?}");
        assert!(parts.bars.is_empty() && !parts.says("a heading"));
        parts.assert_readable();
        render(&bars, Format::Png).expect("a picture");
    }
}

#[test]
fn what_is_no_positive_number_has_its_label_and_no_bar() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -3.0, 0.0, 5.0];
    let rows = values.map(|value| (format!("row of {value}"), vec![bar(value, "its label")]));
    let none = Bar {
        value: None,
        ..bar(0.0, "no figure")
    };
    let svg = svg(&chart(rows.into_iter().chain([("none".into(), vec![none])])));
    let parts = Parts::of(&svg);
    assert_eq!(parts.bars.len(), 1, "{parts:?}");
    assert!(parts.says("no figure"));
    assert_eq!(parts.texts.iter().filter(|(text, _)| text == "its label").count(), 6);
    let only: Vec<_> = svg.lines().filter(|line| line.starts_with('<')).collect();
    assert!(!only.iter().any(|line| line.contains("NaN") || line.contains("inf")));
    let all_wrong = chart([("x".into(), vec![bar(f64::NAN, "-")])]);
    assert!(Parts::of(&self::svg(&all_wrong)).bars.is_empty());
}

#[test]
fn a_bar_beyond_the_axis_ends_there_and_is_drawn_broken() {
    let mut bars = chart([1.0, 2.0, 1000.0].map(|value| (value.to_string(), vec![bar(value, "x")])));
    let unbroken = svg(&bars);
    bars.axis.reference = Some((1.0, "limit".into()));
    bars.axis.most = Some(4.0);
    let broken = svg(&bars);
    let parts = Parts::of(&broken);
    let lengths = parts.lengths();
    assert!(
        (lengths[1] - 2 * lengths[0]).abs() <= 1 && (lengths[2] - 4 * lengths[0]).abs() <= 2,
        "{lengths:?}"
    );
    assert!(parts.says("limit"));
    parts.assert_readable();
    let marks = |svg: &str| svg.matches("stroke=\"#FFFFFF\"").count();
    assert_eq!((marks(&unbroken), marks(&broken)), (0, 2));
}

#[test]
fn markup_and_control_characters_in_names_leave_a_valid_file() {
    let name = "<b>&\"'\u{1b}[31m\u{0}\u{ffff}</b>";
    let svg = svg(&chart([(name.to_owned(), vec![bar(1.0, name)])]));
    assert!(
        !svg.contains("<b>") && svg.contains("&lt;b&gt;&amp;&quot;&apos;"),
        "{svg}"
    );
    assert!(svg.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{ffff}')));
}

#[test]
fn the_file_of_a_small_chart_is_as_it_was() {
    let hip = Bar {
        colour: Colour::Hip,
        ..bar(450.0, "450 GB/s")
    };
    let opencl = Bar {
        colour: Colour::OpenCl,
        ..bar(900.0, "900 GB/s")
    };
    let none = Bar {
        value: None,
        ..bar(0.0, "not possible here")
    };
    let rows = [("svm-coarse (vram)", vec![opencl, hip]), ("dma-buf", vec![none])];
    let svg = svg(&chart(rows.map(|(name, bars)| (name.to_owned(), bars))));
    if std::env::var_os("HIPCL_WRITE_GOLDEN").is_some() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/bars.svg");
        std::fs::write(golden, &svg).expect("written");
        return;
    }
    assert_eq!(
        svg,
        include_str!("golden/bars.svg"),
        "run HIPCL_WRITE_GOLDEN=1 cargo test -p hipcl --test chart"
    );
}

#[test]
fn a_png_has_the_bars_of_the_svg_on_a_white_ground() {
    let bars = chart([1.0, 3.0].map(|value| (value.to_string(), vec![bar(value, "GB/s")])));
    let parts = Parts::of(&svg(&bars));
    let bytes = render(&bars, Format::Png).expect("a picture");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a frame");
    assert_eq!((info.width as i32, info.height as i32), parts.size);
    let pixel = |x: i32, y: i32| {
        let at = (y * parts.size.0 + x) as usize * 3;
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    assert_eq!(pixel(0, 0), [255; 3]);
    for &[left, top, right, foot] in &parts.bars {
        let middle = (top + foot) / 2;
        assert_eq!(pixel(left + 2, middle), [0x1b, 0x9e, 0x77]);
        assert_eq!(pixel(right - 2, middle), [0x1b, 0x9e, 0x77]);
        assert_ne!(pixel(right + 2, middle), [0x1b, 0x9e, 0x77]);
    }
}

#[test]
fn the_extension_names_the_format_and_others_are_refused() {
    let format = |name: &str| Format::of(name.as_ref());
    assert_eq!(format("a/b.svg").expect("known"), Format::Svg);
    assert_eq!(format("B.PNG").expect("known"), Format::Png);
    for wrong in ["a.pdf", "png", "a.", ""] {
        let message = format(wrong).expect_err("refused").one_line();
        assert!(message.contains(".svg or .png"), "{message}");
    }
}
