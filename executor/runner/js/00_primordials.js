// Captured intrinsics. Everything below runs between a hostile program and the host: it uses only what was taken
// here, before any program code ran, and never a method looked up on a value the program can reach. Nor does it
// assign a property that may be missing, or append to an array that has a prototype: a setter that a program put on
// `Object.prototype` or `Array.prototype` would see the value and swallow it. Objects are made with all their
// fields; lists come from `newList`. There are no template literals: quickjs makes a call of
// `String.prototype.concat` of them.

const { core, primordials } = __bootstrap;
const {
  ArrayBufferPrototypeGetByteLength,
  ArrayIsArray,
  ArrayPrototype,
  ArrayPrototypeIncludes,
  ArrayPrototypePop,
  ArrayPrototypeSort,
  Error,
  BigIntPrototypeValueOf,
  BooleanPrototypeValueOf,
  DataViewPrototypeGetBuffer,
  DatePrototypeGetTime,
  ErrorPrototype,
  FunctionPrototype,
  FunctionPrototypeBind,
  FunctionPrototypeToString,
  JSONParse,
  JSONStringify,
  MathFloor,
  NumberIsFinite,
  NumberIsInteger,
  NumberPrototypeValueOf,
  Number,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectFreeze,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ObjectHasOwn,
  ObjectIs,
  ObjectKeys,
  ObjectPrototype,
  ObjectSetPrototypeOf,
  Promise,
  PromisePrototypeThen,
  PromiseResolve,
  RangeError,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectOwnKeys,
  RegExpPrototypeExec,
  RegExpPrototypeGetSource,
  SafeMap,
  SafeSet,
  SafeWeakMap,
  SafeWeakSet,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeEndsWith,
  StringPrototypeIncludes,
  StringPrototypeIndexOf,
  StringPrototypeReplaceAll,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  StringPrototypeToLowerCase,
  StringPrototypeValueOf,
  SymbolPrototypeToString,
  SymbolPrototypeValueOf,
  SymbolToStringTag,
  TypeError,
  TypedArrayPrototypeGetSymbolToStringTag,
  WeakMapPrototypeGet,
  WeakMapPrototypeHas,
  WeakMapPrototypeSet,
  MapPrototypeGet,
  MapPrototypeGetSize,
  MapPrototypeSet,
  MapPrototypeDelete,
  SetPrototypeGetSize,
  SetPrototypeHas,
  SetPrototypeAdd,
  SetPrototypeDelete,
  WeakSetPrototypeAdd,
  WeakSetPrototypeHas,
} = primordials;
const {
  op_codemode_call,
  op_codemode_completed,
  op_codemode_failed,
  op_codemode_kind,
  op_codemode_log,
  op_codemode_now,
  op_codemode_random,
  op_codemode_column,
  op_codemode_source_at,
} = core.ops;

/**
 * What deno_web's scripts see as deno's core: its timers are ours, and an exception that nobody handles ends the run.
 */
core.ops.op_set_captured_bootstrap({
  __proto__: null,
  primordials,
  internals: __bootstrap.internals,
  core: {
    __proto__: null,
    ...core,
    createSystemTimer: (callback, delay) => arm(callback, delay, [], false, "AbortSignal.timeout"),
    cancelTimer: (id) => disarm(id),
    refTimer: () => {},
    unrefTimer: () => {},
    destructureError: () => ({
      exceptionMessage: "",
      frames: [{ fileName: PROGRAM_NAME, lineNumber: 0, columnNumber: 0 }],
    }),
    reportUnhandledException: (error) => uncaught(error, "in an event listener"),
  },
});

/** `v8` or `quickjs`. */
const ENGINE = core.ops.op_codemode_engine();

/** An empty array without a prototype: assigning to an index defines it, whatever stands on `Array.prototype`. */
function newList() {
  return ObjectSetPrototypeOf([], null);
}

/** Joins a list's strings. */
function joinList(list, separator) {
  let text = "";
  for (let i = 0; i < list.length; i++) {
    text += i === 0 ? list[i] : separator + list[i];
  }
  return text;
}

/** Value of an own data property; undefined for accessors and what is missing. Runs no code. */
function ownData(object, key) {
  const property = ObjectGetOwnPropertyDescriptor(object, key);
  return property !== undefined && ObjectHasOwn(property, "value") ? property.value : undefined;
}

/**
 * Calls back with what a promise of the engine's own becomes, whatever the program did to `Promise.prototype`: its
 * `constructor` is what `then` would ask for the class of its result.
 */
function whenSettled(promise, fulfilled, rejected) {
  ObjectDefineProperty(promise, "constructor", { __proto__: null, value: undefined });
  PromisePrototypeThen(promise, fulfilled, rejected);
}

/** A function without any trace of its source: what the program gets to see of the host. */
function opaque(name, length, fn) {
  const bound = FunctionPrototypeBind(fn, undefined);
  ObjectDefineProperty(bound, "name", { __proto__: null, value: name, configurable: true });
  ObjectDefineProperty(bound, "length", { __proto__: null, value: length, configurable: true });
  return bound;
}

/** Defines a global of the program's world: writable and configurable as the platform's own are. */
function defineGlobal(name, value) {
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    value,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}
