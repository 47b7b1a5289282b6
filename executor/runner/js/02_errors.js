// Errors towards the program and of the program: stack texts in the program's own lines, and the one place that
// turns whatever was thrown into a failure's text.

/** Name under which the program stands in stack texts. */
const PROGRAM_NAME = "program.ts";
/** Lines of the wrapper before the program's first. */
const WRAPPER_LINES = 1;
const FRAMES_MAX = 20;
const UNRENDERABLE = "the program threw a value that cannot be rendered as text";

/** Where an error's top program frame is: error -> { line, column }. */
const positions = new SafeWeakMap();
/** An error's frames as text, for errors that get their message later: error -> string. */
const frameTexts = new SafeWeakMap();

function callSite(site, method) {
  try {
    const fn = site[method];
    return typeof fn === "function" ? ReflectApply(fn, site, []) : undefined;
  } catch {
    return undefined;
  }
}

function isName(name) {
  return typeof name === "string" && name !== "" && name !== "<anonymous>" && name !== "anonymous";
}

/** Frames of the program among `sites`, as text; the first one's place is kept for `error`. */
function formatFrames(error, sites) {
  let text = "";
  let shown = 0;
  for (let i = 0; i < sites.length && shown < FRAMES_MAX; i++) {
    const site = sites[i];
    if (callSite(site, "getFileName") !== PROGRAM_NAME) {
      continue;
    }
    const name = callSite(site, "getFunctionName");
    if (ENGINE === "quickjs" && name === "anonymous") {
      // The body of a `new Function`: quickjs gives it the program's name, and lines that are not the program's.
      continue;
    }
    const line = callSite(site, "getLineNumber") - WRAPPER_LINES;
    if (!(line >= 1)) {
      continue;
    }
    const counted = callSite(site, "getColumnNumber");
    const column = ENGINE === "quickjs" ? op_codemode_column(line, counted) : counted;
    if (shown === 0) {
      WeakMapPrototypeSet(positions, error, { line, column });
    }
    shown++;
    const place = PROGRAM_NAME + ":" + line + ":" + column;
    const isAsync = callSite(site, "isAsync") === true ? "async " : "";
    text += isName(name) ? "\n    at " + isAsync + name + " (" + place + ")" : "\n    at " + isAsync + place;
  }
  WeakMapPrototypeSet(frameTexts, error, text);
  return text;
}

/** `Name: message` of an error object, read with care. */
function errorHeader(error) {
  let name = "Error";
  let message = "";
  try {
    const own = error.name;
    if (own !== undefined) name = String(own);
  } catch { /* the default stands */ }
  try {
    const own = error.message;
    if (own !== undefined) message = String(own);
  } catch { /* the default stands */ }
  if (message === "") return name;
  return name === "" ? message : name + ": " + message;
}

/** The engine's hook for every stack text. The program cannot replace it and never sees a call site. */
function prepareStack(error, sites) {
  try {
    return errorHeader(error) + formatFrames(error, sites);
  } catch {
    return "Error";
  }
}

function read(object, key) {
  try {
    return object[key];
  } catch {
    return undefined;
  }
}

/** One line for something thrown: for texts inside other texts. */
function describeThrown(thrown) {
  if (typeof thrown === "object" && thrown !== null && core.isNativeError(thrown)) {
    return errorHeader(thrown);
  }
  return renderValue(thrown);
}

/** Text of a thrown value that is no error. */
function renderValue(value) {
  try {
    if (typeof value === "string") return value;
    if (typeof value === "symbol") return SymbolPrototypeToString(value);
    if (typeof value === "function" || (typeof value === "object" && value !== null)) {
      return inspectValue(value);
    }
    return String(value);
  } catch {
    return UNRENDERABLE;
  }
}

/**
 * A stack text without what quickjs adds to it after it was formatted: frames of awaiting functions, in lines that
 * count the wrapper's; or, where it could not be formatted for want of stack, without frames.
 */
function withoutAddedFrames(error, stack) {
  if (ENGINE !== "quickjs") {
    return stack;
  }
  const frames = WeakMapPrototypeGet(frameTexts, error);
  if (frames === undefined || frames === "") {
    const host = RegExpPrototypeExec(/\n {4}at [^\n]*\b(?:ext:deno_|codemode:)/, stack);
    return host === null ? stack : StringPrototypeSlice(stack, 0, StringPrototypeIndexOf(stack, "\n    at "));
  }
  const end = StringPrototypeIndexOf(stack, frames) + frames.length;
  const added = end < frames.length ? "" : StringPrototypeSlice(stack, end);
  return RegExpPrototypeExec(/^(?:\n {4}at async [^\n]*)+$/, added) === null ? stack : StringPrototypeSlice(stack, 0, end);
}

/** Text of a thrown error: its stack (or message), then the errors and causes inside it. */
function renderError(error, depth) {
  let stack = read(error, "stack");
  let text;
  if (typeof stack === "string" && stack !== "") {
    stack = withoutAddedFrames(error, stack);
    const message = read(error, "message");
    // A stack replaced by the program must not hide the message.
    text = typeof message === "string" && message !== "" && !StringPrototypeIncludes(stack, message)
      ? errorHeader(error) + "\n" + stack
      : stack;
  } else if (stack !== undefined && stack !== null && stack !== "") {
    text = renderValue(stack);
  } else {
    text = renderValue(read(error, "message") ?? errorHeader(error));
  }
  if (depth >= 4) {
    return text;
  }
  const errors = read(error, "errors");
  if (op_codemode_kind(errors) === 0 && ArrayIsArray(errors)) {
    for (let i = 0; i < errors.length && i < 20; i++) {
      text += "\n  [" + i + "] " + (renderThrown(read(errors, i), depth + 1));
    }
  }
  const cause = read(error, "cause");
  if (cause !== undefined) {
    text += "\nCaused by: " + renderThrown(cause, depth + 1);
  }
  return text;
}

function renderThrown(thrown, depth) {
  try {
    if (typeof thrown === "object" && thrown !== null && core.isNativeError(thrown)) {
      return renderError(thrown, depth);
    }
    return renderValue(thrown);
  } catch {
    return renderBriefly(thrown);
  }
}

/** Without stack: where the program recursed to the stack's end, there may be no room for more. */
function renderBriefly(thrown) {
  try {
    return core.isNativeError(thrown) ? errorHeader(thrown) : UNRENDERABLE;
  } catch {
    return UNRENDERABLE;
  }
}

/** Class name of a thrown error, as its `name` says it. */
function thrownName(thrown) {
  if (typeof thrown !== "object" || thrown === null || !core.isNativeError(thrown)) {
    return "";
  }
  const name = read(thrown, "name");
  return typeof name === "string" ? StringPrototypeSlice(name, 0, 120) : "";
}

/** Where a thrown error comes from in the program, or { line: 0, column: 0 }. */
function thrownPosition(thrown) {
  if (typeof thrown === "object" && thrown !== null) {
    const position = WeakMapPrototypeGet(positions, thrown);
    if (position !== undefined) {
      return position;
    }
  }
  return { line: 0, column: 0 };
}
