//! The reference page and the example file, made from [`Options`] so that they cannot fall behind it.

use std::fmt::Write as _;

use clap::Args as _;

use super::options::{LISTEN, NUMBERS, Number, Options, STORE};

/// One option as the reference shows it.
struct Entry {
    name: String,
    flag: String,
    env: String,
    help: String,
    number: Option<&'static Number>,
}

/// The rules of policy, which no argument can say.
const POLICY: &str = r#"
## `policy`

Rules that allow, deny or ask, in order; the first that fits a call decides, and where none does the call is allowed.
They are met by direct calls and by those of programs alike, before any hook. A denial by rule is final; `ask` has
whoever offered to answer approvals decide, and denies where nobody did. Reloaded.

- in the file alone, as an array of tables

```toml
[[policy]]
effect = "deny"                        # or "allow", "ask"
tools = ["shell*", "write_file"]       # names; `*` is any text, `?` one character
arguments = [{ pointer = "/path", matches = "/etc/*" }]   # all of them must fit; absent: any arguments
scope = "intern*"                      # label of the session; absent: every session
reason = "not from here"               # what the model, or the person who is asked, is told
```
"#;

fn entries() -> Vec<Entry> {
    let command = Options::augment_args(clap::Command::new("codemode-registry"));
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

/// `docs/registry-configuration.md`.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(
        "# Configuration of the registry\n\n\
         <!-- Generated from registry/src/config/options.rs: `cargo run -p codemode-registry --example registry_config_reference`. -->\n\n\
         Every option of `codemode-registry serve` can be given as an argument, in the environment, or in the TOML file\n\
         that `--config` names; the first of these that has it wins. Names in the file are the option's own. An unknown\n\
         name, a value out of its range, a file that cannot be read: all faults are reported together on stderr, and the\n\
         registry exits with 64 before it binds a port (`--check` does no more than that). It exits with 69 where a store\n\
         or an executor cannot be had, with 0 after a drain. `--print-config` prints what is in force.\n\n\
         SIGHUP and the RPC `Reload` read the file anew. What is marked as reloaded changes in one step, for the next\n\
         assembly and the calls that answer it; the rest counts from the next start. A file that cannot be used changes\n\
         nothing.\n",
    );
    for entry in entries() {
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", entry.name, entry.help);
        let _ = writeln!(page, "- argument `{}`, environment `{}`", entry.flag, entry.env);
        if let Some(number) = entry.number {
            let unit = if number.unit.is_empty() { String::new() } else { format!(" {}", number.unit) };
            let _ = writeln!(page, "- from {} to {}{unit}", number.min, number.max);
            let default =
                number.default.map_or_else(|| "none".to_owned(), |default| format!("{default}{unit}"));
            let _ = writeln!(page, "- default {default}: {}", number.why);
        }
    }
    page + POLICY
}

/// `deploy/config/registry.example.toml`: every option, commented out, with its default.
#[must_use]
pub fn example_toml() -> String {
    let mut file = String::from(
        "# Example configuration of the registry: every option with its default, commented out.\n\
         # Generated: `cargo run -p codemode-registry --example registry_config_reference`. Explained in\n\
         # docs/registry-configuration.md.\n",
    );
    for entry in entries().iter().filter(|entry| entry.name != "config") {
        let _ = write!(file, "\n{}", wrapped(&entry.help));
        let _ = writeln!(file, "# {} = {}", entry.name, example_value(entry));
    }
    file.push_str(
        "\n# Rules that allow, deny or ask, in order; the first that fits a call decides. Reloaded.\n\
         # [[policy]]\n# effect = \"deny\"\n# tools = [\"shell*\", \"write_file\"]\n\
         # arguments = [{ pointer = \"/path\", matches = \"/etc/*\" }]\n# scope = \"intern*\"\n# reason = \"not from here\"\n",
    );
    file
}

fn example_value(entry: &Entry) -> String {
    match (entry.number, entry.name.as_str()) {
        (Some(number), _) => number.default.unwrap_or(8_000).to_string(),
        (None, "listen") => format!("\"{LISTEN}\""),
        (None, "store") => format!("\"{STORE}\""),
        (None, "allow_unauthenticated_network") => "false".to_owned(),
        (None, "mode") => "\"native\"".to_owned(),
        (None, "tool_order") => format!("[\"read_file\", \"{}\"]", crate::present::REST_MARKER),
        (None, "programs") => "\"auto\"".to_owned(),
        (None, "executors") => "[\"unix:/run/codemode/executor.sock\"]".to_owned(),
        (None, "executor_bin") => "\"/usr/local/bin/codemode-executor\"".to_owned(),
        (None, "executor_config") => "\"/etc/codemode/executor.toml\"".to_owned(),
        (None, "log_filter") => "\"info\"".to_owned(),
        (None, "log_format") => "\"text\"".to_owned(),
        (None, "auth_token_file" | "executor_token_file") => "\"/run/secrets/codemode-token\"".to_owned(),
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
