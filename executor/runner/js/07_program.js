// One program's run: its namespaces, its calls, its completion. The runner's loop calls `start`, `deliver`,
// `deliverError` and `tick`; what comes back goes out through the ops.

/** Calls in flight: id -> { resolve, reject, table, member, site }. */
const pending = new SafeMap();
let pendingCount = 0;
let callSerial = 0;
let spec;

/** An error class of the program's world. */
function makeErrorClass(name) {
  const made = {
    [name]: class extends Error {},
  }[name];
  ObjectDefineProperty(made.prototype, "name", {
    __proto__: null, value: name, writable: true, enumerable: false, configurable: true,
  });
  return made;
}

/** The rejection of one call. Its stack is the call's own place in the program. Runs no code of the program's. */
function callError(table, member, message, site) {
  const error = new Error(message);
  if (table.errorClass !== null) {
    ObjectSetPrototypeOf(error, table.errorClass.made);
    const name = table.errorClass.name;
    ObjectDefineProperty(error, "name", {
      __proto__: null, value: name, writable: true, enumerable: false, configurable: true,
    });
    ObjectDefineProperty(error, table.errorClass.member, {
      __proto__: null, value: member, writable: true, enumerable: true, configurable: true,
    });
  }
  const frames = framesOf(site);
  ObjectDefineProperty(error, "stack", {
    __proto__: null, value: errorHeader(error) + frames, writable: true, enumerable: false, configurable: true,
  });
  const position = WeakMapPrototypeGet(positions, site);
  if (position !== undefined) {
    WeakMapPrototypeSet(positions, error, position);
  }
  return error;
}

/** The frames kept by an error that was made for its place. */
function framesOf(site) {
  read(site, "stack");
  return WeakMapPrototypeGet(frameTexts, site) ?? "";
}

function callBinding(table, index, args) {
  const member = table.functions[index];
  const site = new Error();
  return new Promise((resolve, reject) => {
    let text;
    try {
      text = args === undefined && spec.undefinedOmit ? "{}" : encodeJson(args, spec.undefinedOmit);
    } catch (error) {
      const why = args === undefined
        ? "arguments is undefined; pass an object, e.g. {}"
        : lossyText("arguments", error);
      reject(callError(table, member, "binding arguments must be lossless JSON: " + why, site));
      return;
    }
    if (text.length > spec.argumentBytesMax) {
      reject(callError(
        table, member, "binding arguments of " + text.length + " characters exceed " + spec.argumentBytesMax + " bytes", site,
      ));
      return;
    }
    const id = ++callSerial;
    MapPrototypeSet(pending, id, { __proto__: null, resolve, reject, table, member, site });
    pendingCount++;
    op_codemode_call(id, table.index, index, text);
  });
}

function makeNamespace(table) {
  const namespace = ObjectCreate(null);
  for (let i = 0; i < table.functions.length; i++) {
    const name = table.functions[i];
    ObjectDefineProperty(namespace, name, {
      __proto__: null,
      value: opaque(name, 1, (args) => callBinding(table, i, args)),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return namespace;
}

function settleCall(id, settle) {
  const call = MapPrototypeGet(pending, id);
  if (call === undefined) {
    return;
  }
  MapPrototypeDelete(pending, id);
  pendingCount--;
  settle(call);
}

/** A call's value arrived. */
function deliver(id, text) {
  settleCall(id, (call) => {
    let value;
    try {
      value = JSONParse(text);
    } catch (error) {
      const why = describeThrown(error);
      call.reject(callError(call.table, call.member, "binding resolution must be lossless JSON: " + why, call.site));
      return;
    }
    call.resolve(value);
  });
}

/** A call's failure arrived. */
function deliverError(id, message) {
  settleCall(id, (call) => call.reject(callError(call.table, call.member, message, call.site)));
}

function fail(kind, message, thrown) {
  const { line, column } = thrownPosition(thrown);
  op_codemode_failed(kind, JSONStringify(message), thrownName(thrown), line, column);
}

const EXCEPTION = 1;
const INVALID_OUTPUT = 2;
const OUTPUT_LIMIT = 3;

/** The program threw. */
function failWith(thrown) {
  let message = renderThrown(thrown, 0);
  const advice = adviceFor(thrown);
  if (advice !== "") {
    message += "\n" + advice;
  }
  if (message.length > spec.outputBytes) {
    fail(OUTPUT_LIMIT, "", thrown);
    return;
  }
  fail(EXCEPTION, message, thrown);
}

/** Something threw outside the program's own flow. */
function uncaught(thrown, where) {
  let message = "uncaught " + where + ": " + renderThrown(thrown, 0);
  if (message.length > spec.outputBytes) {
    message = "";
  }
  fail(message === "" ? OUTPUT_LIMIT : EXCEPTION, message, thrown);
}

/** The program returned. */
function completeWith(value) {
  noteUnhandled();
  if (value === undefined) {
    op_codemode_completed(false, "");
    return;
  }
  let text;
  try {
    text = encodeJson(value, spec.undefinedOmit);
  } catch (error) {
    fail(INVALID_OUTPUT, "program completion must be lossless JSON: " + lossyText("value", error), undefined);
    return;
  }
  if (text.length > spec.outputBytes) {
    fail(OUTPUT_LIMIT, "", undefined);
    return;
  }
  op_codemode_completed(true, text);
}

/** Rejections that nobody has handled yet: promise -> reason. */
const unhandled = new SafeMap();

function promiseRejected(promise, reason) {
  MapPrototypeSet(unhandled, promise, reason);
}

function promiseHandled(promise) {
  MapPrototypeDelete(unhandled, promise);
}

/** A program that completes over rejections nobody handled hears of the first ones. */
function noteUnhandled() {
  let told = 0;
  unhandled.forEach((reason) => {
    if (told++ < 3) {
      log("unhandled rejection: " + describeThrown(reason));
    }
  });
}

/** Advice on what the program reached for and did not find. */
function adviceFor(thrown) {
  if (typeof thrown !== "object" || thrown === null || !core.isNativeError(thrown)) {
    return "";
  }
  const message = read(thrown, "message");
  if (typeof message !== "string" || message.length > 500) {
    return "";
  }
  const missing = RegExpPrototypeExec(/^(?:'|")?([\w$]+)(?:'|")? is not defined$/, message);
  if (missing !== null) {
    return adviceForName(missing[1]);
  }
  return adviceForMember(message) || adviceForText(message, thrownPosition(thrown));
}

/** quickjs says `not a function` and no more of a computed name: the program's text at that place has it. */
function adviceForText(message, { line, column }) {
  if (message !== "not a function" || line === 0) {
    return "";
  }
  const text = op_codemode_source_at(line, column);
  const called = RegExpPrototypeExec(/^\)?\s*\[\s*(["'])([^"']*)\1\s*\]\s*\(/, text);
  if (called === null) {
    return "";
  }
  for (let i = 0; i < spec.namespaces.length; i++) {
    const table = spec.namespaces[i];
    if (!ArrayPrototypeIncludes(table.functions, called[2])) {
      return adviceForFunction(table, called[2]);
    }
  }
  return "";
}

function adviceForName(name) {
  const advice = ABSENT_ADVICE[name];
  if (advice !== undefined) {
    return "hint: " + advice;
  }
  const globals = newList();
  for (let i = 0; i < spec.namespaces.length; i++) {
    const table = spec.namespaces[i];
    globals[globals.length] = table.global;
    if (ArrayPrototypeIncludes(table.functions, name)) {
      return "hint: call " + memberText(table.global, name) + "(…)";
    }
  }
  return globals.length === 0
    ? ""
    : "hint: this program can call " + joinList(globals, ", ") + ", and the standard globals";
}

function adviceForMember(message) {
  // Engines write `tools.name is not a function`, whatever the name holds; quickjs leaves a computed name out.
  const called = RegExpPrototypeExec(/^([\w$]+)(?:\.(.*)|\[\s*["'](.*)["']\s*\])? is not a function$/s, message);
  if (called === null) {
    return "";
  }
  for (let i = 0; i < spec.namespaces.length; i++) {
    const table = spec.namespaces[i];
    if (called[1] === table.global) {
      return adviceForFunction(table, called[2] ?? called[3]);
    }
  }
  return "";
}

function adviceForFunction(table, name) {
  const all = firstNames(table.functions);
  if (name === undefined) {
    return "hint: " + table.global + " has no function of that name; it has " + all;
  }
  const dot = StringPrototypeIndexOf(name, ".");
  if (dot > 0 && ArrayPrototypeIncludes(table.functions, StringPrototypeSlice(name, 0, dot))) {
    return "";
  }
  const near = nearest(name, table.functions);
  return near === ""
    ? "hint: " + table.global + " has no function " + JSONStringify(name) + "; it has " + all
    : "hint: " + table.global + " has no function " + JSONStringify(name) + "; did you mean " + memberText(table.global, near) + "?";
}

/** The first names of a namespace, and how many there are beyond them. */
function firstNames(functions) {
  const names = newList();
  for (let i = 0; i < functions.length && i < 20; i++) {
    names[i] = functions[i];
  }
  const more = functions.length - names.length;
  return more > 0 ? joinList(names, ", ") + " and " + more + " more" : joinList(names, ", ");
}

function memberText(global, name) {
  return RegExpPrototypeExec(/^[A-Za-z_$][\w$]*$/, name) !== null
    ? global + "." + name
    : global + "[" + JSONStringify(name) + "]";
}

/** The function whose name is nearest by edit distance, or "" if none is near. */
function nearest(name, functions) {
  let best = "";
  let least = 1 + MathFloor(name.length / 3);
  const wanted = StringPrototypeToLowerCase(name);
  for (let i = 0; i < functions.length && i < 2000; i++) {
    if (functions[i].length > 100 || functions[i] === "") continue;
    const distance = editDistance(wanted, StringPrototypeToLowerCase(functions[i]));
    if (distance <= least) {
      if (distance < least || best === "") best = functions[i];
      least = distance;
    }
  }
  return best;
}

function editDistance(a, b) {
  let row = newList();
  for (let j = 0; j <= b.length; j++) row[j] = j;
  for (let i = 1; i <= a.length; i++) {
    const next = newList();
    next[0] = i;
    for (let j = 1; j <= b.length; j++) {
      const same = StringPrototypeCharCodeAt(a, i - 1) === StringPrototypeCharCodeAt(b, j - 1);
      let cost = row[j - 1] + (same ? 0 : 1);
      if (row[j] + 1 < cost) cost = row[j] + 1;
      if (next[j - 1] + 1 < cost) cost = next[j - 1] + 1;
      next[j] = cost;
    }
    row = next;
  }
  return row[b.length];
}

/** Takes the run's parameters; answers the names and values that the program is called with. */
function prepare(text) {
  spec = JSONParse(text);
  pending.clear();
  unhandled.clear();
  pendingCount = 0;
  callSerial = 0;
  timerSerial = 0;
  logEntryBytesMax = spec.logEntryBytesMax;
  installPerRun(spec.seed);
  const values = newList();
  for (let i = 0; i < spec.namespaces.length; i++) {
    const table = spec.namespaces[i];
    table.index = i;
    values[values.length] = makeNamespace(table);
  }
  for (let i = 0; i < spec.namespaces.length; i++) {
    const { errorClass } = spec.namespaces[i];
    if (errorClass !== null) {
      const made = makeErrorClass(errorClass.name);
      errorClass.made = made.prototype;
      values[values.length] = made;
    }
  }
  values[values.length] = theConsole;
  return values;
}

/** Calls the program with what `prepare` answered. */
function start(program, values) {
  let result;
  // What a regular expression of ours matched last is not what `RegExp.lastMatch` shows.
  RegExpPrototypeExec(/(?:)/, "");
  try {
    result = ReflectApply(program, undefined, values);
    whenSettled(result, completeWith, failWith);
  } catch (error) {
    failWith(error);
  }
}

/**
 * Runs a timer that is due. Answers how many milliseconds to wait for an arrival: 0 after a timer, -1 for ever while
 * a call is pending, -2 when nothing can ever wake the program.
 */
function tick() {
  if (runDueTimer()) {
    return 0;
  }
  const delay = nextTimerDelay();
  return delay < 0 ? (pendingCount > 0 ? -1 : -2) : delay;
}

const theConsole = makeConsole();
hideSources([
  theConsole, consoleModule, WEB_GLOBALS, new URLSearchParams("").entries(), globalThis.Intl, globalThis.Temporal,
  mathObject, LOCALE_METHODS, globalThis.Date,
]);
// `installGlobals` is the engine's to call, last: what it removes, a start-up snapshot still needs.
return { installGlobals, prepare, start, deliver, deliverError, tick, prepareStack, promiseRejected, promiseHandled, failWith, globalNames };
