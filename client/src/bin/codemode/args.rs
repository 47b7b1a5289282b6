//! What can be asked on the command line, and the texts of `--help`.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Parser, Subcommand};
use codemode_client::{Budgets, RunId, RunRequest};

use crate::exit::Problem;

const RUN_EXAMPLES: &str = "\
Examples:
  Run a file on a private executor that is started for it and ended with it:
    codemode run program.ts

  From standard input, at most half a second of CPU time, the outcome as one JSON object:
    echo 'return 6 * 7' | codemode run --compute-ms 500 --json -

  With tools, showing each call:
    codemode run --trace --tools 'python3 tools.py' program.ts

  On the executors of a cluster, with TLS and a token from the environment:
    CODEMODE_TOKEN=... codemode run --executor https://executor.example:443 --ca ca.pem program.ts

Tools:
  The command of --tools is run by `sh -c`. It talks JSON, one object a line. First it prints what it serves:
    {\"namespaces\":[{\"global\":\"tools\",\"functions\":[\"add\"],
      \"errorClass\":{\"name\":\"ToolCallError\",\"memberNameProperty\":\"toolName\"}}]}
  (on one line; errorClass may be left out). Then it reads calls on standard input
    {\"id\":1,\"global\":\"tools\",\"name\":\"add\",\"args\":{\"a\":1,\"b\":2}}
  (args is the one argument of the call tools.add({ a: 1, b: 2 })) and answers each, in any order, on standard output
    {\"id\":1,\"value\":3}   or   {\"id\":1,\"error\":{\"message\":\"out of paper\"}}
  Its standard error is shown. Its standard input ends when the run has; its whole process group is killed then.

Output:
  Log entries go to standard output as they happen, then the value: a string as it is, anything else as indented JSON.
  Failures, hints, --trace and the progress line go to standard error. With --json standard output holds exactly one
  object {runId, value?, logs, failure?: {kind, message, detail?}, usage}; times in it are microseconds.

Exit status:
  0    the program completed
  1    the program failed; failure kinds: exception, timeout, abort, worker-exit, invalid-output, output-limit
  64   wrong arguments, an unreadable program, or a request that the executor refused as invalid
  69   no service: no executor, all slots taken, connection lost, or the tool server did not start
  74   standard output could not be written, e.g. because the disk is full
  130  interrupted by Ctrl-C (143: SIGTERM, 129: SIGHUP), after the run was settled";

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  codemode describe                                   what a private executor on this machine would offer
  codemode describe --executor unix:/run/codemode/executor.sock --json";

/// Run programs in fresh, locked-down processes.
#[derive(Debug, Parser)]
#[command(name = "codemode", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one program and show what it comes to.
    ///
    /// The program is the body of an async function in TypeScript whose types can be erased. It can call the tools given
    /// with --tools, log with console, and return a value.
    #[command(after_long_help = RUN_EXAMPLES, after_help = "`codemode run --help` shows examples, the tool protocol and exit codes.")]
    Run(Box<RunArgs>),
    /// Show what an executor offers: engines, budgets, limits, sandbox layers.
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(Box<DescribeArgs>),
}

/// How to reach an executor.
#[derive(Args, Debug)]
#[command(next_help_heading = "Executor")]
pub(crate) struct ConnectArgs {
    /// Executor to use: `unix:/path`, `http://host:port` or `https://host:port`.
    ///
    /// Given several times, runs are balanced over them, and one that is turned away is tried elsewhere. Without it a private
    /// executor is started for this command.
    #[arg(long, value_name = "ADDR", env = "CODEMODE_EXECUTOR", value_delimiter = ',')]
    pub(crate) executor: Vec<String>,
    /// How long a connection may take, milliseconds.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connect_ms: u64,
    /// CA certificates (PEM) to trust instead of the system's, for `https` addresses.
    #[arg(long, value_name = "FILE", requires = "executor")]
    pub(crate) ca: Option<PathBuf>,
    /// Client certificate (PEM) to show.
    #[arg(long, value_name = "FILE", requires_all = ["key", "executor"])]
    pub(crate) cert: Option<PathBuf>,
    /// Key (PEM) of the client certificate.
    #[arg(long, value_name = "FILE", requires_all = ["cert", "executor"])]
    pub(crate) key: Option<PathBuf>,
    /// File with the bearer token to send; else the environment's CODEMODE_TOKEN.
    #[arg(long, value_name = "FILE", requires = "executor")]
    pub(crate) token_file: Option<PathBuf>,
    #[arg(long, hide = true, env = "CODEMODE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Binary of the private executor.
    ///
    /// By default `codemode-executor` beside this command, else on the PATH.
    #[arg(long, value_name = "FILE", env = "CODEMODE_EXECUTOR_BIN")]
    pub(crate) executor_bin: Option<PathBuf>,
    /// Configuration file of the private executor.
    #[arg(long, value_name = "FILE", conflicts_with = "executor")]
    pub(crate) executor_config: Option<PathBuf>,
    /// Show what the private executor logs.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The program; `-` reads standard input.
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Command that serves the tools, see below.
    #[arg(long, value_name = "CMD")]
    pub(crate) tools: Option<String>,
    /// Print the outcome as one JSON object, and nothing else, to standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show each binding call, and what the run spent, on standard error.
    #[arg(long)]
    pub(crate) trace: bool,
    /// CPU time that the program may use, milliseconds. Waiting costs nothing.
    #[arg(long, value_name = "N", help_heading = "Budgets (each at most the executor's own)")]
    compute_ms: Option<u64>,
    /// Time that may pass, milliseconds.
    #[arg(long, value_name = "N", help_heading = "Budgets (each at most the executor's own)")]
    wall_ms: Option<u64>,
    /// Bytes of logs plus value, as JSON.
    #[arg(long, value_name = "N", help_heading = "Budgets (each at most the executor's own)")]
    output_bytes: Option<u64>,
    /// Engine heap, MiB.
    #[arg(long, value_name = "N", help_heading = "Budgets (each at most the executor's own)", value_parser = clap::value_parser!(u64).range(..=u64::MAX >> 20))]
    heap_mb: Option<u64>,
    /// Engine to run on: `v8` or `quickjs`. By default the executor's choice.
    #[arg(long, value_name = "E")]
    engine: Option<String>,
    /// Sandbox layer without which the program is not run, e.g. `seccomp`; repeatable.
    #[arg(long, value_name = "L")]
    require_layer: Vec<String>,
    /// Id for the run, a UUID. By default the executor makes one.
    #[arg(long, value_name = "UUID")]
    run_id: Option<RunId>,
    /// Label for the executor's logs and traces; repeatable.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    label: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DescribeArgs {
    /// Print JSON: one object, or with several executors an array of them.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("want `KEY=VALUE`")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl RunArgs {
    /// The program's text.
    pub(crate) fn read_program(&self) -> Result<String, Problem> {
        let mut bytes = Vec::new();
        let (name, read) = if self.file.as_os_str() == "-" {
            ("standard input".to_owned(), std::io::stdin().read_to_end(&mut bytes).map(|_| ()))
        } else {
            let read = std::fs::read(&self.file).map(|read| bytes = read);
            (format!("`{}`", self.file.display()), read)
        };
        read.map_err(|error| Problem::usage(error).context(format!("cannot read the program from {name}")))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Problem::usage(anyhow!(
                "the program in {name} is not UTF-8: byte {at} is no part of any character"
            ))
        })
    }

    /// The request, but for the tools.
    pub(crate) fn request(&self, program: String) -> RunRequest {
        RunRequest {
            program,
            budgets: Budgets {
                compute_ms: self.compute_ms,
                wall_ms: self.wall_ms,
                output_bytes: self.output_bytes,
                // The parser's range keeps this from overflowing.
                heap_bytes: self.heap_mb.map(|mebibytes| mebibytes << 20),
                ..Budgets::default()
            },
            run_id: self.run_id,
            engine: self.engine.clone(),
            required_layers: self.require_layer.clone(),
            labels: self.label.iter().cloned().collect(),
            ..RunRequest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_become_a_request() {
        let line = "codemode run --compute-ms 1 --wall-ms 2 --output-bytes 3 --heap-mb 4 --engine v8 --require-layer a \
                    --require-layer b --label k=v=w x.ts";
        let cli = Cli::try_parse_from(line.split_whitespace()).expect("parses");
        let Command::Run(args) = cli.command else { panic!("not a run") };
        let request = args.request("p".to_owned());
        let budgets = Budgets {
            compute_ms: Some(1),
            wall_ms: Some(2),
            output_bytes: Some(3),
            heap_bytes: Some(4 << 20),
            ..Budgets::default()
        };
        assert_eq!(request.budgets, budgets);
        assert_eq!(request.engine.as_deref(), Some("v8"));
        assert_eq!(request.required_layers, ["a", "b"]);
        assert_eq!(request.labels.get("k").map(String::as_str), Some("v=w"));
    }

    #[test]
    fn a_heap_that_overflows_is_refused() {
        let huge = (u64::MAX >> 20) + 1;
        assert!(Cli::try_parse_from(["codemode", "run", "--heap-mb", &huge.to_string(), "x.ts"]).is_err());
    }
}
