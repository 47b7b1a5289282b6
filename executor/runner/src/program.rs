//! One program's run in a locked-down process: from the executor's `Program` frame to the end of the process.
//!
//! Owns the loop: microtasks, timers, replies, and the wait between them. It never returns; the ops that settle a
//! run end the process.

use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, ProgramSpec, Shape};
use deno_core::v8;
use serde_json::json;

use crate::channel::Channel;
use crate::engine::{Engine, Trusted};
use crate::heap;
use crate::sys::exit_now;

/// Exit code when a second program arrives, or a reply before the first.
const EXIT_PROTOCOL: i32 = 7;
/// Exit code when the engine fails under the boot script's own functions.
const EXIT_TRUSTED_FAILED: i32 = 8;
/// `tick`: no call is pending and no timer armed.
const STALLED: f64 = -2.0;

/// Name of the program in stack texts; `PROGRAM_NAME` of the boot script.
const PROGRAM_NAME: &str = "program.ts";

/// What arrived for a call.
enum Arrival {
    Value(u64, String),
    Failure(u64, String),
}

/// Runs the one program that the executor sends, and ends the process.
pub(crate) fn run(mut engine: Engine, mut channel: Channel) -> ! {
    let spec = await_program(&mut channel);
    heap::cap(&mut engine.runtime, spec.heap_bytes);
    engine.runtime.op_state().borrow_mut().put(channel);
    start(&mut engine, &spec);
    drop(spec);
    loop {
        turn(&mut engine);
    }
}

fn await_program(channel: &mut Channel) -> ProgramSpec {
    let mut program = None;
    loop {
        channel.drain(|frame| match frame {
            HostFrame::Program(spec) if program.is_none() => program = Some(spec),
            _ => exit_now(EXIT_PROTOCOL),
        });
        if let Some(spec) = program.take() {
            return spec;
        }
        channel.wait(-1.0);
    }
}

/// The program's text as a function expression on the line after the wrapper's first.
fn wrap(spec: &ProgramSpec) -> String {
    let mut parameters: Vec<&str> = spec.namespaces.iter().map(|each| each.global.as_str()).collect();
    parameters.extend(spec.namespaces.iter().filter_map(|each| each.error_class.as_ref()).map(|(name, _)| &**name));
    parameters.push("console");
    let parameters = parameters.join(", ");
    let arguments = spec.namespaces.iter().map(|each| each.global.as_str()).collect::<Vec<_>>().join(", ");
    let source = &spec.source;
    match spec.shape {
        Shape::Body => format!("(async function ({parameters}) {{ \"use strict\";\n{source}\n}})"),
        Shape::Function => format!(
            "(async function ({parameters}) {{ \"use strict\"; return await (\n{source}\n)({arguments});\n}})"
        ),
        Shape::Factory => format!(
            "(async function ({parameters}) {{ \"use strict\"; return await (await (async () => {{\n{source}\n}})())({arguments});\n}})"
        ),
    }
}

/// What the boot script's `prepare` needs, as JSON.
fn parameters(spec: &ProgramSpec) -> String {
    let namespaces: Vec<_> = spec
        .namespaces
        .iter()
        .map(|each| {
            json!({
                "global": each.global,
                "functions": each.functions,
                "errorClass": each.error_class.as_ref().map(|(name, member)| json!({"name": name, "member": member})),
            })
        })
        .collect();
    let seed: Vec<u32> = spec
        .seed
        .chunks_exact(8)
        .filter_map(|chunk| chunk.first_chunk::<4>().map(|word| u32::from_le_bytes(*word) | 1))
        .collect();
    json!({
        "namespaces": namespaces,
        "outputBytes": spec.output_bytes,
        "argumentBytesMax": spec.argument_bytes_max,
        "logEntryBytesMax": spec.log_entry_bytes_max,
        "undefinedOmit": spec.undefined_omit,
        "seed": seed,
    })
    .to_string()
}

/// Compiles the program and calls it.
fn start(engine: &mut Engine, spec: &ProgramSpec) {
    let Engine { runtime, trusted, .. } = engine;
    let state = runtime.op_state();
    deno_core::scope!(scope, runtime);
    let Some(text) = v8::String::new(scope, &parameters(spec)) else { exit_now(EXIT_TRUSTED_FAILED) };
    let prepare = v8::Local::new(scope, &trusted.prepare);
    let Some(values) = call_trusted(scope, trusted, prepare, &[text.into()]) else { exit_now(EXIT_TRUSTED_FAILED) };
    match compile(scope, &wrap(spec)) {
        Ok(program) => {
            let start = v8::Local::new(scope, &trusted.start);
            call_trusted(scope, trusted, start, &[program, values]);
        }
        Err(failure) => {
            let message = serde_json::to_string(&failure.message).unwrap_or_default();
            state.borrow_mut().borrow_mut::<Channel>().send(&ChildFrame::Failed {
                kind: ChildFailureKind::Exception,
                message: message.as_bytes(),
                name: "SyntaxError",
                line: failure.line,
                column: failure.column,
            });
            exit_now(0);
        }
    }
}

/// Why the engine refused the program's text.
struct CompileFailure {
    message: String,
    line: u32,
    column: u32,
}

fn compile<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    wrapped: &str,
) -> Result<v8::Local<'s, v8::Value>, CompileFailure> {
    let failure = |message: &str| CompileFailure { message: message.to_owned(), line: 0, column: 0 };
    let source = v8::String::new(scope, wrapped).ok_or_else(|| failure("the program is too long for the engine"))?;
    let name = v8::String::new(scope, PROGRAM_NAME).ok_or_else(|| failure("out of memory"))?;
    let origin =
        v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, -1, None, false, false, false, None);
    v8::tc_scope!(let scope, scope);
    let function = v8::Script::compile(scope, source, Some(&origin)).and_then(|script| script.run(scope));
    if let Some(function) = function {
        return Ok(function);
    }
    let Some(exception) = scope.exception() else { return Err(failure("the engine refused the program")) };
    let message = exception.to_rust_string_lossy(scope);
    let place = scope.message();
    let line = place.and_then(|place| place.get_line_number(scope)).unwrap_or(0);
    let column = place.map_or(0, |place| place.get_start_column());
    Err(CompileFailure {
        message,
        line: u32::try_from(line).unwrap_or(0).saturating_sub(1),
        column: u32::try_from(column).unwrap_or(0).saturating_add(1),
    })
}

/// Calls a function of the boot script. It handles what programs throw; if it fails all the same (the stack or the
/// heap gave out under it), the run fails with what was thrown.
fn call_trusted<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    trusted: &Trusted,
    function: v8::Local<'s, v8::Function>,
    arguments: &[v8::Local<'s, v8::Value>],
) -> Option<v8::Local<'s, v8::Value>> {
    v8::tc_scope!(let scope, scope);
    let undefined = v8::undefined(scope).into();
    let answer = function.call(scope, undefined, arguments);
    if answer.is_none()
        && let Some(exception) = scope.exception()
    {
        scope.reset();
        let fail_with = v8::Local::new(scope, &trusted.fail_with);
        fail_with.call(scope, undefined, &[exception]);
        exit_now(EXIT_TRUSTED_FAILED);
    }
    answer
}

/// One turn: microtasks until none is left, at most one timer that is due, then whatever arrives until the next.
fn turn(engine: &mut Engine) {
    let state = engine.runtime.op_state();
    let delay = {
        let Engine { runtime, trusted, .. } = &mut *engine;
        deno_core::scope!(scope, runtime);
        scope.perform_microtask_checkpoint();
        let tick = v8::Local::new(scope, &trusted.tick);
        let delay = call_trusted(scope, trusted, tick, &[]).and_then(|delay| delay.number_value(scope));
        scope.perform_microtask_checkpoint();
        delay.unwrap_or(STALLED)
    };
    if delay <= STALLED {
        state.borrow_mut().borrow_mut::<Channel>().send(&ChildFrame::Stalled);
        exit_now(0);
    }
    let arrivals = arrivals(&state, delay);
    deliver(engine, arrivals);
}

/// What has arrived, after waiting up to `timeout_ms` for it.
fn arrivals(state: &std::rc::Rc<std::cell::RefCell<deno_core::OpState>>, timeout_ms: f64) -> Vec<Arrival> {
    let mut state = state.borrow_mut();
    let channel = state.borrow_mut::<Channel>();
    channel.wait(timeout_ms);
    let mut arrivals = Vec::new();
    channel.drain(|frame| match frame {
        HostFrame::Reply { id, value } => match std::str::from_utf8(value) {
            Ok(text) => arrivals.push(Arrival::Value(id, text.to_owned())),
            Err(_) => exit_now(EXIT_PROTOCOL),
        },
        HostFrame::ReplyError { id, message } => arrivals.push(Arrival::Failure(id, message.to_owned())),
        HostFrame::Program(_) => exit_now(EXIT_PROTOCOL),
    });
    arrivals
}

/// Hands arrivals to the program, each with its microtasks, as a real event loop would.
fn deliver(engine: &mut Engine, arrivals: Vec<Arrival>) {
    let Engine { runtime, trusted, .. } = engine;
    deno_core::scope!(scope, runtime);
    for arrival in arrivals {
        v8::scope!(let scope, scope);
        let (function, id, text) = match &arrival {
            Arrival::Value(id, text) => (&trusted.deliver, *id, text),
            Arrival::Failure(id, message) => (&trusted.deliver_error, *id, message),
        };
        let Some(text) = v8::String::new(scope, text) else { exit_now(EXIT_TRUSTED_FAILED) };
        #[expect(clippy::cast_precision_loss, reason = "ids count calls, far below 2^53")]
        let id = v8::Number::new(scope, id as f64);
        let function = v8::Local::new(scope, function);
        call_trusted(scope, trusted, function, &[id.into(), text.into()]);
        scope.perform_microtask_checkpoint();
    }
}
