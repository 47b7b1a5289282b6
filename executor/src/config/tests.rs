//! Where options come from, what is refused and with which words, and that the generated pages are current.

use clap::{CommandFactory as _, Parser as _};

use super::options::NUMBERS;
use super::*;

/// A folder with a runner of quickjs in it.
fn beside() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("codemode-runner-quickjs"), "").expect("a file");
    folder
}

fn validate(toml: &str) -> Result<Config, Vec<String>> {
    let options: Options = toml::from_str(toml).expect("well-formed options");
    Config::validate(&options, beside().path()).map_err(|faults| faults.0)
}

#[track_caller]
fn faults(toml: &str) -> Vec<String> {
    validate(toml).expect_err("faults")
}

#[test]
fn nothing_given_is_a_whole_configuration() {
    let config = validate("").expect("defaults hold");
    assert_eq!(config.listen.to_string(), "127.0.0.1:50051");
    assert_eq!(config.default_engine, Engine::Quickjs, "auto takes what is there");
    assert_eq!((config.budgets.compute_ms, config.budgets.wall_ms), (60_000, 600_000));
    assert_eq!((config.budgets.output_bytes, config.budgets.heap_bytes), (67_108_864, 512 << 20));
    assert_eq!(config.frame_bytes_max, 128 << 20);
    assert!(config.required_layers.contains(Layer::Seccomp) && config.layers_off.is_empty());
}

#[test]
fn both_ends_of_every_number() {
    for number in NUMBERS {
        let check = |value: u64| {
            // TOML integers end at i64::MAX.
            i64::try_from(value).is_err() || validate(&format!("{} = {value}", number.name)).is_ok()
        };
        assert!(check(number.min) && check(number.max), "{}", number.name);
        assert!((number.min..=number.max).contains(&number.default), "{}", number.name);
        assert!(!check(number.max + 1), "{}", number.name);
        assert!(number.min == 0 || !check(number.min - 1), "{}", number.name);
        assert!(!number.why.is_empty());
    }
    assert_eq!(
        faults("wall_ms = 2147483648"),
        ["`wall_ms` is 2147483648; it must be from 1 to 2147483647 ms"]
    );
    assert_eq!(faults("output_bytes = 3"), ["`output_bytes` is 3; it must be from 4 to 536870912 bytes"]);
}

#[test]
fn numbers_that_are_none_and_unknown_names_are_refused() {
    for toml in ["compute_ms = -1", "output_bytes = 4.5", "compute_ms = \"1\"", "no_such_option = 1"] {
        assert!(toml::from_str::<Options>(toml).is_err(), "{toml}");
    }
}

#[test]
fn every_number_is_an_option_and_every_option_has_an_environment_name() {
    let command = Options::command();
    let names: Vec<String> = command
        .get_arguments()
        .filter(|arg| arg.get_env().is_some())
        .map(|arg| arg.get_id().to_string())
        .collect();
    for number in NUMBERS {
        assert!(names.iter().any(|name| name == number.name), "{}", number.name);
    }
    for arg in command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")) {
        let env = arg.get_env().expect("an environment name").to_string_lossy().into_owned();
        assert_eq!(env, format!("CODEMODE_EXECUTOR_{}", arg.get_id().as_str().to_uppercase()));
    }
}

#[test]
fn all_faults_at_once() {
    let found = faults(
        "compute_ms = 0\nspawn = \"thread\"\nlisten = \"nowhere\"\nlayers_off = [\"seccomp\", \"moat\"]",
    );
    let starts = [
        "`layers_off` names `moat`",
        "layer `seccomp` is in `required_layers` and in",
        "`listen` is `nowhere`",
        "`spawn` is `thread`; it must be one of `fork`, `exec`",
        "`compute_ms` is 0",
    ];
    assert_eq!(found.len(), starts.len(), "{found:?}");
    for (fault, start) in found.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault} / {start}");
    }
}

#[test]
fn a_network_needs_tls_and_a_token_or_a_word() {
    for listen in ["0.0.0.0:50051", "[::]:50051", "10.0.0.1:1"] {
        let found = faults(&format!("listen = \"{listen}\""));
        assert!(found[0].contains("allow_unauthenticated_network"), "{found:?}");
        let allowed = format!("listen = \"{listen}\"\nallow_unauthenticated_network = true");
        assert!(validate(&allowed).is_ok());
    }
    for listen in ["127.0.0.1:0", "[::1]:0", "unix:/tmp/x.sock"] {
        assert!(validate(&format!("listen = \"{listen}\"")).is_ok(), "{listen}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("f");
    std::fs::write(&file, "0123456789abcdef\n").expect("write");
    let file = file.display();
    let token_only = format!("listen = \"0.0.0.0:1\"\nauth_token_file = \"{file}\"");
    assert_eq!(faults(&token_only).len(), 1);
    let both = |certificate: &str, key: &str| {
        let [cert_file, key_file] = [("cert", certificate), ("key", key)].map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("write");
            path.display().to_string()
        });
        validate(&format!("{token_only}\ntls_cert = \"{cert_file}\"\ntls_key = \"{key_file}\""))
    };
    let own = rcgen::generate_simple_self_signed(["executor.test".to_owned()]).expect("a certificate");
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let config = both(&certificate, &key).expect("tls and token");
    assert!(config.token.expect("a token").matches(b"0123456789abcdef"), "without the line's end");
    for (certificate, key) in [("no PEM", key.as_str()), (certificate.as_str(), "no PEM"), ("", "")] {
        let found = both(certificate, key).expect_err("not to be used");
        assert!(found[0].starts_with("`tls_cert`, `tls_key`, `tls_client_ca`: "), "{found:?}");
    }
}

#[test]
fn tokens_are_long_and_compared_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "short").expect("write");
    let found = faults(&format!("auth_token_file = \"{}\"", file.display()));
    assert_eq!(found, ["`auth_token_file`: the token has 5 bytes; it needs at least 16"]);
    let token = Token::new("0123456789abcdef");
    assert!(token.matches(b"0123456789abcdef"));
    for wrong in ["", "0123456789abcde", "0123456789abcdeX", "0123456789abcdef0"] {
        assert!(!token.matches(wrong.as_bytes()));
    }
    assert_eq!(format!("{token:?}"), "Token(..)");
}

#[test]
fn engines_are_those_that_are_there_or_those_that_are_asked_for() {
    assert_eq!(faults("engines = [\"v8\"]").len(), 1, "asked for and not there");
    assert!(faults("default_engine = \"v8\"")[0].contains("has no runner here"));
    assert!(faults("runner_v8 = \"/nonexistent\"")[0].contains("is not a file"));
    assert!(faults("engines = [\"spidermonkey\"]")[0].contains("`spidermonkey`"));
    let empty = tempfile::tempdir().expect("a folder");
    let found = Config::validate(&Options::default(), empty.path()).expect_err("no runner").0;
    assert!(found[0].starts_with("no runner is found in"));
}

#[test]
fn arguments_come_before_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("executor.toml");
    std::fs::write(&file, "compute_ms = 5\nwall_ms = 6\n").expect("write");
    let path = file.display().to_string();
    let given = Options::try_parse_from(["x", "--config", &path, "--compute-ms", "7", "--jitless"]);
    let options = given.expect("arguments").with_file().expect("file");
    assert_eq!((options.compute_ms, options.wall_ms, options.jitless), (Some(7), Some(6), Some(true)));
    let missing = Options::try_parse_from(["x", "--config", "/nonexistent"]).expect("arguments");
    assert!(missing.with_file().expect_err("not there").contains("cannot read"));
}

#[test]
fn reference_and_example_are_current_and_the_example_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    for (file, text) in [
        ("docs/configuration.md", reference::markdown()),
        ("deploy/config/executor.example.toml", reference::example_toml()),
    ] {
        let committed = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(
            committed == text,
            "{file} is not current; run `cargo run -p codemode-executor --example config_reference`"
        );
    }
    let uncommented: String = reference::example_toml()
        .lines()
        .filter_map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")))
        .filter(|line| !line.contains('`'))
        .map(|line| format!("{line}\n"))
        .collect();
    let options: Options = toml::from_str(&uncommented).expect("every line of the example is an option");
    assert_eq!(options.compute_ms, Some(60_000));
}
