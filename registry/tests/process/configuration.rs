//! What the binary says of its configuration.

use crate::support::run;

#[tokio::test]
async fn every_fault_is_named_before_a_port_is_bound() {
    let arguments = ["serve", "--check", "--listen", "0.0.0.0:50052", "--mode", "odd", "--sessions-max", "0"];
    let output = run(&arguments).await;
    assert_eq!(output.status.code(), Some(64));
    let said = String::from_utf8_lossy(&output.stderr);
    for fault in [
        "`mode` is `odd`",
        "`sessions_max` is 0",
        "`listen` is `0.0.0.0:50052`, which other machines can reach",
    ] {
        assert!(said.contains(fault), "{fault}: {said}");
    }
    assert_eq!(run(&["serve", "--no-such"]).await.status.code(), Some(64));
    assert_eq!(run(&["serve", "--check"]).await.status.code(), Some(0));
}

#[tokio::test]
async fn what_is_in_force_can_be_printed_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("registry.toml");
    std::fs::write(&file, "mode = \"both\"\n[[policy]]\neffect = \"deny\"\ntools = [\"x\"]\n")
        .expect("written");
    let file = file.to_string_lossy().into_owned();
    let printed = run(&["serve", "--config", &file, "--print-config", "--sessions-max", "5"]).await;
    let printed = String::from_utf8(printed.stdout).expect("UTF-8");
    assert!(printed.contains("mode = \"both\"") && printed.contains("sessions_max = 5"), "{printed}");
    std::fs::write(&file, &printed).expect("written");
    let again = run(&["serve", "--config", &file, "--print-config"]).await;
    assert_eq!(String::from_utf8_lossy(&again.stdout), printed);
}

#[tokio::test]
async fn an_executor_that_is_not_there_is_no_wrong_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = format!("unix:{}/r.sock", folder.path().display());
    let missing = format!("{}/codemode-executor", folder.path().display());
    let output = run(&["serve", "--listen", &listen, "--store", "memory", "--executor-bin", &missing]).await;
    assert_eq!(output.status.code(), Some(69));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the private executor does not start: cannot start"), "{said}");
}
