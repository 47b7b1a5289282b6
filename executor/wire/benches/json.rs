//! How fast JSON text is checked: `cargo bench -p codemode-wire`. Prints megabytes a second, best of several passes,
//! of texts that are each all of one kind. The aim is 200 MB/s on strings and numbers.
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use codemode_wire::json::{StringLiteral, check, cost_of_str};

/// Roughly the size of each text, bytes.
const TEXT_BYTES: usize = 8 << 20;
const PASSES: usize = 7;

/// A text of that size: `item` over and over, between brackets.
fn text(open: &str, close: &str, item: impl Fn(usize, &mut String)) -> String {
    let mut text = open.to_owned();
    let mut index = 0;
    while text.len() < TEXT_BYTES {
        if index > 0 {
            text.push(',');
        }
        item(index, &mut text);
        index += 1;
    }
    text + close
}

fn measure(name: &str, bytes: usize, work: impl Fn()) {
    let seconds = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    let megabytes = f64::from(u32::try_from(bytes).expect("a few megabytes")) / 1e6;
    println!("{name:<40} {:>8.0} MB/s", megabytes / seconds);
}

fn main() {
    let one_string = format!("\"{}\"", "The quick brown fox. ".repeat(TEXT_BYTES / 21));
    let texts = [
        ("one long string", one_string),
        ("one long string, not ASCII", format!("\"{}\"", "Füchse springen 🦊 ".repeat(TEXT_BYTES / 22))),
        ("short strings", text("[", "]", |index, t| write!(t, "\"item {index}\"").expect("a string"))),
        ("escapes", text("[", "]", |_, t| t.push_str("\"a\\nb\\u0000c\\\"\\ud83d\\ude00\""))),
        ("small integers", text("[", "]", |index, t| write!(t, "{}", index % 1000).expect("a string"))),
        (
            "integers near 2^53",
            text("[", "]", |index, t| {
                write!(t, "{}", 9_007_199_254_000_000 + index).expect("a string");
            }),
        ),
        ("integers of 21 digits", text("[", "]", |_, t| t.push_str("123456789012345680000"))),
        ("decimals", text("[", "]", |index, t| write!(t, "{index}.0625").expect("a string"))),
        ("exponents", text("[", "]", |index, t| write!(t, "{index}e-7").expect("a string"))),
        (
            "records",
            text("[", "]", |index, t| {
                write!(t, "{{\"id\":{index},\"name\":\"item {index}\",\"tags\":[\"a\",\"b\"],\"price\":1.25,\"gone\":null}}")
                .expect("a string");
            }),
        ),
        (
            "one object of many keys",
            text("{", "}", |index, t| write!(t, "\"key {index}\":1").expect("a string")),
        ),
        ("empty arrays", text("[", "]", |_, t| t.push_str("[]"))),
    ];
    for (name, text) in &texts {
        measure(name, text.len(), || check(black_box(text.as_bytes())).expect("lossless JSON"));
    }
    let literal = &texts[0].1;
    measure("parse and decode one literal", literal.len(), || {
        let literal = StringLiteral::parse(black_box(literal.as_bytes())).expect("a literal");
        black_box(literal.decode());
    });
    measure("cost of one text", literal.len(), || {
        black_box(cost_of_str(black_box(literal)));
    });
}
