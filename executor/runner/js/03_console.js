// The program's console: deno's formatting without colour, one log entry a call.

const consoleModule = core.loadExtScript("ext:deno_web/01_console.js");
consoleModule.setNoColorFns(() => true, () => true);

function inspectValue(value) {
  return consoleModule.inspect(value, { __proto__: null, colors: false, depth: 4 });
}

/** Set by the program's start: longest entry in bytes. */
let logEntryBytesMax = 1 << 20;

/** Sends one entry; a longer one is cut on a character and says so. */
function log(text) {
  let entry = text;
  if (entry.length > logEntryBytesMax) {
    const kept = StringPrototypeSlice(entry, 0, logEntryBytesMax);
    entry = `${kept}… [entry cut: ${logEntryBytesMax} of ${entry.length} characters]`;
  }
  op_codemode_log(JSONStringify(entry));
}

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
      clean[key] = opaque(key, 0, made[key]);
    }
  }
  return clean;
}
