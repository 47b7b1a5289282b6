//! One program's run in a locked-down process: from the executor's `Program` frame to the end of the process.
//!
//! Owns the loop: microtasks, timers, replies, and the wait between them. It never returns; the ops that settle a
//! run end the process.

use codemode_lockdown::exit_now;
use codemode_wire::exit;
use codemode_wire::message::{ChildFailureKind, ChildFrame, HostFrame, NamespaceTable, ProgramSpec, Shape};
use deno_core::v8;
use serde_json::json;

use crate::channel::Channel;
use crate::engine::{Engine, Trusted};
use crate::heap;
use crate::ops::ProgramText;

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
    engine.runtime.op_state().borrow_mut().put(channel);
    heap::cap(&mut engine.runtime, spec.heap_bytes);
    engine.runtime.op_state().borrow_mut().put(ProgramText(spec.source.clone()));
    let (program, values) = compile(&mut engine, &spec);
    start(&mut engine, &program, &values);
    loop {
        turn(&mut engine);
    }
}

/// A program that touches what most programs touch.
const REHEARSAL: &str = "\
const page = await tools.rehearse({ cursor: null, limit: 2 });\n\
const [a, b] = await Promise.all([tools.rehearse({ n: 1 }), tools.rehearse({ n: 2 }).catch((e) => String(e.message))]);\n\
await new Promise((resolve) => setTimeout(resolve, 0));\n\
console.log(`rehearsed ${page.items.length}`, { a, b });\n\
try { null.x; } catch (error) { console.log(error.stack); }\n\
return { items: page.items.map((item) => item.id), ok: true, none: null };\n";

/// A program that touches what every program touches.
const WARM_UP: &str = "return 1;\n";

/// Runs a trusted program to nowhere in a process that no run waits for: it takes the page faults that every program
/// takes.
pub(crate) fn warm_up(engine: &mut Engine) {
    let state = engine.runtime.op_state();
    state.borrow_mut().put(Channel::rehearsal());
    let (program, values) = compile(engine, &trusted_spec(WARM_UP));
    start(engine, &program, &values);
    microtasks_and_timers(engine);
    state.borrow_mut().take::<Channel>();
}

/// Runs a trusted program to nowhere in the zygote, so that its children find everything compiled and resolved.
///
/// The last run of the zygote's own: `prepare` starts every run from nothing.
pub(crate) fn rehearse(engine: &mut Engine) {
    let state = engine.runtime.op_state();
    state.borrow_mut().put(Channel::rehearsal());
    let (program, values) = compile(engine, &trusted_spec(REHEARSAL));
    start(engine, &program, &values);
    let page = || "{\"items\":[{\"id\":1},{\"id\":\"b\"}]}".to_owned();
    for arrivals in [
        vec![Arrival::Value(1, page())],
        vec![Arrival::Value(2, page()), Arrival::Failure(3, "rehearsed".to_owned())],
        Vec::new(),
        Vec::new(),
    ] {
        microtasks_and_timers(engine);
        deliver(engine, arrivals);
    }
    microtasks_and_timers(engine);
    state.borrow_mut().take::<Channel>();
}

/// A program of ours, with one tool.
fn trusted_spec(source: &str) -> ProgramSpec {
    ProgramSpec {
        source: source.to_owned(),
        shape: Shape::Body,
        namespaces: vec![NamespaceTable {
            global: "tools".to_owned(),
            functions: vec!["rehearse".to_owned()],
            error_class: Some(("ToolCallError".to_owned(), "toolName".to_owned())),
        }],
        output_bytes: 1 << 20,
        heap_bytes: 0,
        argument_bytes_max: 1 << 20,
        log_entry_bytes_max: 1 << 20,
        undefined_omit: false,
        seed: [0; 16],
    }
}

fn await_program(channel: &mut Channel) -> ProgramSpec {
    let mut program = None;
    loop {
        channel.drain(|frame| match frame {
            HostFrame::Program(spec) if program.is_none() => program = Some(spec),
            _ => exit_now(exit::PROTOCOL),
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
    parameters
        .extend(spec.namespaces.iter().filter_map(|each| each.error_class.as_ref()).map(|(name, _)| &**name));
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
    let words = spec.seed.as_chunks::<4>().0;
    let seed: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
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

/// Compiles the program and prepares what it is called with. Settles the run if the engine refuses the program.
fn compile(engine: &mut Engine, spec: &ProgramSpec) -> (v8::Global<v8::Value>, v8::Global<v8::Value>) {
    let Engine { runtime, trusted, .. } = engine;
    let state = runtime.op_state();
    deno_core::scope!(scope, runtime);
    let Some(text) = v8::String::new(scope, &parameters(spec)) else { exit_now(exit::TRUSTED_FAILED) };
    let prepare = v8::Local::new(scope, &trusted.prepare);
    let Some(values) = call_trusted(scope, trusted, prepare, &[text.into()]) else {
        exit_now(exit::TRUSTED_FAILED)
    };
    match compile_text(scope, &wrap(spec)) {
        Ok(program) => (v8::Global::new(scope, program), v8::Global::new(scope, values)),
        Err(failure) => {
            let message = serde_json::to_string(&failure.message).unwrap_or_default();
            state.borrow_mut().borrow_mut::<Channel>().settle(&ChildFrame::Failed {
                kind: ChildFailureKind::Syntax,
                message: message.as_bytes(),
                name: "SyntaxError",
                line: failure.line,
                column: failure.column,
            });
            exit_now(exit::TRUSTED_FAILED)
        }
    }
}

/// Calls the program.
fn start(engine: &mut Engine, program: &v8::Global<v8::Value>, values: &v8::Global<v8::Value>) {
    let Engine { runtime, trusted, .. } = engine;
    deno_core::scope!(scope, runtime);
    let program = v8::Local::new(scope, program);
    let values = v8::Local::new(scope, values);
    let start = v8::Local::new(scope, &trusted.start);
    call_trusted(scope, trusted, start, &[program, values]);
}

/// Why the engine refused the program's text.
struct CompileFailure {
    message: String,
    line: u32,
    column: u32,
}

/// The function that the wrapped program's text is.
fn compile_text<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    wrapped: &str,
) -> Result<v8::Local<'s, v8::Value>, CompileFailure> {
    let failure = |message: &str| CompileFailure { message: message.to_owned(), line: 0, column: 0 };
    let source =
        v8::String::new(scope, wrapped).ok_or_else(|| failure("the program is too long for the engine"))?;
    let name = v8::String::new(scope, PROGRAM_NAME).ok_or_else(|| failure("out of memory"))?;
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, -1, None, false, false, false, None);
    v8::tc_scope!(let scope, scope);
    let function = v8::Script::compile(scope, source, Some(&origin)).and_then(|script| script.run(scope));
    heap::exit_if_exhausted(scope);
    if let Some(function) = function {
        return Ok(function);
    }
    let Some(exception) = scope.exception() else { return Err(failure("the engine refused the program")) };
    let message = exception.to_rust_string_lossy(scope);
    let place = scope.message();
    let line = place.and_then(|place| place.get_line_number(scope)).unwrap_or(0);
    let column = place.map_or(0, |place| place.get_start_column());
    Err(refusal(message, u32::try_from(line).unwrap_or(0), u32::try_from(column).unwrap_or(0)))
}

/// What the engine says of a text that it refused, at the program's own line and column (from 1; 0 is unknown).
///
/// v8 counts the wrapper's line. quickjs reads its place from a stack text that the boot script formatted, where that
/// line is gone already; it has none for a private name that no class declares, nor for what is wrong inside a regular
/// expression, which it does not name then.
fn refusal(message: String, line: u32, column: u32) -> CompileFailure {
    if cfg!(feature = "v8") {
        return CompileFailure { message, line: line.saturating_sub(1), column: column.saturating_add(1) };
    }
    if line > 0 {
        return CompileFailure { message, line, column: column.saturating_add(1) };
    }
    let named = message.contains("regular expression") || message.contains("private field");
    let message = if named {
        message
    } else {
        message.replacen("SyntaxError: ", "SyntaxError: Invalid regular expression: ", 1)
    };
    CompileFailure { message, line: 0, column: 0 }
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
    heap::exit_if_exhausted(scope);
    if answer.is_none()
        && let Some(exception) = scope.exception()
    {
        scope.reset();
        let fail_with = v8::Local::new(scope, &trusted.fail_with);
        fail_with.call(scope, undefined, &[exception]);
        exit_now(exit::TRUSTED_FAILED);
    }
    answer
}

/// Runs microtasks until none is left.
fn microtasks(scope: &mut v8::PinScope<'_, '_>) {
    #[cfg(not(feature = "v8"))]
    one_by_one(scope);
    scope.perform_microtask_checkpoint();
    heap::exit_if_exhausted(scope);
}

/// Runs microtasks and asks for the heap after each: quickjs does not survive many more in an exhausted one. Its facade
/// runs one where v8 runs a task of its platform.
#[cfg(not(feature = "v8"))]
fn one_by_one(scope: &v8::Isolate) {
    let platform = v8::V8::get_current_platform();
    while v8::Platform::pump_message_loop(&platform, scope, false) {
        heap::exit_if_exhausted(scope);
    }
}

/// One turn: microtasks until none is left, at most one timer that is due, then whatever arrives until the next.
fn turn(engine: &mut Engine) {
    let delay = microtasks_and_timers(engine);
    let state = engine.runtime.op_state();
    if delay <= STALLED {
        state.borrow_mut().borrow_mut::<Channel>().settle(&ChildFrame::Stalled);
    }
    let arrivals = arrivals(&state, delay);
    deliver(engine, arrivals);
}

/// Answers how many milliseconds to wait for an arrival; see `tick` of the boot script.
fn microtasks_and_timers(engine: &mut Engine) -> f64 {
    let Engine { runtime, trusted, .. } = engine;
    deno_core::scope!(scope, runtime);
    microtasks(scope);
    let tick = v8::Local::new(scope, &trusted.tick);
    let delay = call_trusted(scope, trusted, tick, &[]).and_then(|delay| delay.number_value(scope));
    microtasks(scope);
    delay.unwrap_or(STALLED)
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
            Err(_) => exit_now(exit::PROTOCOL),
        },
        HostFrame::ReplyError { id, message } => arrivals.push(Arrival::Failure(id, message.to_owned())),
        HostFrame::Program(_) => exit_now(exit::PROTOCOL),
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
        let Some(text) = v8::String::new(scope, text) else { exit_now(exit::TRUSTED_FAILED) };
        #[expect(clippy::cast_precision_loss, reason = "ids count calls, far below 2^53")]
        let id = v8::Number::new(scope, id as f64);
        let function = v8::Local::new(scope, function);
        call_trusted(scope, trusted, function, &[id.into(), text.into()]);
        microtasks(scope);
    }
}
