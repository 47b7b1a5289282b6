//! How scripted bindings answer. Owns the standard tools, which behave exactly as the stand-ins that the programs of
//! `tests/conformance/programs` were written against, and the scripts of a case's own functions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::case::{Namespace, Reply, assemble};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This JSON text.
    Value(Bytes),
    /// This failure.
    Error(String),
    /// Nothing, ever.
    Never,
}

/// An answer and the time before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Time before the answer.
    pub delay: Duration,
    /// The answer.
    pub answer: Answer,
}

impl Timed {
    fn now(answer: Answer) -> Self {
        Self { delay: Duration::ZERO, answer }
    }

    fn value(text: impl Into<String>) -> Self {
        Self::now(Answer::Value(Bytes::from(text.into())))
    }

    fn error(message: impl Into<String>) -> Self {
        Self::now(Answer::Error(message.into()))
    }
}

/// Names of the standard tools in the order in which a program sees them.
pub const STANDARD: [&str; 27] = [
    "list_items",
    "get_item",
    "echo",
    "always_fails",
    "flaky",
    "slow",
    "never",
    "big_text",
    "csv_export",
    "fetch_page",
    "records",
    "post_message",
    "posted",
    "count",
    "int64",
    "half_emoji",
    "proto_key",
    "returns_null",
    "text_error",
    "__proto__",
    "constructor",
    "toString",
    "then",
    "weird.name/with-slash",
    "has space",
    "émoji🚀",
    "",
];

const CSV: &str = "id,name,note,amount\r\n1,\"Ann \"\"A\"\" Lee\",\"likes, commas\",10.50\r\n2,Bo,\"two\nlines\",7\r\n3,Cy,,0.25\r\n";

const PAGE: &str = "<html><head><title>Q3 — Résumé</title></head><body><a href=\"/a?x=1&amp;y=2\">First</a> price $1,234.50 \
and €99,95; ids: AB-12, zz-9, AB-007; 👩‍👩‍👧 ok</body></html>";

/// The bindings of one run, with the state that their calls share.
#[derive(Debug)]
pub struct Tools {
    namespaces: Vec<Namespace>,
    standard: Mutex<Standard>,
    /// Calls so far of each scripted function, by namespace and function.
    counts: Mutex<HashMap<(usize, usize), usize>>,
}

impl Tools {
    /// A fresh set.
    #[must_use]
    pub fn new(namespaces: Vec<Namespace>) -> Self {
        Self { namespaces, standard: Mutex::default(), counts: Mutex::default() }
    }

    /// How the call is answered; the call counts as made.
    #[must_use]
    pub fn answer(&self, global: &str, name: &str, args: &[u8]) -> Timed {
        let Some((at, namespace)) = self.namespaces.iter().enumerate().find(|(_, n)| n.global == global)
        else {
            return Timed::error(format!("the harness has no namespace `{global}`"));
        };
        if let Some((function, script)) = namespace.functions.iter().enumerate().find(|(_, f)| f.name == name)
        {
            let mut counts = self.counts.lock().expect("no call panics");
            let count = counts.entry((at, function)).or_default();
            let reply = script.replies.get(*count).or(script.replies.last());
            *count += 1;
            return reply
                .map_or_else(|| Timed::value(String::from_utf8_lossy(args)), |reply| scripted(reply, args));
        }
        if namespace.standard {
            return self.standard.lock().expect("no call panics").call(name, args);
        }
        Timed::error(format!("the harness has no function `{global}.{name}`"))
    }
}

fn scripted(reply: &Reply, args: &[u8]) -> Timed {
    let answer = if let Some(value) = &reply.value {
        Answer::Value(Bytes::from(value.clone()))
    } else if let Some(parts) = &reply.value_parts {
        Answer::Value(Bytes::from(assemble(parts)))
    } else if let Some(hex) = &reply.value_hex {
        Answer::Value(Bytes::from(from_hex(hex)))
    } else if let Some(message) = &reply.error {
        Answer::Error(message.clone())
    } else if reply.never {
        Answer::Never
    } else {
        Answer::Value(Bytes::copy_from_slice(args))
    };
    Timed { delay: Duration::from_millis(reply.delay_ms), answer }
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or("0"), 16).unwrap_or(0);
    digits.chunks(2).map(pair).collect()
}

/// State of the standard tools.
#[derive(Debug, Default)]
struct Standard {
    tries: HashMap<String, u64>,
    posted: Vec<String>,
    calls: u64,
}

impl Standard {
    fn call(&mut self, name: &str, args: &[u8]) -> Timed {
        // Arguments that serde_json cannot read (too deep, half surrogates) matter to `echo` alone, which reads none.
        let args_value: Value = serde_json::from_slice(args).unwrap_or_default();
        let field = |key: &str| args_value.get(key);
        match name {
            "list_items" if args_value.is_null() => destructuring_null("cursor"),
            "list_items" => list_items(field("cursor"), field("limit")),
            "get_item" if args_value.is_null() => destructuring_null("id"),
            "get_item" => get_item(field("id")),
            "echo" => Timed::now(Answer::Value(Bytes::copy_from_slice(args))),
            "always_fails" => Timed::error("upstream returned 503"),
            "flaky" => self.flaky(field("key")),
            "slow" => slow(field("ms"), field("tag")),
            "never" => Timed::now(Answer::Never),
            "big_text" => big_text(field("bytes"), field("char")),
            "csv_export" => Timed::value(quoted(CSV)),
            "fetch_page" => Timed::value(quoted(PAGE)),
            "records" => Timed::value(records()),
            "post_message" => {
                let text = |key| field(key).cloned().unwrap_or_default().to_string();
                self.posted.push(format!("[{},{}]", text("channel"), text("text")));
                Timed::value(format!("{{\"seq\":{}}}", self.posted.len()))
            }
            "posted" => Timed::value(format!("[{}]", self.posted.join(","))),
            "count" => {
                self.calls += 1;
                Timed::value(format!("{{\"calls\":{}}}", self.calls))
            }
            "int64" => Timed::value("{\"id\":9007199254740993}"),
            "half_emoji" => Timed::value("\"\\ud83d\""),
            "proto_key" => Timed::value("{\"__proto__\":{\"polluted\":true},\"constructor\":1,\"ok\":2}"),
            "returns_null" => Timed::value("null"),
            "text_error" => Timed::value("\"Error: permission denied for table users\""),
            _ if STANDARD.contains(&name) => Timed::value(format!("{{\"called\":{}}}", quoted(name))),
            _ => Timed::error(format!("the standard tools have no `{name}`")),
        }
    }

    fn flaky(&mut self, key: Option<&Value>) -> Timed {
        let tries = self.tries.entry(key.cloned().unwrap_or_default().to_string()).or_default();
        *tries += 1;
        if *tries < 3 {
            return Timed::error("temporarily unavailable");
        }
        Timed::value(format!("{{\"ok\":true,\"attempt\":{tries}}}"))
    }
}

/// What JavaScript says where a stand-in takes `null` apart.
fn destructuring_null(first: &str) -> Timed {
    Timed::error(format!("Cannot destructure property '{first}' of 'object null' as it is null."))
}

fn quoted(text: &str) -> String {
    codemode_wire::json::quote(text)
}

/// Items in all.
const ITEMS: usize = 25;

fn item(index: usize) -> String {
    let tag = ["a", "b", "c"][index % 3];
    let cents = u32::try_from(index * 735 + 100).unwrap_or(u32::MAX);
    let price = f64::from(cents) / 100.0;
    format!("{{\"id\":\"it-{n}\",\"n\":{n},\"tag\":\"{tag}\",\"price\":{price}}}", n = index + 1)
}

fn list_items(cursor: Option<&Value>, limit: Option<&Value>) -> Timed {
    let number = |value: &Value| match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64().and_then(|n| usize::try_from(n).ok()),
    };
    let start = cursor.filter(|cursor| !cursor.is_null()).and_then(number).unwrap_or(0);
    let limit = limit.and_then(number).unwrap_or(10);
    let end = start.saturating_add(limit);
    let items: Vec<String> = (start..end.min(ITEMS)).map(item).collect();
    let next = if end < ITEMS { format!("\"{end}\"") } else { "null".to_owned() };
    Timed::value(format!("{{\"items\":[{}],\"next_cursor\":{next}}}", items.join(",")))
}

fn get_item(id: Option<&Value>) -> Timed {
    let shown = match id {
        None => "undefined".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let found = (0..ITEMS).find(|index| id.is_some_and(|id| *id == format!("it-{}", index + 1)));
    found.map_or_else(|| Timed::error(format!("item not found: {shown}")), |index| Timed::value(item(index)))
}

fn slow(ms: Option<&Value>, tag: Option<&Value>) -> Timed {
    let tag = tag.cloned().unwrap_or_default();
    let Some(ms) = ms.and_then(Value::as_u64) else {
        return Timed::error("slow needs `ms`");
    };
    Timed { delay: Duration::from_millis(ms), ..Timed::value(format!("{{\"waited\":{ms},\"tag\":{tag}}}")) }
}

fn big_text(bytes: Option<&Value>, unit: Option<&Value>) -> Timed {
    let count = bytes.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let unit = quoted(unit.and_then(Value::as_str).unwrap_or("x"));
    Timed::value(format!("\"{}\"", unit[1..unit.len() - 1].repeat(count)))
}

/// 200 orders, nine hours apart from the beginning of 2025.
fn records() -> String {
    let regions = ["north", "south", "east", "west"];
    let mut text = "[".to_owned();
    for i in 0..200 {
        let hours = i * 9;
        let (mut day, mut month) = (hours / 24, 1);
        for length in [31, 28, 31] {
            if day >= length && month < 4 {
                day -= length;
                month += 1;
            } else {
                break;
            }
        }
        let _ = write!(
            text,
            "{comma}{{\"order\":\"o-{order}\",\"customer\":\"c-{customer}\",\"region\":\"{region}\",\"total_cents\":{cents},\
\"created_at\":\"2025-{month:02}-{day:02}T{hour:02}:00:00.000Z\",\"lines\":[{{\"sku\":\"s-{sku}\",\"qty\":{qty}}}]}}",
            comma = if i == 0 { "" } else { "," },
            order = i + 1,
            customer = i % 17,
            region = regions[i % 4],
            cents = (i * i * 37) % 10_000,
            day = day + 1,
            hour = hours % 24,
            sku = i % 11,
            qty = i % 5 + 1,
        );
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tools: &Tools, name: &str, args: &str) -> String {
        match tools.answer("tools", name, args.as_bytes()).answer {
            Answer::Value(text) => String::from_utf8(text.to_vec()).expect("UTF-8"),
            Answer::Error(message) => format!("error: {message}"),
            Answer::Never => "never".to_owned(),
        }
    }

    fn standard() -> Tools {
        Tools::new(vec![Namespace {
            global: "tools".to_owned(),
            error_class: None,
            standard: true,
            functions: Vec::new(),
        }])
    }

    #[test]
    fn items_come_in_pages() {
        let tools = standard();
        let page = call(&tools, "list_items", "{\"cursor\":\"20\"}");
        assert!(
            page.starts_with("{\"items\":[{\"id\":\"it-21\",\"n\":21,\"tag\":\"c\",\"price\":148}"),
            "{page}"
        );
        assert!(page.ends_with("\"next_cursor\":null}"), "{page}");
        assert!(call(&tools, "list_items", "{}").ends_with("\"next_cursor\":\"10\"}"));
        assert!(call(&tools, "list_items", "{\"limit\":3}").ends_with("\"next_cursor\":\"3\"}"));
        assert_eq!(
            call(&tools, "get_item", "{\"id\":\"it-2\"}"),
            "{\"id\":\"it-2\",\"n\":2,\"tag\":\"b\",\"price\":8.35}"
        );
        assert_eq!(call(&tools, "get_item", "\"it-1\""), "error: item not found: undefined");
        assert_eq!(call(&tools, "get_item", "{\"id\":7}"), "error: item not found: 7");
    }

    #[test]
    fn records_are_dated_by_the_calendar() {
        let records = records();
        let parsed: Value = serde_json::from_str(&records).expect("JSON");
        let dates: Vec<&str> =
            parsed.as_array().expect("a list").iter().filter_map(|r| r["created_at"].as_str()).collect();
        assert_eq!(dates.len(), 200);
        assert_eq!((dates[0], dates[1]), ("2025-01-01T00:00:00.000Z", "2025-01-01T09:00:00.000Z"));
        assert_eq!(dates[83], "2025-02-01T03:00:00.000Z");
        assert_eq!(dates[199], "2025-03-16T15:00:00.000Z");
    }

    #[test]
    fn state_is_kept_within_a_set() {
        let tools = standard();
        assert_eq!(call(&tools, "flaky", "{\"key\":\"a\"}"), "error: temporarily unavailable");
        assert_eq!(call(&tools, "flaky", "{\"key\":\"b\"}"), "error: temporarily unavailable");
        assert_eq!(call(&tools, "flaky", "{\"key\":\"a\"}"), "error: temporarily unavailable");
        assert_eq!(call(&tools, "flaky", "{\"key\":\"a\"}"), "{\"ok\":true,\"attempt\":3}");
        assert_eq!(call(&tools, "post_message", "{\"channel\":\"#a\",\"text\":\"x\"}"), "{\"seq\":1}");
        assert_eq!(call(&tools, "posted", "{}"), "[[\"#a\",\"x\"]]");
        assert_eq!(call(&standard(), "posted", "{}"), "[]");
    }

    #[test]
    fn every_standard_tool_answers() {
        let tools = standard();
        for name in STANDARD {
            let answer = call(&tools, name, "{\"id\":\"it-1\",\"ms\":1,\"bytes\":2,\"key\":1}");
            assert!(!answer.contains("standard tools have no"), "{name:?}");
        }
        assert_eq!(call(&tools, "big_text", "{\"bytes\":3,\"char\":\"é\"}"), "\"ééé\"");
        assert_eq!(call(&tools, "", "{}"), "{\"called\":\"\"}");
    }

    #[test]
    fn scripts_answer_in_order() {
        let reply = |value: &str| Reply { value: Some(value.to_owned()), ..Reply::default() };
        let function = |name: &str, replies| crate::case::Function { name: name.to_owned(), replies };
        let tools = Tools::new(vec![Namespace {
            global: "tools".to_owned(),
            error_class: None,
            standard: true,
            functions: vec![function("count", vec![reply("1"), reply("2")]), function("plain", Vec::new())],
        }]);
        assert_eq!(
            ["1", "2", "2"],
            [(); 3].map(|()| call(&tools, "count", "null")).each_ref().map(String::as_str)
        );
        assert_eq!(call(&tools, "plain", "[1]"), "[1]");
    }
}
