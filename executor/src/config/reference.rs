//! The reference page and the example file, made from [`Options`] so that they cannot fall behind it.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::options::{LISTEN, NUMBERS, Number, Options};

/// One option as the reference shows it.
struct Entry {
    name: String,
    flag: String,
    env: String,
    help: String,
    number: Option<&'static Number>,
}

fn entries() -> Vec<Entry> {
    let command = Options::command();
    let options = command.get_arguments().filter(|arg| arg.get_env().is_some());
    options
        .map(|arg| {
            let name = arg.get_id().to_string();
            let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
            Entry {
                flag: arg.get_long().map(|long| format!("--{long}")).unwrap_or_default(),
                env: arg.get_env().map(|env| env.to_string_lossy().into_owned()).unwrap_or_default(),
                help: help.split_whitespace().collect::<Vec<_>>().join(" "),
                number: NUMBERS.iter().find(|number| number.name == name),
                name,
            }
        })
        .collect()
}

/// `docs/configuration.md`.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(
        "# Configuration of the executor\n\n\
         <!-- Generated from executor/src/config/options.rs: `cargo run -p codemode-executor --example config_reference`. -->\n\n\
         Every option can be given as an argument, in the environment, or in the TOML file that `--config` names; the\n\
         first of these that has it wins. Names in the file are the option's own. An unknown name, a value out of its\n\
         range, a file that cannot be read: all faults are reported together on stderr, and the executor exits with 64\n\
         before it binds a port. It exits with 69 where the machine lacks what is asked for (an engine does not boot, a\n\
         required layer is not in force), with 0 after a drain that left no process behind.\n",
    );
    for entry in entries() {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", entry.name, entry.help);
        let _ = writeln!(page, "- argument `{}`, environment `{}`", entry.flag, entry.env);
        if let Some(number) = entry.number {
            let unit = if number.unit.is_empty() { String::new() } else { format!(" {}", number.unit) };
            let _ = writeln!(page, "- from {} to {}{unit}", number.min, number.max);
            let _ = writeln!(page, "- default {}{unit}: {}", number.default, number.why);
        }
    }
    page
}

/// `deploy/config/executor.example.toml`: every option, commented out, with its default.
#[must_use]
pub fn example_toml() -> String {
    let mut file = String::from(
        "# Example configuration of the executor: every option with its default, commented out.\n\
         # Generated: `cargo run -p codemode-executor --example config_reference`. Explained in docs/configuration.md.\n",
    );
    for entry in entries().iter().filter(|entry| entry.name != "config") {
        let _ = write!(file, "\n{}", wrapped(&entry.help));
        let _ = writeln!(file, "# {} = {}", entry.name, example_value(entry));
    }
    file
}

fn example_value(entry: &Entry) -> String {
    match (entry.number, entry.name.as_str()) {
        (Some(number), _) => number.default.to_string(),
        (None, "listen") => format!("\"{LISTEN}\""),
        (None, "allow_unauthenticated_network" | "jitless" | "parent_watch") => "false".to_owned(),
        (None, "engines") => "[\"v8\", \"quickjs\"]".to_owned(),
        (None, "default_engine") => "\"auto\"".to_owned(),
        (None, "spawn") => "\"fork\"".to_owned(),
        (None, "undefined") => "\"refuse\"".to_owned(),
        (None, "log_filter") => "\"info\"".to_owned(),
        (None, "log_format") => "\"text\"".to_owned(),
        (None, "metrics_listen") => "\"127.0.0.1:9464\"".to_owned(),
        (None, "layers_off") => "[]".to_owned(),
        (None, "required_layers") => format!("{:?}", super::options::REQUIRED_LAYERS),
        (None, "auth_token_file") => "\"/run/secrets/codemode-token\"".to_owned(),
        (None, name) if name.starts_with("runner_") => {
            format!("\"/usr/local/bin/codemode-runner-{}\"", &name["runner_".len()..])
        }
        (None, name) => format!("\"/etc/codemode/{name}.pem\""),
    }
}

/// Comment lines of at most 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > 100 {
            lines.push_str(&line);
            lines.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}
