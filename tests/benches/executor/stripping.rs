//! Erasing types: what a kilobyte costs, and what remembering a program saves.

use codemode_tests::executor::{Client, Executor};

use crate::Setting;
use crate::report::Report;
use crate::samples::Samples;
use crate::timed;

const TIMES: u32 = 30;
/// About a kilobyte of the kind of text that models write.
const KILOBYTE: &str = r#"
interface Item# { readonly id: string; n: number; tags?: string[]; price: number | null }
type Page#<T> = { items: T[]; next_cursor: string | null };
async function collect#(limit: number = 50): Promise<Item#[]> {
  const found: Item#[] = [];
  let cursor: string | null = null;
  do {
    const page = { items: [{ id: `it-${limit}`, n: limit, price: null }], next_cursor: null } as Page#<Item#>;
    for (const item of page.items) if (item.n % 2 === 0 && item.price !== undefined) found.push(item);
    cursor = page.next_cursor;
  } while (cursor !== null && found.length < limit);
  return found.sort((a: Item#, b: Item#): number => a.n - b.n);
}
const totals# = new Map<string, { count: number; sum: number }>();
function add#(tag: string, value: number): void {
  const old = totals#.get(tag) ?? { count: 0, sum: 0 };
  totals#.set(tag, { count: old.count + 1, sum: old.sum + value } satisfies { count: number; sum: number });
}
// Nothing here is called: only the stripping is measured, not the program's run.
"#;

/// A program of about so many kilobytes, unlike any other.
fn program(kilobytes: u32, unlike: &str) -> String {
    let parts: String = (0..kilobytes).map(|number| KILOBYTE.replace('#', &number.to_string())).collect();
    format!("{parts}return {unlike:?};")
}

pub(crate) async fn measure(setting: &Setting<'_>, report: &mut Report) -> anyhow::Result<()> {
    report.section("strip", "Erasing the types of a program, as its run's usage has it");
    let executor = Executor::start(&toml::Table::new()).await?;
    let mut client = executor.client().await?;
    let engine = setting.engines.first().map_or("", String::as_str);
    for _ in 0..3 {
        timed::plain(&mut client, engine, &program(1, "warm")).await?;
    }
    for kilobytes in [1, 8, 64, 256] {
        let times = setting.options.times(TIMES);
        let [mut new, mut known] = [(); 2].map(|()| Samples::default());
        let mut bytes = 0;
        for number in 0..times {
            let text = program(kilobytes, &format!("{kilobytes} {number}"));
            bytes = text.len();
            new.push_ms(strip_ms(&mut client, engine, &text).await?);
            known.push_ms(strip_ms(&mut client, engine, &text).await?);
        }
        let size = bytes as f64 / 1024.0;
        report.samples(&format!("{size:.0} KiB, new"), &new);
        report.samples(&format!("{size:.0} KiB, known"), &known);
        report.figure(&format!("{size:.0} KiB, new, a KiB"), new.p50() * 1e3 / size, "us");
        let ratio = new.p50() / known.p50().max(0.001);
        report.figure(&format!("{size:.0} KiB, known than new"), ratio, "times faster");
    }
    Ok(())
}

async fn strip_ms(client: &mut Client, engine: &str, text: &str) -> anyhow::Result<f64> {
    Ok(timed::plain(client, engine, text).await?.phases().strip_us as f64 / 1e3)
}
