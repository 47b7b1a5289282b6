//! The runner on the v8 engine.

fn main() -> std::process::ExitCode {
    codemode_runner::main()
}
