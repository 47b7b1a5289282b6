//! The `codemode` command line: runs one program on an executor and shows what it came to.
//!
//! This file is start-up order only: arguments, then the command, then the exit code. `args` says what can be asked, `run` and
//! `describe` are the commands, `tools` owns the processes that serve them, `connect` the executor, `report` and `console` own what is
//! printed.
#![forbid(unsafe_code)]

mod args;
mod connect;
mod console;
mod describe;
mod exit;
mod report;
mod run;
mod tools;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::{Exit, Problem};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; where even printing fails nothing can be said.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Completed.into() };
        }
    };
    match command(cli) {
        Ok(exit) => exit.into(),
        Err(problem) => {
            problem.print();
            problem.exit.into()
        }
    }
}

fn command(cli: Cli) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Problem::unavailable(error).context("cannot start"))?;
    let exit = match cli.command {
        Command::Run(args) => {
            // Read before anything is started: a wrong path should cost nothing.
            let program = args.read_program()?;
            runtime.block_on(run::run(*args, program))
        }
        Command::Describe(args) => runtime.block_on(describe::describe(*args)),
    };
    // What still blocks a thread, e.g. a write to a terminal that stands still, must not hold up the exit.
    runtime.shutdown_background();
    exit
}
