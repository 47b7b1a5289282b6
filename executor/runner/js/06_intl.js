// Locale-dependent methods. v8's own are right and stay. quickjs has no locale data, and what its facade puts in their
// place makes things up: there, each method either answers what v8 answers or throws a RangeError that says so and
// what to do instead. Right are: comparison of strings in every locale (ICU4X's), numbers and dates as en-US writes
// them without options that change the form, time zones, and the case of letters outside the languages with rules of
// their own.

const {
  BigIntPrototypeToString,
  MathMax,
  MathMin,
  ReflectConstruct,
  SymbolToPrimitive,
  Object,
  StringPrototypeToUpperCase,
  TypedArrayPrototypeGetLength,
} = primordials;

/** The engine's own: parts of a moment's date and time in a zone; throws for what is no zone. Missing on v8. */
const zonedParts = globalThis.__v8xTemporalTimeZone;

function unavailable(what, instead) {
  throw new RangeError(what + " needs Intl data, which is not available on the quickjs engine: " + instead + ", or run on v8");
}

/** The canonical tags of a `locales` argument, as a list. */
function localeList(locales) {
  const tags = newList();
  if (locales === undefined) {
    return tags;
  }
  if (typeof locales === "string") {
    tags[0] = canonicalLocale(locales);
    return tags;
  }
  if (locales === null) {
    throw new TypeError("Cannot convert null to object");
  }
  const list = Object(locales);
  const length = MathMin(list.length ?? 0, 1000);
  for (let i = 0; i < length; i++) {
    if (!(i in list)) continue;
    const tag = list[i];
    if (typeof tag !== "string" && (typeof tag !== "object" || tag === null)) {
      throw new TypeError("Incorrect locale information provided");
    }
    const canonical = canonicalLocale(String(tag));
    if (!ArrayPrototypeIncludes(tags, canonical)) {
      tags[tags.length] = canonical;
    }
  }
  return tags;
}

function canonicalLocale(tag) {
  const canonical = core.ops.op_codemode_locale(tag);
  if (canonical === "") {
    throw new RangeError("Incorrect locale information provided: " + (JSONStringify(StringPrototypeSlice(tag, 0, 60))));
  }
  return canonical;
}

/** The one locale whose forms are known here; any other throws. */
function requireEnglish(tags, what, instead) {
  if (tags.length > 0 && tags[0] !== "en-US" && tags[0] !== "en") {
    unavailable(what + " with the locale " + JSONStringify(tags[0]), instead);
  }
}

/** An `options` argument as an object; undefined has none. */
function optionsObject(options) {
  if (options === undefined) {
    return { __proto__: null };
  }
  if (options === null) {
    throw new TypeError("Cannot convert undefined or null to object");
  }
  return Object(options);
}

/** A string option out of `values`; undefined is `fallback`. */
function stringOption(options, name, values, fallback) {
  const given = options[name];
  if (given === undefined) {
    return fallback;
  }
  const text = String(given);
  for (let i = 0; i < values.length; i++) {
    if (values[i] === text) return text;
  }
  throw new RangeError("Value " + StringPrototypeSlice(text, 0, 60) + " out of range for the Intl option " + name);
}

// Strings.

const SENSITIVITIES = ["base", "accent", "case", "variant"];
const CASE_FIRSTS = ["upper", "lower", "false"];
/** What a locale may ask of its collation by `-u-co-` and is there. */
const COLLATIONS = new SafeSet(["compat", "emoji", "eor", "phonebk", "pinyin", "stroke", "trad", "zhuyin"]);

function indexIn(values, value) {
  for (let i = 0; i < values.length; i++) {
    if (values[i] === value) return i + 1;
  }
  return 0;
}

/** `{ handle, resolved }` for the arguments of `Intl.Collator`. */
function makeCollator(locales, options) {
  const tags = localeList(locales);
  const given = optionsObject(options);
  const what = "Intl.Collator";
  if (stringOption(given, "usage", ["sort", "search"], "sort") === "search") {
    unavailable(what + ' with usage "search"', 'use the usage "sort" and compare with 0');
  }
  stringOption(given, "localeMatcher", ["lookup", "best fit"], "best fit");
  const collation = given.collation;
  const numeric = given.numeric;
  const caseFirst = stringOption(given, "caseFirst", CASE_FIRSTS, undefined);
  const sensitivity = stringOption(given, "sensitivity", SENSITIVITIES, undefined);
  const punctuation = given.ignorePunctuation;
  let tag = tags.length === 0 ? "en-US" : tags[0];
  const asked = RegExpPrototypeExec(/-u(?:-[a-z\d]{2}(?:-[a-z\d]{3,8})*)*?-co-([a-z\d-]+?)(?:-[a-z\d]{2}(?:-|$)|-[a-z\d]-|$)/, tag);
  const wanted = collation !== undefined ? String(collation) : asked === null ? undefined : asked[1];
  if (wanted !== undefined && wanted !== "standard" && wanted !== "default" && !SetPrototypeHas(COLLATIONS, wanted)) {
    unavailable(what + " with the collation " + JSONStringify(wanted), "leave the collation out");
  }
  if (collation !== undefined && wanted !== "default" && asked === null) {
    tag = canonicalLocale(StringPrototypeIncludes(tag, "-u-")
      ? StringPrototypeReplaceAll(tag, "-u-", "-u-co-" + wanted + "-")
      : tag + "-u-co-" + wanted);
  }
  const yesNo = (flag) => flag === undefined ? 0 : flag ? 1 : 2;
  const packed = indexIn(SENSITIVITIES, sensitivity) | (yesNo(numeric) << 3) | (indexIn(CASE_FIRSTS, caseFirst) << 5) |
    (yesNo(punctuation) << 7);
  const handle = core.ops.op_codemode_collator(tag, packed);
  if (handle < 0) {
    unavailable(what + " with the locale " + JSONStringify(tag), "compare with < and >");
  }
  return {
    handle, tags, sensitivity: sensitivity ?? "variant", numeric: numeric ? true : false,
    caseFirst: caseFirst ?? "false", punctuation: punctuation ? true : false,
  };
}

let plainCollator = -1;

/** -1, 0 or 1: how two strings stand to each other. */
function compareStrings(left, right, locales, options) {
  if (locales === undefined && options === undefined) {
    if (plainCollator < 0) plainCollator = makeCollator(undefined, undefined).handle;
    return core.ops.op_codemode_collate(plainCollator, left, right);
  }
  return core.ops.op_codemode_collate(makeCollator(locales, options).handle, left, right);
}

/** Languages whose letters change case by rules of their own. */
const OWN_CASE = new SafeSet(["az", "el", "hy", "lt", "tr"]);

function requirePlainCase(locales, what) {
  const tags = localeList(locales);
  const language = tags.length === 0 ? null : RegExpPrototypeExec(/^[a-z]+/, tags[0]);
  if (language !== null && SetPrototypeHas(OWN_CASE, language[0])) {
    unavailable(what + " with the locale " + JSONStringify(tags[0]), "use the method without a locale");
  }
}

function thisString(value, what) {
  if (value === null || value === undefined) {
    throw new TypeError(what + " called on null or undefined");
  }
  return String(value);
}

// Numbers.

/** Digits after the point, and the sign, of the currencies whose form is known here. */
const CURRENCIES = {
  __proto__: null,
  AUD: ["A$", 2], BRL: ["R$", 2], CAD: ["CA$", 2], CNY: ["CN¥", 2], EUR: ["€", 2], GBP: ["£", 2], ILS: ["₪", 2],
  INR: ["₹", 2], JPY: ["¥", 0], KRW: ["₩", 0], MXN: ["MX$", 2], NZD: ["NZ$", 2], PHP: ["₱", 2], TWD: ["NT$", 2],
  USD: ["$", 2], VND: ["₫", 0],
};
/** Options of numbers that may only have the value that they have anyway. */
const NUMBER_CONSTANTS = [
  ["numberingSystem", "latn"], ["notation", "standard"], ["signDisplay", "auto"], ["currencyDisplay", "symbol"],
  ["currencySign", "standard"], ["roundingMode", "halfExpand"], ["roundingPriority", "auto"],
  ["trailingZeroDisplay", "auto"], ["roundingIncrement", "1"], ["minimumSignificantDigits", ""],
  ["maximumSignificantDigits", ""],
];
const NUMBER_CURE = "use toFixed() and your own separators";

function digitsOption(options, name, least, most) {
  const given = options[name];
  if (given === undefined) {
    return undefined;
  }
  const digits = Number(given);
  if (!(digits >= least && digits <= most)) {
    throw new RangeError(name + " value is out of range.");
  }
  return MathFloor(digits);
}

/** What to write a number with, of the arguments of `Intl.NumberFormat`. */
function numberForm(locales, options, what) {
  requireEnglish(localeList(locales), what, NUMBER_CURE);
  const given = optionsObject(options);
  stringOption(given, "localeMatcher", ["lookup", "best fit"], "best fit");
  const style = stringOption(given, "style", ["decimal", "percent", "currency", "unit"], "decimal");
  let symbol = "";
  let fewest = 0;
  let most = style === "percent" ? 0 : 3;
  let code;
  if (style === "unit") {
    unavailable(what + ' with style "unit"', "write the unit yourself");
  }
  if (style === "currency") {
    if (given.currency === undefined) {
      throw new TypeError("Currency code is required with currency style.");
    }
    code = StringPrototypeToUpperCase(String(given.currency));
    if (RegExpPrototypeExec(/^[A-Z]{3}$/, code) === null) {
      throw new RangeError("Invalid currency code : " + StringPrototypeSlice(code, 0, 60));
    }
    const known = CURRENCIES[code];
    if (known === undefined) {
      unavailable(what + " with the currency " + JSONStringify(code), "write the currency yourself");
    }
    symbol = known[0];
    fewest = most = known[1];
  }
  for (let i = 0; i < NUMBER_CONSTANTS.length; i++) {
    const { 0: name, 1: only } = NUMBER_CONSTANTS[i];
    const value = given[name];
    if (value !== undefined && String(value) !== only) {
      unavailable(what + " with the option " + name, NUMBER_CURE);
    }
  }
  const integers = digitsOption(given, "minimumIntegerDigits", 1, 21) ?? 1;
  let least = digitsOption(given, "minimumFractionDigits", 0, 100);
  let limit = digitsOption(given, "maximumFractionDigits", 0, 100);
  if (least === undefined) {
    least = MathMin(fewest, limit ?? fewest);
    limit ??= MathMax(most, least);
  } else if (limit === undefined) {
    limit = MathMax(most, least);
  } else if (least > limit) {
    throw new RangeError("maximumFractionDigits value is out of range.");
  }
  return { style, code, symbol, integers, least, limit, grouping: groupingOption(given.useGrouping) };
}

/** Least number of digits that are grouped; 0 groups none. */
function groupingOption(value) {
  if (value === undefined || value === true) return 4;
  if (!value) return 0;
  switch (String(value)) {
    case "min2":
      return 5;
    case "auto":
    case "always":
    case "true":
    case "false":
      return 4;
    default:
      throw new RangeError("Value out of range for the Intl option useGrouping");
  }
}

/** `{ negative, digits, point }` of a finite number's shortest decimal form: 0.DIGITS times ten to the `point`. */
function decimalOf(text) {
  const negative = StringPrototypeCharCodeAt(text, 0) === 45;
  const parts = RegExpPrototypeExec(/^[-+]?(\d*)(?:\.(\d*))?(?:e([-+]\d+))?$/, text);
  const whole = parts[1];
  let digits = whole + (parts[2] ?? "");
  let point = whole.length + (parts[3] === undefined ? 0 : Number(parts[3]));
  let zeros = 0;
  while (zeros < digits.length && StringPrototypeCharCodeAt(digits, zeros) === 48) zeros++;
  digits = StringPrototypeSlice(digits, zeros);
  point -= zeros;
  return { negative, digits, point };
}

/** Keeps `count` digits, rounding halves away from zero. */
function roundDigits(decimal, count) {
  const { digits } = decimal;
  if (count >= digits.length) {
    return;
  }
  if (count < 0 || StringPrototypeCharCodeAt(digits, count) < 53) {
    decimal.digits = count <= 0 ? "" : StringPrototypeSlice(digits, 0, count);
    return;
  }
  let i = count;
  while (i > 0 && StringPrototypeCharCodeAt(digits, i - 1) === 57) i--;
  if (i === 0) {
    decimal.digits = "1";
    decimal.point++;
  } else {
    decimal.digits = StringPrototypeSlice(digits, 0, i - 1) + (Number(digits[i - 1]) + 1);
  }
}

function zeros(count) {
  let text = "";
  for (let i = 0; i < count; i++) text += "0";
  return text;
}

/** A number's text, `String(number)` or a bigint's, in the form. */
function writeNumber(text, form) {
  const decimal = decimalOf(text);
  if (form.style === "percent" && decimal.digits !== "") decimal.point += 2;
  roundDigits(decimal, decimal.point + form.limit);
  const { digits, point } = decimal;
  let whole = point <= 0 ? "" : StringPrototypeSlice(digits, 0, point);
  if (point > digits.length) whole += zeros(point - digits.length);
  let fraction = point >= digits.length ? "" : point >= 0
    ? StringPrototypeSlice(digits, point)
    : digits === "" ? "" : zeros(-point) + digits;
  let end = fraction.length;
  while (end > form.least && StringPrototypeCharCodeAt(fraction, end - 1) === 48) end--;
  fraction = StringPrototypeSlice(fraction, 0, end);
  if (fraction.length < form.least) fraction += zeros(form.least - fraction.length);
  if (whole.length < form.integers) whole = zeros(form.integers - whole.length) + whole;
  return dress(decimal.negative, group(whole, form.grouping) + (fraction === "" ? "" : "." + fraction), form);
}

function group(whole, least) {
  if (least === 0 || whole.length < least) {
    return whole;
  }
  let text = "";
  for (let i = 0; i < whole.length; i++) {
    if (i > 0 && (whole.length - i) % 3 === 0) text += ",";
    text += whole[i];
  }
  return text;
}

/** Sign, currency and percent around a number's digits. */
function dress(negative, body, form) {
  return (negative ? "-" : "") + form.symbol + body + (form.style === "percent" ? "%" : "");
}

function formatNumber(value, form) {
  if (typeof value === "bigint") {
    return writeNumber(BigIntPrototypeToString(value), form);
  }
  if (value !== value) {
    return dress(false, "NaN", form);
  }
  if (!NumberIsFinite(value)) {
    return dress(value < 0, "∞", form);
  }
  return writeNumber(ObjectIs(value, -0) ? "-0" : "" + value, form);
}

/** What `format` takes: decimal text counts to its last digit. */
function formattable(value) {
  if (typeof value === "bigint" || typeof value === "number") {
    return value;
  }
  if (typeof value === "string" && RegExpPrototypeExec(/^[-+]?\d{1,1000}(?:\.\d{1,1000})?$/, value) !== null) {
    return value;
  }
  return Number(value);
}

// Dates.

const DATE_OPTIONS = [
  "weekday", "era", "year", "month", "day", "dayPeriod", "hour", "minute", "second", "fractionalSecondDigits",
  "timeZoneName", "hourCycle", "hour12", "dateStyle", "timeStyle", "calendar", "numberingSystem", "formatMatcher",
];
const DATE_CURE = "use toISOString() and the get… methods";

/** The zone to write a date in, of the arguments of `Intl.DateTimeFormat`. */
function dateZone(locales, options, what) {
  requireEnglish(localeList(locales), what, DATE_CURE);
  const given = optionsObject(options);
  for (let i = 0; i < DATE_OPTIONS.length; i++) {
    if (given[DATE_OPTIONS[i]] !== undefined) {
      unavailable(what + " with the option " + DATE_OPTIONS[i], DATE_CURE);
    }
  }
  if (given.timeZone === undefined) {
    return "UTC";
  }
  const zone = String(given.timeZone);
  try {
    return zonedParts(0, zone).timeZone;
  } catch {
    throw new RangeError("Invalid time zone specified: " + StringPrototypeSlice(zone, 0, 60));
  }
}

const DATE_PART = 1;
const TIME_PART = 2;

/** `3/9/2025, 1:30:00 AM`, or a part of it. */
function writeDate(time, zone, parts, what) {
  const { year, month, day, hour, minute, second } = zonedParts(time, zone);
  if (year < 1) {
    unavailable(what + " before the year 1", DATE_CURE);
  }
  const date = "" + month + "/" + day + "/" + year;
  const two = (n) => n < 10 ? "0" + n : "" + n;
  const clock = "" + (hour % 12 === 0 ? 12 : hour % 12) + ":" + two(minute) + ":" + two(second) + " " + (hour < 12 ? "AM" : "PM");
  return parts === DATE_PART ? date : parts === TIME_PART ? clock : date + ", " + clock;
}

function formatDate(time, locales, options, parts, what) {
  return time !== time ? "Invalid Date" : writeDate(time, dateZone(locales, options, what), parts, what);
}

// Dates from text. quickjs reads most forms as v8 does; these it does not know, or takes for some other day.

const NativeDate = globalThis.Date;
const nativeParse = NativeDate.parse;

/** The text in a form that quickjs reads as v8 reads the text itself; "" is no date. */
function readableDate(text) {
  const day = RegExpPrototypeExec(/^\s*(\d+)([-/])(\d+)[-/](\d+)/, text);
  if (day !== null) {
    const yearFirst = day[1].length > 2;
    const month = Number(yearFirst ? day[3] : day[1]);
    const date = Number(yearFirst ? day[4] : day[3]);
    if ((yearFirst || day[2] === "/") && (month < 1 || month > 12 || date < 1 || date > 31)) {
      return "";
    }
  }
  if (RegExpPrototypeExec(/^\s*\d{4}-\d\d-\d\d[Tt][\d:]+,/, text) !== null) {
    return "";
  }
  const iso = RegExpPrototypeExec(/^\s*(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d[^Zz]*)([Zz]?)\s*$/, text);
  if (iso !== null) {
    return iso[1] + "T" + iso[2] + (iso[3] === "" ? "" : "Z");
  }
  const short = RegExpPrototypeExec(/^(.*[^:\d]\d{1,2}:\d\d)\s*[Zz]\s*$/s, text);
  return short !== null ? short[1] + ":00Z" : text;
}

function parseDate(text) {
  return ReflectApply(nativeParse, NativeDate, [readableDate(text)]);
}

/** `Date` with that parser. */
function makeDate() {
  const made = function Date(...args) {
    if (new.target === undefined) {
      return NativeDate();
    }
    if (args.length === 1) {
      const moment = momentOf(args[0]);
      return ReflectConstruct(NativeDate, [typeof moment === "string" ? parseDate(moment) : moment], new.target);
    }
    return ReflectConstruct(NativeDate, args, new.target);
  };
  const { prototype } = NativeDate;
  ObjectDefineProperty(made, "prototype", { __proto__: null, value: prototype, writable: false });
  ObjectDefineProperty(made, "length", { __proto__: null, value: 7, configurable: true });
  replaceMethods(made, {
    now: NativeDate.now,
    parse(text) {
      return parseDate(String(text));
    },
    UTC: NativeDate.UTC,
  });
  replaceMethods(prototype, { constructor: made });
  return made;
}

/** What the constructor makes of its one argument: a time, or the text of one. */
function momentOf(value) {
  if (typeof value !== "object" && typeof value !== "function" || value === null) {
    return value;
  }
  try {
    return DatePrototypeGetTime(value);
  } catch { /* no date */ }
  return toPrimitive(value);
}

/** The language's own conversion, default hint. */
function toPrimitive(value) {
  const convert = value[SymbolToPrimitive];
  if (convert !== undefined && convert !== null) {
    const primitive = ReflectApply(convert, value, ["default"]);
    if (typeof primitive !== "object" || primitive === null) return primitive;
    throw new TypeError("Cannot convert object to primitive value");
  }
  for (let i = 0; i < 2; i++) {
    const method = value[i === 0 ? "valueOf" : "toString"];
    if (typeof method === "function") {
      const primitive = ReflectApply(method, value, []);
      if (typeof primitive !== "object" && typeof primitive !== "function" || primitive === null) return primitive;
    }
  }
  throw new TypeError("Cannot convert object to primitive value");
}

// The replacements. They are written as methods, so that they take `this` and construct nothing.

const LOCALE_METHODS = {
  __proto__: null,
  string: {
    localeCompare(that, locales = undefined, options = undefined) {
      const left = thisString(this, "String.prototype.localeCompare");
      return compareStrings(left, String(that), locales, options);
    },
    toLocaleLowerCase(locales = undefined) {
      const text = thisString(this, "String.prototype.toLocaleLowerCase");
      requirePlainCase(locales, "String.prototype.toLocaleLowerCase");
      return StringPrototypeToLowerCase(text);
    },
    toLocaleUpperCase(locales = undefined) {
      const text = thisString(this, "String.prototype.toLocaleUpperCase");
      requirePlainCase(locales, "String.prototype.toLocaleUpperCase");
      return StringPrototypeToUpperCase(text);
    },
  },
  number: {
    toLocaleString(locales = undefined, options = undefined) {
      return formatNumber(NumberPrototypeValueOf(this), numberForm(locales, options, "Number.prototype.toLocaleString"));
    },
  },
  bigint: {
    toLocaleString(locales = undefined, options = undefined) {
      return formatNumber(BigIntPrototypeValueOf(this), numberForm(locales, options, "BigInt.prototype.toLocaleString"));
    },
  },
  date: {
    toLocaleString(locales = undefined, options = undefined) {
      return formatDate(
        DatePrototypeGetTime(this), locales, options, DATE_PART | TIME_PART, "Date.prototype.toLocaleString",
      );
    },
    toLocaleDateString(locales = undefined, options = undefined) {
      return formatDate(DatePrototypeGetTime(this), locales, options, DATE_PART, "Date.prototype.toLocaleDateString");
    },
    toLocaleTimeString(locales = undefined, options = undefined) {
      return formatDate(DatePrototypeGetTime(this), locales, options, TIME_PART, "Date.prototype.toLocaleTimeString");
    },
  },
  array: {
    toLocaleString(locales = undefined, options = undefined) {
      const array = Object(this);
      return joinLocal(array, array.length, locales, options);
    },
  },
  typedArray: {
    toLocaleString(locales = undefined, options = undefined) {
      return joinLocal(this, TypedArrayPrototypeGetLength(this), locales, options);
    },
  },
};

/** Arrays that are being joined: one inside itself is left out. */
const joining = new SafeSet();

function joinLocal(array, length, locales, options) {
  if (SetPrototypeHas(joining, array)) {
    return "";
  }
  SetPrototypeAdd(joining, array);
  try {
    let text = "";
    for (let i = 0; i < length; i++) {
      const element = array[i];
      if (i > 0) text += ",";
      if (element !== undefined && element !== null) text += String(element.toLocaleString(locales, options));
    }
    return text;
  } finally {
    SetPrototypeDelete(joining, array);
  }
}

/** Replaces methods of a prototype, each where it stands and as hidden as it was. */
function replaceMethods(prototype, methods) {
  const names = ReflectOwnKeys(methods);
  for (let i = 0; i < names.length; i++) {
    ObjectDefineProperty(prototype, names[i], {
      __proto__: null, value: methods[names[i]], writable: true, enumerable: false, configurable: true,
    });
  }
}

/** A constructor of `Intl` that has nothing to offer. */
function absentConstructor(name, instead) {
  const refuse = () => unavailable("Intl." + name, instead);
  const made = {
    [name]: function () {
      refuse();
    },
  }[name];
  replaceMethods(made, { supportedLocalesOf: () => refuse() });
  return made;
}

class Collator {
  #made;
  #compare;
  constructor(locales = undefined, options = undefined) {
    const made = makeCollator(locales, options);
    this.#made = made;
    this.#compare = (left, right) => core.ops.op_codemode_collate(made.handle, String(left), String(right));
  }
  get compare() {
    return this.#compare;
  }
  resolvedOptions() {
    const { tags, sensitivity, numeric, caseFirst, punctuation } = this.#made;
    requireEnglish(tags, "Intl.Collator.prototype.resolvedOptions", "remember the options yourself");
    return {
      locale: tags[0] ?? "en-US", usage: "sort", sensitivity, ignorePunctuation: punctuation, collation: "default",
      numeric, caseFirst,
    };
  }
}

class NumberFormat {
  #form;
  #format;
  constructor(locales = undefined, options = undefined) {
    const form = numberForm(locales, options, "Intl.NumberFormat");
    this.#form = form;
    this.#format = (value) => {
      const number = formattable(value);
      return typeof number === "string" ? writeNumber(number, form) : formatNumber(number, form);
    };
  }
  get format() {
    return this.#format;
  }
  formatToParts() {
    if (#form in this) unavailable("Intl.NumberFormat.prototype.formatToParts", "use format()");
  }
  resolvedOptions() {
    const { style, code, integers, least, limit, grouping } = this.#form;
    return {
      locale: "en-US", numberingSystem: "latn", style,
      ...(code === undefined ? null : { currency: code, currencyDisplay: "symbol", currencySign: "standard" }),
      minimumIntegerDigits: integers, minimumFractionDigits: least, maximumFractionDigits: limit,
      useGrouping: grouping === 0 ? false : grouping === 5 ? "min2" : "auto", notation: "standard",
      signDisplay: "auto", roundingIncrement: 1, roundingMode: "halfExpand", roundingPriority: "auto",
      trailingZeroDisplay: "auto",
    };
  }
}

class DateTimeFormat {
  #zone;
  #format;
  constructor(locales = undefined, options = undefined) {
    const zone = dateZone(locales, options, "Intl.DateTimeFormat");
    this.#zone = zone;
    this.#format = (date) => {
      const time = date === undefined ? DateNow() : Number(date);
      if (!(time >= -8.64e15 && time <= 8.64e15)) {
        throw new RangeError("Invalid time value");
      }
      return writeDate(time, zone, DATE_PART, "Intl.DateTimeFormat");
    };
  }
  get format() {
    return this.#format;
  }
  formatToParts() {
    if (#zone in this) unavailable("Intl.DateTimeFormat.prototype.formatToParts", DATE_CURE);
  }
  resolvedOptions() {
    return {
      locale: "en-US", calendar: "gregory", numberingSystem: "latn", timeZone: this.#zone, year: "numeric",
      month: "numeric", day: "numeric",
    };
  }
}

/** What `Intl` may be asked for without `new`. */
function callable(Class, name) {
  const made = {
    [name]: function (locales = undefined, options = undefined) {
      return new Class(locales, options);
    },
  }[name];
  ObjectDefineProperty(made, "prototype", { __proto__: null, value: Class.prototype, writable: false });
  replaceMethods(Class.prototype, { constructor: made });
  replaceMethods(made, {
    supportedLocalesOf: () => unavailable("Intl." + name + ".supportedLocalesOf", "try the locale"),
  });
  ObjectDefineProperty(Class.prototype, SymbolToStringTag, {
    __proto__: null, value: "Intl." + name, writable: false, enumerable: false, configurable: true,
  });
  return made;
}

function makeIntl() {
  const intl = {};
  replaceMethods(intl, {
    Collator: callable(Collator, "Collator"),
    NumberFormat: callable(NumberFormat, "NumberFormat"),
    DateTimeFormat: callable(DateTimeFormat, "DateTimeFormat"),
    DisplayNames: absentConstructor("DisplayNames", "keep a table of the names you need"),
    DurationFormat: absentConstructor("DurationFormat", "write the parts yourself"),
    ListFormat: absentConstructor("ListFormat", "use join()"),
    Locale: absentConstructor("Locale", "take the tag apart with split('-')"),
    PluralRules: absentConstructor("PluralRules", "compare the number with 1"),
    RelativeTimeFormat: absentConstructor("RelativeTimeFormat", "write the difference yourself"),
    Segmenter: absentConstructor("Segmenter", "use [...text] for code points and split() for words"),
    getCanonicalLocales(locales = undefined) {
      const tags = localeList(locales);
      return ObjectSetPrototypeOf(tags, ArrayPrototype);
    },
  });
  ObjectDefineProperty(intl, SymbolToStringTag, {
    __proto__: null, value: "Intl", writable: false, enumerable: false, configurable: true,
  });
  return intl;
}

const TEMPORAL_CLASSES = [
  "Duration", "Instant", "PlainDate", "PlainDateTime", "PlainMonthDay", "PlainTime", "PlainYearMonth", "ZonedDateTime",
];

function refuseTemporalLocales() {
  const temporal = globalThis.Temporal;
  if (temporal === undefined) {
    return;
  }
  for (let i = 0; i < TEMPORAL_CLASSES.length; i++) {
    const what = "Temporal." + TEMPORAL_CLASSES[i] + ".prototype.toLocaleString";
    replaceMethods(temporal[TEMPORAL_CLASSES[i]].prototype, {
      toLocaleString: () => unavailable(what, "use toString()"),
    });
  }
}

/**
 * The engine's Temporal looks up time zones through a global of the engine's own, which goes with all that is not on
 * the published list. It stands on the global object's prototype instead: a pure function, out of the program's way.
 */
function keepTimeZones() {
  const behind = ObjectCreate(ObjectGetPrototypeOf(globalThis));
  ObjectDefineProperty(behind, "__v8xTemporalTimeZone", {
    __proto__: null, value: opaque("timeZone", 2, zonedParts), writable: false, enumerable: false, configurable: false,
  });
  ObjectSetPrototypeOf(globalThis, behind);
}

/** Called at boot, before the program's world is closed. */
function installIntl() {
  if (ENGINE !== "quickjs") {
    return;
  }
  replaceMethods(primordials.StringPrototype, LOCALE_METHODS.string);
  replaceMethods(primordials.NumberPrototype, LOCALE_METHODS.number);
  replaceMethods(primordials.BigIntPrototype, LOCALE_METHODS.bigint);
  replaceMethods(primordials.DatePrototype, LOCALE_METHODS.date);
  replaceMethods(ArrayPrototype, LOCALE_METHODS.array);
  replaceMethods(ObjectGetPrototypeOf(primordials.Uint8ArrayPrototype), LOCALE_METHODS.typedArray);
  defineGlobal("Intl", makeIntl());
  defineGlobal("Date", makeDate());
  refuseTemporalLocales();
  keepTimeZones();
}

installIntl();
