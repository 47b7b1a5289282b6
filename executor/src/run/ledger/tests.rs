//! The ledger by example and by property: exactly at the cap, one beyond, cut entries.

use proptest::prelude::*;

use super::*;
use codemode_wire::json::quote;

fn log(ledger: &mut Ledger, text: &str) -> Admission {
    let literal = quote(text);
    log_literal(ledger, &literal)
}

fn log_literal(ledger: &mut Ledger, literal: &str) -> Admission {
    let parsed = StringLiteral::parse(literal.as_bytes()).expect("a literal");
    ledger.log(parsed, literal.as_bytes())
}

fn ledger(cap: u64) -> Ledger {
    Ledger::new(cap, 1 << 20)
}

#[track_caller]
fn assert_within(closed: &Closed, cap: u64) {
    let logs: Vec<String> = closed.logs.iter().map(|text| quote(text)).collect();
    let logs = logs.join(",").len() as u64 + 2;
    let message = closed.message.as_deref().map_or(0, cost_of_str);
    assert!(logs + message <= cap, "{} + {} > {cap}", logs, message);
}

#[test]
fn worked_numbers_of_the_contract() {
    assert!(ledger(7).close(Tail::Value(5)).is_ok(), "`€` without logs costs 2 + 5");
    assert!(ledger(6).close(Tail::Value(5)).is_err());
    for (cap, fits) in [(11, true), (10, false)] {
        let mut books = ledger(cap);
        assert_eq!(log(&mut books, "abc"), Admission::Kept("abc".to_owned()));
        let closed = books.close(Tail::Value(4));
        assert_eq!(closed.is_ok(), fits, "cap {cap}");
        let mut books = ledger(cap);
        log(&mut books, "abc");
        let closed = books.close(Tail::Message("xy"));
        assert_eq!(closed.is_ok(), fits, "cap {cap}");
        if let Err(closed) = closed {
            assert_within(&closed, cap);
        }
    }
    let cap = 67_108_864;
    assert!(ledger(cap).fits(67_108_860 + 2));
    assert!(!ledger(cap).fits(67_108_861 + 2));
}

#[test]
fn cap_4_degenerates_to_nothing() {
    let closed = ledger(4).close(Tail::Message("syntax error")).expect_err("does not fit");
    assert_eq!(
        closed,
        Closed { logs: Vec::new(), message: Some(String::new()), cost: 4, asked: Some(2 + 14) }
    );
    let mut books = ledger(4);
    assert_eq!(log(&mut books, "12345"), Admission::Overflow(None));
    assert_eq!(books.close_over_cap().logs, Vec::<String>::new());
}

#[test]
fn a_message_that_fits_exactly_stays() {
    let mut books = ledger(2 + 7);
    assert!(books.fits(7));
    assert_eq!(books.close(Tail::Message("kaput")).expect("fits").cost, 9);
    books = ledger(8);
    assert!(books.close(Tail::Message("kaput")).is_err());
}

#[test]
fn overflow_keeps_a_prefix_and_cuts_between_code_points() {
    let cap = 96;
    let mut books = ledger(cap);
    let text = "🚀\"\\\n".repeat(1000);
    let Admission::Overflow(Some(streamed)) = log(&mut books, &text) else { panic!("overflows") };
    assert!(text.starts_with(&streamed));
    assert_eq!(log(&mut books, "later"), Admission::Overflow(None), "nothing is kept after an overflow");
    let closed = books.close_over_cap();
    assert_within(&closed, cap);
    assert_eq!(closed.logs.len(), 1);
    assert!(streamed.starts_with(&closed.logs[0]) && !closed.logs[0].is_empty());
    assert_eq!(closed.message.as_deref(), Some("outer output exceeded 96 bytes"));
}

#[test]
fn empty_entries_are_entries() {
    let mut books = ledger(100);
    for text in ["a", "", "b"] {
        log(&mut books, text);
    }
    assert_eq!(books.close(Tail::Nothing).expect("fits").logs, ["a", "", "b"]);
}

#[test]
fn half_surrogates_cost_six_and_are_cut_by_that_count() {
    let literal = "\"\\ud800\\ud800\\ud800\"";
    let mut books = ledger(20);
    assert_eq!(log_literal(&mut books, literal), Admission::Overflow(Some("\u{fffd}\u{fffd}".to_owned())));
    let mut books = ledger(22);
    assert_eq!(log_literal(&mut books, literal), Admission::Kept("\u{fffd}".repeat(3)));
    assert_eq!(books.cost(), 22);
    // Beside the message of 37 bytes, 13 are left: the brackets, two quotes and one half surrogate fit.
    let mut books = ledger(32 + 12);
    log_literal(&mut books, literal);
    log_literal(&mut books, &quote(&"x".repeat(100)));
    assert_eq!(books.close_over_cap().logs, ["\u{fffd}"]);
}

#[test]
fn a_forged_giant_entry_is_cut_and_marked() {
    let mut books = Ledger::new(1 << 20, 10);
    let Admission::Kept(text) = log(&mut books, &"é".repeat(100)) else { panic!("kept") };
    assert_eq!(text, "ééééé… [entry cut]");
    let own_mark = "x".repeat(10 + 64);
    assert_eq!(log(&mut books, &own_mark), Admission::Kept(own_mark.clone()));
}

#[test]
fn the_count_of_entries_is_bounded() {
    let mut books = Ledger::new(1 << 30, 1);
    for _ in 0..LOG_ENTRIES_MAX {
        books.entries.push(Entry { text: String::new(), cost: 2, literal: None });
    }
    assert_eq!(log(&mut books, ""), Admission::Overflow(None));
    assert_eq!(books.close_over_cap().message.as_deref(), Some("outer output exceeded 1048576 log entries"));
}

/// What the ledger does, done the slow way: by building the JSON.
fn naive(cap: u64, logs: &[String], message: Option<&str>) -> (Vec<String>, Option<String>, bool) {
    let json = |logs: &[String]| {
        let literals: Vec<String> = logs.iter().map(|text| quote(text)).collect();
        format!("[{}]", literals.join(",")).len() as u64
    };
    let message_cost = message.map_or(0, |text| quote(text).len() as u64);
    if json(logs) + message_cost <= cap {
        return (logs.to_vec(), message.map(str::to_owned), false);
    }
    let mut over = String::new();
    for c in format!("outer output exceeded {cap} bytes").chars() {
        over.push(c);
        if quote(&over).len() as u64 + 2 > cap {
            over.pop();
            break;
        }
    }
    let room = cap - quote(&over).len() as u64;
    let mut kept: Vec<String> = Vec::new();
    for entry in logs {
        kept.push(entry.clone());
        if json(&kept) <= room {
            continue;
        }
        let mut cut = entry.clone();
        while !cut.is_empty() {
            cut.pop();
            *kept.last_mut().expect("just pushed") = cut.clone();
            if json(&kept) <= room {
                break;
            }
        }
        if cut.is_empty() {
            kept.pop();
        }
        break;
    }
    (kept, Some(over), true)
}

proptest! {
    #[test]
    fn agrees_with_the_naive_model(
        cap in 4_u64..200,
        logs in proptest::collection::vec("[a\"\\\\\n\u{1}é€🚀]{0,12}", 0..8),
        message in proptest::option::of("[a\"€]{0,20}"),
    ) {
        let mut books = ledger(cap);
        for text in &logs {
            log(&mut books, text);
        }
        let closed = books.close(message.as_deref().map_or(Tail::Nothing, Tail::Message));
        let over = closed.is_err();
        let closed = match closed { Ok(closed) | Err(closed) => closed };
        let (naive_logs, naive_message, naive_over) = naive(cap, &logs, message.as_deref());
        prop_assert_eq!(over, naive_over);
        prop_assert_eq!(&closed.logs, &naive_logs);
        prop_assert_eq!(&closed.message, &naive_message);
        assert_within(&closed, cap);
    }
}
