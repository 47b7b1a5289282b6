// Lossless JSON: turns a value into JSON text in one walk, or says where it cannot and what to write instead.
// Iterative, so that depth costs no stack; every property is read exactly once; no code of the value runs but its
// enumerable getters. What counts as lossless is the contract's section 2.4.

/** Deepest nesting; `JSON_DEPTH_MAX` of the wire. */
const DEPTH_MAX = 100_000;
/** Keys of a path that are shown. */
const PATH_KEYS_MAX = 64;

/** What `op_codemode_kind` says of an object that is not plain, and the cure. */
const KIND_ADVICE = [
  null,
  ["Proxy", "return a plain copy: { ...value }"],
  ["Date", "return its toISOString()"],
  ["Map", "return Object.fromEntries(map)"],
  ["Set", "return [...set]"],
  ["Promise", "await it"],
  ["RegExp", "return String(regexp)"],
  ["typed array", "return Array.from(it)"],
  ["ArrayBuffer", "return Array.from(new Uint8Array(it))"],
  ["Error", "return its message, or { name, message }"],
  ["boxed primitive", "return it.valueOf()"],
  ["WeakMap or WeakSet", "return plain data"],
  ["generator or iterator", "return [...it]"],
  ["function", "call it, or leave it out"],
  ["DataView", "return plain data"],
];
const VOWEL_KINDS = new SafeSet(["Error", "ArrayBuffer"]);
const KIND_PROXY = 1;
const KIND_ITERATOR = 12;
/** What every generator and built-in iterator inherits from. */
const IteratorPrototype = globalThis.Iterator.prototype;

/**
 * Asks each brand for what only its own objects have. v8 tells brands by itself; quickjs's facade asks the object,
 * which may say anything.
 */
const BRANDS = [
  [2, (value) => DatePrototypeGetTime(value)],
  [3, (value) => MapPrototypeGetSize(value)],
  [4, (value) => SetPrototypeGetSize(value)],
  [6, (value) => RegExpPrototypeGetSource(value)],
  [8, (value) => ArrayBufferPrototypeGetByteLength(value)],
  [10, (value) => NumberPrototypeValueOf(value)],
  [10, (value) => StringPrototypeValueOf(value)],
  [10, (value) => BooleanPrototypeValueOf(value)],
  [10, (value) => BigIntPrototypeValueOf(value)],
  [10, (value) => SymbolPrototypeValueOf(value)],
  [11, (value) => WeakMapPrototypeHas(value, value)],
  [11, (value) => WeakSetPrototypeHas(value, value)],
  [14, (value) => DataViewPrototypeGetBuffer(value)],
];

/** Index into `KIND_ADVICE` of an object that `op_codemode_kind` takes for a plain one. */
function brandOf(value) {
  for (let i = 0; ENGINE === "quickjs" && i < BRANDS.length; i++) {
    const { 0: kind, 1: ask } = BRANDS[i];
    try {
      ask(value);
      return kind;
    } catch { /* not of this brand */ }
  }
  let proto = ObjectGetPrototypeOf(value);
  for (let hops = 0; hops < 20 && proto !== null && op_codemode_kind(proto) !== KIND_PROXY; hops++) {
    if (proto === IteratorPrototype) {
      return KIND_ITERATOR;
    }
    proto = ObjectGetPrototypeOf(proto);
  }
  return 0;
}

/** Why the last value that was refused is not lossless JSON: `{ path, text }`, thrown by `encodeJson`. */
let lossy = null;

/** Keys on the way to the innermost open container's current place, outermost first; null last if they are too many. */
function pathTo(innermost) {
  const frames = newList();
  for (let frame = innermost; frame !== null; frame = frame.parent) {
    frames[frames.length] = frame;
  }
  const keys = newList();
  for (let i = frames.length - 1; i >= 0 && keys.length < PATH_KEYS_MAX; i--) {
    const frame = frames[i];
    keys[keys.length] = frame.keys === null ? frame.index : frame.keys[frame.index];
  }
  if (keys.length < frames.length) {
    keys[keys.length] = null;
  }
  return keys;
}

function renderPath(root, keys) {
  let text = root;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (key === null || text.length > 400) {
      return text + "…";
    }
    if (typeof key === "number") {
      text += "[" + key + "]";
    } else if (RegExpPrototypeExec(/^[A-Za-z_$][\w$]*$/, key) !== null) {
      text += "." + key;
    } else {
      const shown = key.length > 60 ? StringPrototypeSlice(key, 0, 60) + "…" : key;
      text += "[" + JSONStringify(shown) + "]";
    }
  }
  return text;
}

/** The name of an object's class, without running any code of the program. */
function className(value) {
  let proto = value;
  for (let hops = 0; hops < 20 && proto !== null; hops++) {
    proto = ObjectGetPrototypeOf(proto);
    if (proto === null || op_codemode_kind(proto) === KIND_PROXY) {
      return "";
    }
    const ctor = ownData(proto, "constructor");
    if (typeof ctor === "function") {
      const name = op_codemode_kind(ctor) === KIND_PROXY ? undefined : ownData(ctor, "name");
      return typeof name === "string" ? StringPrototypeSlice(name, 0, 60) : "";
    }
  }
  return "";
}

/** `[what it is, what to write instead]` for an object that is neither a plain record nor a plain array. */
function oddObject(value) {
  const kind = op_codemode_kind(value) || brandOf(value);
  if (kind !== 0) {
    const { 0: what, 1: cure } = KIND_ADVICE[kind];
    return ["is " + (SetPrototypeHas(VOWEL_KINDS, what) ? "an" : "a") + " " + what, cure];
  }
  const name = className(value);
  return [
    name === "" ? "has a prototype of its own" : "is an instance of " + name,
    "return a plain object: { ...value }",
  ];
}

/** `[what it is, what to write instead]` for a primitive that JSON cannot hold, or null. */
function oddPrimitive(value) {
  switch (typeof value) {
    case "undefined":
      return ["is undefined", "use null, or leave it out"];
    case "bigint":
      return ["is a BigInt", "return String(value)"];
    case "symbol":
      return ["is a Symbol", "return its description"];
    case "function":
      return ["is a function", "call it, or leave it out"];
    case "number":
      if (value !== value) {
        return ["is NaN", "use null, or check the arithmetic"];
      }
      if (!NumberIsFinite(value)) {
        return ["is " + (value > 0 ? "" : "-") + "Infinity", "use null, or check the arithmetic"];
      }
      return ["is -0", "use 0"];
    default:
      return null;
  }
}

/** Whether `getPrototypeOf` says plain. Never called on a proxy. */
function hasPlainPrototype(value, isArray) {
  const proto = ObjectGetPrototypeOf(value);
  return isArray ? proto === ArrayPrototype : proto === null || proto === ObjectPrototype;
}

/** Opens a container inside `parent` for the walk, or throws why it is not plain. */
function openContainer(value, parent, fail) {
  // The brand first: a proxy must not be asked anything else, its traps are the program's code.
  if (op_codemode_kind(value) !== 0) {
    fail(oddObject(value));
  }
  const isArray = ArrayIsArray(value);
  if (!hasPlainPrototype(value, isArray)) {
    fail(oddObject(value));
  }
  const own = ReflectOwnKeys(value);
  if (isArray) {
    const length = value.length;
    if (own.length !== length + 1 || ObjectKeys(value).length !== length) {
      fail(
        own.length < length + 1
          ? ["is a sparse array", "fill its holes, e.g. Array.from(it, (x) => x ?? null)"]
          : ["is an array with extra or hidden properties", "return a plain array: [...value]"],
      );
    }
    return { value, keys: null, length, index: -1, first: true, parent, depth: parent === null ? 1 : parent.depth + 1 };
  }
  if (own.length === 0 && brandOf(value) !== 0) {
    // An exotic object that was given a plain prototype: what it holds would be lost.
    fail(oddObject(value));
  }
  const keys = ObjectKeys(value);
  if (keys.length !== own.length) {
    fail(
      typeof own[own.length - 1] === "symbol"
        ? ["has a symbol key", "use string keys"]
        : ["has a hidden (non-enumerable) property", "return a plain copy: { ...value }"],
    );
  }
  return {
    value, keys, length: keys.length, index: -1, first: true, parent, depth: parent === null ? 1 : parent.depth + 1,
  };
}

/**
 * JSON text of `value`. With `omitUndefined`, properties that are undefined are left out.
 * Throws `lossy`; a throwing getter's own error passes through.
 */
function encodeJson(value, omitUndefined) {
  /** The innermost container that is open; each knows the one around it. */
  let innermost = null;
  const ancestors = new SafeSet();
  let out = "";
  const fail = ({ 0: what, 1: cure }) => {
    lossy = { path: pathTo(innermost), text: what + "; " + cure };
    throw lossy;
  };
  let current = value;
  for (;;) {
    // One value: a scalar is written, a container opened.
    if (current === null) {
      out += "null";
    } else if (typeof current === "string") {
      out += JSONStringify(current);
    } else if (typeof current === "boolean") {
      out += current ? "true" : "false";
    } else if (typeof current === "number" && NumberIsFinite(current) && !ObjectIs(current, -0)) {
      out += "" + current;
    } else if (typeof current !== "object") {
      fail(oddPrimitive(current));
    } else {
      if (SetPrototypeHas(ancestors, current)) {
        fail(["is circular: it contains itself", "break the cycle, or return ids"]);
      }
      if (innermost !== null && innermost.depth >= DEPTH_MAX) {
        fail(["is nested more than " + DEPTH_MAX + " levels deep", "return something flatter"]);
      }
      innermost = openContainer(current, innermost, fail);
      SetPrototypeAdd(ancestors, current);
      out += innermost.keys === null ? "[" : "{";
    }
    // The next value: close what is at its end.
    for (;;) {
      const frame = innermost;
      if (frame === null) {
        return out;
      }
      frame.index++;
      if (frame.index >= frame.length) {
        if (frame.keys === null && frame.value.length !== frame.length) {
          frame.index = 0;
          fail(["is an array that changed while it was read", "return plain data without getters"]);
        }
        out += frame.keys === null ? "]" : "}";
        SetPrototypeDelete(ancestors, frame.value);
        innermost = frame.parent;
        continue;
      }
      const key = frame.keys === null ? frame.index : frame.keys[frame.index];
      if (!ObjectHasOwn(frame.value, key)) {
        fail(["vanished while it was read", "return plain data without getters"]);
      }
      current = frame.value[key];
      if (current === undefined && omitUndefined && frame.keys !== null) {
        continue;
      }
      if (!frame.first) {
        out += ",";
      }
      frame.first = false;
      if (frame.keys !== null) {
        out += JSONStringify(key) + ":";
      }
      break;
    }
  }
}

/** Why encoding failed, as text that begins with the path; `root` names the whole value. */
function lossyText(root, error) {
  if (error === lossy && lossy !== null) {
    return renderPath(root, lossy.path) + " " + lossy.text;
  }
  return "a getter of " + root + " threw " + describeThrown(error);
}
