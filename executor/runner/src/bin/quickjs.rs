//! The runner on the quickjs engine.

fn main() -> std::process::ExitCode {
    codemode_runner::main()
}
