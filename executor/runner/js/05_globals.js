// The program's global object: the web's standard globals of the published list, and nothing else.

const {
  ArrayBufferIsView,
  DateNow,
  MathImul,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  Uint8Array,
} = primordials;

/** The one `Math` of the realm; primordials hold its functions only. */
const mathObject = globalThis.Math;

const eventModule = core.loadExtScript("ext:deno_web/02_event.js");
const abortModule = core.loadExtScript("ext:deno_web/03_abort_signal.js");
eventModule.saveGlobalThisReference({ __proto__: null, dispatchEvent: () => true });

const { DOMException } = core.loadExtScript("ext:deno_web/01_dom_exception.js");
const { URL, URLSearchParams } = core.loadExtScript("ext:deno_web/00_url.js");
const { TextEncoder, TextDecoder } = core.loadExtScript("ext:deno_web/08_text_encoding.js");
const { structuredClone: cloneStructured } = core.loadExtScript("ext:deno_web/02_structured_clone.js");
const { atob, btoa } = core.loadExtScript("ext:deno_web/05_base64.js");

/** Exceptions that deno's ops name and that only a runtime can make. */
const DOM_EXCEPTIONS = [
  "AbortError", "DataCloneError", "DataError", "InvalidCharacterError", "InvalidStateError", "NetworkError",
  "NotSupportedError", "OperationError", "QuotaExceededError",
];
for (let i = 0; i < DOM_EXCEPTIONS.length; i++) {
  const name = DOM_EXCEPTIONS[i];
  core.registerErrorBuilder("DOMException" + name, (message) => new DOMException(message, name));
}

const HEX = ObjectFreeze(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"]);

function randomUuid() {
  const bytes = new Uint8Array(16);
  op_codemode_random(bytes);
  let text = "";
  for (let i = 0; i < 16; i++) {
    let byte = bytes[i];
    if (i === 6) byte = (byte & 0x0f) | 0x40;
    if (i === 8) byte = (byte & 0x3f) | 0x80;
    if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
    text += HEX[byte >> 4] + HEX[byte & 15];
  }
  return text;
}

const INTEGER_ARRAYS = new SafeSet([
  "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
  "BigInt64Array", "BigUint64Array",
]);

function getRandomValues(array) {
  const tag = ArrayBufferIsView(array) ? TypedArrayPrototypeGetSymbolToStringTag(array) : undefined;
  if (!SetPrototypeHas(INTEGER_ARRAYS, tag)) {
    throw new DOMException("getRandomValues: the argument must be an integer typed array", "TypeMismatchError");
  }
  const length = TypedArrayPrototypeGetByteLength(array);
  if (length > 65536) {
    throw new DOMException("getRandomValues: " + length + " bytes asked for, 65536 are the most", "QuotaExceededError");
  }
  op_codemode_random(
    new Uint8Array(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), length),
  );
  return array;
}


/** The platform's clone; where quickjs says why not in terms of its own, in the platform's. */
function structuredCloneOf(value) {
  try {
    return cloneStructured(value);
  } catch (error) {
    const message = ENGINE === "quickjs" ? read(error, "message") : undefined;
    if (typeof message === "string") {
      const kind = RegExpPrototypeExec(/^unsupported object class: (\w+)/, message);
      if (kind !== null) throw new DOMException("#<" + kind[1] + "> could not be cloned.", "DataCloneError");
      if (StringPrototypeIncludes(message, "function object")) {
        throw new DOMException("A function could not be cloned.", "DataCloneError");
      }
    }
    throw error;
  }
}

/** xoshiro128**, seeded for each run: what the engine seeded is the same in every fork. */
const randomState = [1, 2, 3, 4];

function nextRandom() {
  let { 0: a, 1: b, 2: c, 3: d } = randomState;
  const scrambled = MathImul(b, 5);
  const result = MathImul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
  const t = b << 9;
  c ^= a;
  d ^= b;
  b ^= c;
  a ^= d;
  c ^= t;
  d = (d << 11) | (d >>> 21);
  randomState[0] = a;
  randomState[1] = b;
  randomState[2] = c;
  randomState[3] = d;
  return result;
}

/** 53 random bits, in [0, 1). */
function random() {
  return ((nextRandom() >>> 5) * 67108864 + (nextRandom() >>> 6)) / 9007199254740992;
}

/** The run's beginning on the monotonic clock, milliseconds. */
let timeOrigin = 0;

const performance = {
  now: opaque("now", 0, () => op_codemode_now() - timeOrigin),
  timeOrigin: 0,
};

const crypto = {
  getRandomValues: opaque("getRandomValues", 1, getRandomValues),
  randomUUID: opaque("randomUUID", 0, randomUuid),
};

/** Beside the ECMAScript globals; the published list. */
const WEB_GLOBALS = {
  __proto__: null,
  AbortController: abortModule.AbortController,
  AbortSignal: abortModule.AbortSignal,
  CustomEvent: eventModule.CustomEvent,
  DOMException,
  ErrorEvent: eventModule.ErrorEvent,
  Event: eventModule.Event,
  EventTarget: eventModule.EventTarget,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  atob: opaque("atob", 1, atob),
  btoa: opaque("btoa", 1, btoa),
  clearInterval,
  clearTimeout,
  crypto,
  performance,
  queueMicrotask: opaque("queueMicrotask", 1, (callback) => {
    if (typeof callback !== "function") {
      throw new TypeError("queueMicrotask: the callback must be a function");
    }
    whenSettled(PromiseResolve(undefined), () => {
      try {
        callback();
      } catch (error) {
        uncaught(error, "in a microtask");
      }
    });
  }),
  setInterval,
  setTimeout,
  structuredClone: opaque("structuredClone", 1, structuredCloneOf),
};

/** ECMAScript globals that stay. What an engine has beyond this list is removed. */
const LANGUAGE_GLOBALS = new SafeSet([
  "AggregateError", "Array", "ArrayBuffer", "AsyncDisposableStack", "BigInt", "BigInt64Array", "BigUint64Array",
  "Boolean", "DataView", "Date", "DisposableStack", "Error", "EvalError", "FinalizationRegistry", "Float16Array",
  "Float32Array", "Float64Array", "Function", "Infinity", "Int16Array", "Int32Array", "Int8Array", "Intl",
  "Iterator", "JSON", "Map", "Math", "NaN", "Number", "Object", "Promise", "Proxy", "RangeError",
  "ReferenceError", "Reflect", "RegExp", "Set", "String", "SuppressedError", "Symbol", "SyntaxError", "Temporal",
  "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef",
  "WeakSet", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis",
  "isFinite", "isNaN", "parseFloat", "parseInt", "undefined", "unescape",
]);

/** What models reach for and will not find, and what to use instead. */
const ABSENT_ADVICE = {
  __proto__: null,
  fetch: "there is no network here; call one of the tools",
  XMLHttpRequest: "there is no network here; call one of the tools",
  WebSocket: "there is no network here; call one of the tools",
  require: "there are no modules here; use the language, the web globals and the tools",
  module: "there are no modules here; return the result",
  exports: "there are no modules here; return the result",
  process: "there is no process object here; the environment is empty, return the result instead of exiting",
  Deno: "there is no Deno object here; call one of the tools for files, network and commands",
  Bun: "there is no Bun object here; call one of the tools for files, network and commands",
  Buffer: "there is no Buffer here; use Uint8Array with TextEncoder, TextDecoder, atob and btoa",
  global: "use globalThis",
  window: "there is no window here; use globalThis",
  self: "use globalThis",
  document: "there is no document here; parse text with string methods or a tool",
  localStorage: "nothing is kept between runs; return what is needed later",
  sessionStorage: "nothing is kept between runs; return what is needed later",
  setImmediate: "use setTimeout(callback, 0)",
  clearImmediate: "use clearTimeout",
  Temporal: "this engine has no Temporal; use Date",
  WebAssembly: "WebAssembly is not available here",
  SharedArrayBuffer: "shared memory is not available here; use ArrayBuffer",
  Atomics: "shared memory is not available here",
  Worker: "there are no workers here; use Promise.all for tool calls in parallel",
  __dirname: "there are no files here; call one of the tools",
  __filename: "there are no files here; call one of the tools",
  fs: "there are no files here; call one of the tools",
  alert: "use console.log",
  prompt: "there is nobody to ask here; return the question",
  Response: "there is no network here; call one of the tools",
  Request: "there is no network here; call one of the tools",
  Headers: "there is no network here; call one of the tools",
  FormData: "there is no network here; call one of the tools",
  Blob: "use Uint8Array",
  File: "there are no files here; call one of the tools",
};

/** The host's functions written in JavaScript: what the program sees of their text is what it sees of native ones. */
const hostFunctions = new SafeWeakSet();

const sourceMethods = {
  toString() {
    return WeakSetPrototypeHas(hostFunctions, this)
      ? "function " + (ownData(this, "name") ?? "") + "() { [native code] }"
      : FunctionPrototypeToString(this);
  },
};

/** Takes every function that can be reached from `roots` for the host's. Called before any program code exists. */
function hideSources(roots) {
  ObjectDefineProperty(FunctionPrototype, "toString", {
    __proto__: null, value: sourceMethods.toString, writable: true, enumerable: false, configurable: true,
  });
  const seen = new SafeSet();
  const waiting = newList();
  const note = (value) => {
    if ((typeof value !== "object" || value === null) && typeof value !== "function") return;
    if (SetPrototypeHas(seen, value)) return;
    SetPrototypeAdd(seen, value);
    waiting[waiting.length] = value;
    if (typeof value === "function") WeakSetPrototypeAdd(hostFunctions, value);
  };
  note(sourceMethods.toString);
  note(roots);
  while (waiting.length > 0) {
    const object = ArrayPrototypePop(waiting);
    note(ObjectGetPrototypeOf(object));
    const keys = ReflectOwnKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const property = ObjectGetOwnPropertyDescriptor(object, keys[i]);
      note(property.value);
      note(property.get);
      note(property.set);
    }
  }
}

function installGlobals() {
  const own = ReflectOwnKeys(globalThis);
  for (let i = 0; i < own.length; i++) {
    const key = own[i];
    if (typeof key === "symbol" || !SetPrototypeHas(LANGUAGE_GLOBALS, key)) {
      if (key === SymbolToStringTag) continue;
      if (!ReflectDeleteProperty(globalThis, key)) {
        throw new Error("the global " + String(key) + " cannot be removed");
      }
    }
  }
  const names = ObjectKeys(WEB_GLOBALS);
  for (let i = 0; i < names.length; i++) {
    defineGlobal(names[i], WEB_GLOBALS[names[i]]);
  }
  ObjectDefineProperty(mathObject, "random", {
    __proto__: null, value: opaque("random", 0, random), writable: true, enumerable: false, configurable: true,
  });
  ObjectDefineProperty(globalThis, SymbolToStringTag, {
    __proto__: null, value: "global", writable: false, enumerable: false, configurable: true,
  });
}

/** What must be made anew in each process: it would be the same in every fork. */
function installPerRun(seed) {
  for (let i = 0; i < 4; i++) {
    randomState[i] = seed[i];
  }
  timeOrigin = op_codemode_now();
  performance.timeOrigin = DateNow();
}

/** The published list: every global a program finds, sorted, beside its own namespaces. */
function globalNames() {
  const names = newList();
  names[0] = "console";
  const own = ReflectOwnKeys(globalThis);
  for (let i = 0; i < own.length; i++) {
    if (typeof own[i] === "string" && !ArrayPrototypeIncludes(names, own[i])) {
      names[names.length] = own[i];
    }
  }
  return ArrayPrototypeSort(names);
}
