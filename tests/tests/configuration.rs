//! A wrong configuration is refused before anything is bound: all faults at once, exit code 64.

use std::process::Command;

use codemode_tests::executor::{Executor, binary};

/// `EX_USAGE`.
const EXIT_CONFIG: i32 = 64;

/// Exit code and log of an executor with this configuration.
fn refused(configuration: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("executor.toml");
    let socket = folder.path().join("executor.sock");
    std::fs::write(&file, format!("listen = \"unix:{}\"\n{configuration}", socket.display()))
        .expect("written");
    let output = Command::new(binary("codemode-executor").expect("built"))
        .arg("--config")
        .arg(&file)
        .output()
        .expect("it runs");
    assert!(!socket.exists(), "bound in spite of `{configuration}`");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn wrong_numbers_are_refused() {
    for (configuration, words) in [
        ("compute_ms = -1", vec!["compute_ms"]),
        ("compute_ms = 0", vec!["compute_ms"]),
        ("wall_ms = 2147483648", vec!["wall_ms", "2147483647"]),
        ("output_bytes = 3", vec!["output_bytes", "4"]),
        ("output_bytes = 4.5", vec!["output_bytes"]),
        ("undefined = \"ignore\"", vec!["undefined"]),
        ("no_such_option = 1", vec!["no_such_option"]),
        ("compute_ms = 0\noutput_bytes = 3\nwall_ms = 0", vec!["compute_ms", "output_bytes", "wall_ms"]),
        ("required_layers = [\"moat\"]", vec!["moat"]),
    ] {
        let (code, log) = refused(configuration);
        assert_eq!(code, Some(EXIT_CONFIG), "`{configuration}`: {log}");
        for word in words {
            assert!(log.contains(word), "`{configuration}` does not name `{word}`: {log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_ranges_are_accepted() {
    let table = toml::from_str("wall_ms = 2147483647\noutput_bytes = 4\ncompute_ms = 1").expect("TOML");
    let executor = Executor::start(&table).await.expect("it starts");
    let budgets = executor.describe().await.expect("described").budgets.expect("budgets");
    assert_eq!(
        (budgets.wall_ms, budgets.output_bytes, budgets.compute_ms),
        (Some(2_147_483_647), Some(4), Some(1))
    );
}
