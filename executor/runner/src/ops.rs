//! The ops: all that the program's world can ask of this process. Captured by the boot script before any program
//! code runs and reachable for nothing else; every other op of deno_core and deno_web that could do harm is disabled.

use std::time::Duration;

use codemode_lockdown::exit_now;
use codemode_wire::exit;
use codemode_wire::message::{ChildFailureKind, ChildFrame};
use deno_core::{OpDecl, OpState, op2, v8};
use nix::time::{ClockId, clock_gettime};

use crate::channel::Channel;

/// Ops of deno_core and deno_web that stay: pure functions on values, and what the loaded scripts call. Anything
/// not on this list is replaced by a function that throws.
const ALLOWED_OPS: &[&str] = &[
    "op_base64_atob",
    "op_base64_btoa",
    "op_console_format_value",
    "op_console_get_string_width",
    "op_console_inspect",
    "op_console_inspect_args",
    "op_console_quote_string",
    "op_console_css_to_ansi",
    "op_console_parse_css",
    "op_console_parse_css_color",
    "op_console_strip_vt",
    "op_decode",
    "op_encode",
    "op_encoding_decode",
    "op_encoding_decode_single",
    "op_encoding_decode_utf8",
    "op_encoding_decode_utf8_ascii_only",
    "op_encoding_encode_into",
    "op_encoding_encode_into_fallback",
    "op_encoding_new_decoder",
    "op_encoding_normalize_label",
    "op_get_constructor_name",
    "op_get_ext_import_meta_proto",
    "op_get_extras_binding_object",
    "op_get_non_index_property_names",
    "op_get_promise_details",
    "op_get_proxy_details",
    "op_is_any_array_buffer",
    "op_is_arguments_object",
    "op_is_array_buffer",
    "op_is_array_buffer_view",
    "op_is_async_function",
    "op_is_big_int_object",
    "op_is_boolean_object",
    "op_is_boxed_primitive",
    "op_is_data_view",
    "op_is_date",
    "op_is_generator_function",
    "op_is_generator_object",
    "op_is_map",
    "op_is_map_iterator",
    "op_is_module_namespace_object",
    "op_is_native_error",
    "op_is_number_object",
    "op_is_promise",
    "op_is_proxy",
    "op_is_reg_exp",
    "op_is_set",
    "op_is_set_iterator",
    "op_is_shared_array_buffer",
    "op_is_string_object",
    "op_is_symbol_object",
    "op_is_typed_array",
    "op_is_weak_map",
    "op_is_weak_set",
    "op_load_ext_script",
    "op_now",
    "op_preview_entries",
    "op_set_captured_bootstrap",
    "op_structured_clone",
    "op_time_origin",
    "op_url_get_serialization",
    "op_url_parse",
    "op_url_parse_search_params",
    "op_url_parse_with_base",
    "op_url_reparse",
    "op_url_stringify_search_params",
];

deno_core::extension!(
    codemode,
    ops = [
        op_codemode_call,
        op_codemode_column,
        op_codemode_completed,
        op_codemode_engine,
        op_codemode_failed,
        op_codemode_kind,
        op_codemode_log,
        op_codemode_now,
        op_codemode_random,
        op_codemode_source_at,
    ],
    middleware = |op: OpDecl| keep_allowed(op),
);

/// The extension that carries our ops and disables the ones that a program has no use for.
pub(crate) fn extension() -> deno_core::Extension {
    let extension = codemode::init();
    #[cfg(feature = "quickjs")]
    let extension = {
        let mut extension = extension;
        extension.ops.to_mut().extend(crate::collation::ops());
        extension
    };
    extension
}

fn keep_allowed(op: OpDecl) -> OpDecl {
    if op.name.starts_with("op_codemode_") || ALLOWED_OPS.contains(&op.name) { op } else { op.disable() }
}

/// Name of the engine that this binary holds.
pub(crate) const ENGINE: &str = if cfg!(feature = "v8") { "v8" } else { "quickjs" };

#[op2]
#[string]
fn op_codemode_engine() -> String {
    ENGINE.to_owned()
}

/// One log entry, a JSON string literal.
#[op2(fast)]
fn op_codemode_log(state: &mut OpState, #[string] text: &str) {
    state.borrow_mut::<Channel>().send(&ChildFrame::Log { text: text.as_bytes() });
}

/// One binding call with its argument as JSON text.
#[op2(fast)]
fn op_codemode_call(
    state: &mut OpState,
    #[number] id: u64,
    #[smi] namespace: u32,
    #[smi] function: u32,
    #[string] args: &str,
) {
    let namespace = u16::try_from(namespace).unwrap_or(u16::MAX);
    state.borrow_mut::<Channel>().send(&ChildFrame::Call { id, namespace, function, args: args.as_bytes() });
}

/// The program returned: sends the value and ends the process.
#[op2(fast)]
fn op_codemode_completed(state: &mut OpState, has_value: bool, #[string] value: &str) {
    let value = has_value.then_some(value.as_bytes());
    state.borrow_mut::<Channel>().settle(&ChildFrame::Completed { value });
}

/// The program failed: sends how and ends the process. `message` is a JSON string literal.
#[op2(fast)]
fn op_codemode_failed(
    state: &mut OpState,
    #[smi] kind: u32,
    #[string] message: &str,
    #[string] name: &str,
    #[smi] line: u32,
    #[smi] column: u32,
) {
    let kind = match kind {
        2 => ChildFailureKind::InvalidOutput,
        3 => ChildFailureKind::OutputLimit,
        _ => ChildFailureKind::Exception,
    };
    let message = message.as_bytes();
    state.borrow_mut::<Channel>().settle(&ChildFrame::Failed { kind, message, name, line, column });
}

/// Milliseconds of the monotonic clock.
#[op2(fast)]
fn op_codemode_now() -> f64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0.0, |now| Duration::from(now).as_secs_f64() * 1e3)
}

/// Fills `bytes` from the kernel's generator: what the engine seeded is the same in every fork.
#[op2(fast)]
fn op_codemode_random(#[buffer] bytes: &mut [u8]) {
    if getrandom::fill(bytes).is_err() {
        exit_now(exit::NO_RANDOM);
    }
}

/// The program's text, kept for what is said of it when it fails.
pub(crate) struct ProgramText(pub(crate) String);

/// UTF-16 units of the program that [`op_codemode_source_at`] answers at most.
const SOURCE_UNITS_MAX: usize = 300;

/// The rest of a line of the program from a column on; both from 1, the column in UTF-16 units.
#[op2]
#[string]
fn op_codemode_source_at(state: &OpState, #[smi] line: u32, #[smi] column: u32) -> String {
    let Some(ProgramText(text)) = state.try_borrow() else { return String::new() };
    let (Ok(line), Ok(column)) = (usize::try_from(line), usize::try_from(column)) else {
        return String::new();
    };
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let units: Vec<u16> = line.encode_utf16().skip(column.saturating_sub(1)).take(SOURCE_UNITS_MAX).collect();
    String::from_utf16_lossy(&units)
}

/// A column in UTF-16 units for one as quickjs counts it, which is in bytes of UTF-8; both from 1.
pub(crate) fn utf16_column(program: &str, line: u32, column: u32) -> u32 {
    let (Ok(line), Ok(bytes)) = (usize::try_from(line), usize::try_from(column)) else { return column };
    let text = program.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let before = &text[..text.floor_char_boundary(bytes.saturating_sub(1))];
    let wider = before.len() - before.encode_utf16().count();
    column.saturating_sub(u32::try_from(wider).unwrap_or(0))
}

#[op2(fast)]
fn op_codemode_column(state: &OpState, #[smi] line: u32, #[smi] column: u32) -> u32 {
    state.try_borrow().map_or(column, |ProgramText(text)| utf16_column(text, line, column))
}

/// What kind of exotic object a value is; 0 for plain objects and everything that is no object. The numbers are
/// indexes into `KIND_ADVICE` of the boot script. Runs no code of the value.
#[op2(fast)]
fn op_codemode_kind(value: v8::Local<'_, v8::Value>) -> u32 {
    if !value.is_object() {
        return 0;
    }
    // quickjs's facade tells the other brands by `Object.prototype.toString`, which is the program's to replace: there
    // the boot script asks for them in its own way.
    if value.is_proxy() {
        1
    } else if value.is_function() {
        13
    } else if value.is_promise() {
        5
    } else if value.is_typed_array() {
        7
    } else if value.is_native_error() {
        9
    } else if cfg!(feature = "quickjs") {
        0
    } else if value.is_date() {
        2
    } else if value.is_map() {
        3
    } else if value.is_set() {
        4
    } else if value.is_reg_exp() {
        6
    } else if value.is_data_view() {
        14
    } else if value.is_array_buffer() || value.is_shared_array_buffer() {
        8
    } else if is_boxed(value) {
        10
    } else if value.is_weak_map() || value.is_weak_set() {
        11
    } else if value.is_generator_object() || value.is_map_iterator() || value.is_set_iterator() {
        12
    } else {
        0
    }
}

fn is_boxed(value: v8::Local<'_, v8::Value>) -> bool {
    value.is_number_object()
        || value.is_string_object()
        || value.is_boolean_object()
        || value.is_big_int_object()
        || value.is_symbol_object()
}
