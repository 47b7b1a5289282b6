// The program's console: deno's formatting without colour, one log entry a call.

const consoleModule = core.loadExtScript("ext:deno_web/01_console.js");
consoleModule.setNoColorFns(() => true, () => true);

function inspectValue(value) {
  return consoleModule.inspect(value, { __proto__: null, colors: false, depth: 4 });
}

/** Set by the program's start: longest entry in bytes. */
let logEntryBytesMax = 1 << 20;

/** How much of `text` fits into so many bytes of UTF-8, in code units; never ends inside a character. */
function fittingLength(text, bytesMax) {
  if (text.length * 3 <= bytesMax) {
    return text.length;
  }
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = StringPrototypeCharCodeAt(text, i);
    if (unit < 0x80) {
      bytes += 1;
    } else if (unit < 0x800) {
      bytes += 2;
    } else if (unit >= 0xd800 && unit < 0xdc00 && (StringPrototypeCharCodeAt(text, i + 1) & 0xfc00) === 0xdc00) {
      bytes += 4;
      if (bytes > bytesMax) return i;
      i++;
      continue;
    } else {
      bytes += 3;
    }
    if (bytes > bytesMax) return i;
  }
  return text.length;
}

/** Sends one entry; a longer one is cut between characters and says so. */
function log(text) {
  let entry = text;
  const length = fittingLength(entry, logEntryBytesMax);
  if (length < entry.length) {
    const kept = StringPrototypeSlice(entry, 0, length);
    entry = kept + "… [entry cut: " + length + " of " + entry.length + " characters]";
  }
  op_codemode_log(JSONStringify(entry));
}

/** `console.trace`: what it was given, then where in the program it stands. */
function traceHere(...args) {
  const label = args.length === 0
    ? "Trace"
    : "Trace: " + (consoleModule.inspectArgs(args, { ...consoleModule.getConsoleInspectOptions(true), indentLevel: 0 }));
  log(label + framesOf(new Error()));
}

/** `console.dir`: of the options only those that change what is shown, never colour. */
function makeDir(dir) {
  return (value, options) => {
    const given = typeof options === "object" && options !== null ? options : { __proto__: null };
    dir(value, { __proto__: null, colors: false, depth: given.depth === undefined ? 4 : given.depth, showHidden: given.showHidden === true });
  };
}

/** How deep `console.group` has indented. */
let groupDepth = 0;

/**
 * A console method that cannot throw: what formatting runs of the program (a `toString`, a trap) may fail, and the
 * entry says so. A lone string goes out as it is, half surrogates included, which the formatter would replace.
 */
function harmless(method, isPlain) {
  return (...args) => {
    if (isPlain && args.length === 1 && typeof args[0] === "string" && groupDepth === 0) {
      log(args[0]);
      return;
    }
    try {
      ReflectApply(method, undefined, args);
    } catch (error) {
      log("[not printable: " + describeThrown(error) + "]");
    }
  };
}

const PLAIN_METHODS = new SafeSet(["debug", "error", "info", "log", "warn"]);

function makeConsole() {
  const made = new consoleModule.Console((message) => {
    log(StringPrototypeEndsWith(message, "\n") ? StringPrototypeSlice(message, 0, -1) : message);
  });
  ReflectDeleteProperty(made, "indentLevel");
  const own = ReflectOwnKeys(made);
  const clean = {};
  for (let i = 0; i < own.length; i++) {
    const key = own[i];
    if (typeof key === "string" && typeof made[key] === "function") {
      clean[key] = opaque(key, 0, harmless(made[key], SetPrototypeHas(PLAIN_METHODS, key)));
    }
  }
  // There is no screen to clear, and whoever reads the logs wants what was said before.
  clean.clear = opaque("clear", 0, () => {});
  clean.trace = opaque("trace", 0, harmless(traceHere, false));
  clean.dir = opaque("dir", 0, harmless(makeDir(made.dir), false));
  const { group, groupCollapsed, groupEnd } = clean;
  const deeper = (open) => (...args) => {
    ReflectApply(open, undefined, args);
    groupDepth++;
  };
  clean.group = opaque("group", 0, deeper(group));
  clean.groupCollapsed = opaque("groupCollapsed", 0, deeper(groupCollapsed));
  clean.groupEnd = opaque("groupEnd", 0, () => {
    groupEnd();
    if (groupDepth > 0) groupDepth--;
  });
  return clean;
}
