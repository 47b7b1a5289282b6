//! Every conformance case on every engine that the built executor has. Filter with `CODEMODE_CASES=ledger,B063`.

use std::path::Path;

use codemode_tests::case::{self, conformance_folder};
use codemode_tests::executor;
use codemode_tests::suite::{self, Options};

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stdout,
    reason = "the counts, and what was skipped and why, are for `make test` to sum up"
)]
async fn every_case_on_every_engine() {
    executor::binary("codemode-executor").expect("the executor is built");
    let cases = case::load(&conformance_folder()).expect("the cases load");
    let filters = std::env::var("CODEMODE_CASES").unwrap_or_default();
    let options = Options {
        filters: filters.split(',').filter(|filter| !filter.is_empty()).map(str::to_owned).collect(),
        engines: Vec::new(),
        parallel: 3,
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../conformance");
    let report = suite::run(&cases, &options, &folder).await.expect("executors start");
    assert!(!report.cases.is_empty(), "nothing was run");
    for skipped in report.cases.iter().filter(|case| case.result == "skipped") {
        println!("skipped: {} on {}: {}", skipped.id, skipped.engine, skipped.faults.join("; "));
    }
    println!("{}", report.summary());
    let differences = report.untold_differences(&cases);
    assert!(
        report.failures().next().is_none() && differences.is_empty(),
        "{}\n{}",
        suite::explain(&report, &cases),
        differences.join("\n"),
    );
}
