// Formats of numbers, shares, durations and sizes.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Format a count: 1,000. */
export function count(n) {
  return WHOLE.format(n);
}

/** Format a count with its noun: 1 record, 1,000 records. */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Format a share in percent with three digits: 18.2%, 0.042%; 100% and 0% only if they are exact. */
export function share(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  const percent = 100 * x;
  const shown = digits(percent, 3);
  if (shown === "100" && percent < 100) return "above 99.9%";
  return `${shown}%`;
}

/** Format a number with this many significant digits, without trailing zeros. */
export function digits(x, most = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (Number.isInteger(x)) return count(x);
  if (Math.abs(x) >= 10 ** most) return count(Math.round(x));
  return new Intl.NumberFormat("en", { maximumSignificantDigits: most }).format(x);
}

/** Format a duration: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 9.95) return `${digits(Math.max(seconds, 0), 2)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return joined(Math.floor(whole / 60), "min", whole % 60, "s");
  return joined(Math.floor(whole / 3600), "h", Math.round((whole % 3600) / 60), "min");
}

function joined(large, one, small, other) {
  return small ? `${large} ${one} ${small} ${other}` : `${large} ${one}`;
}

/** Format a size: 12 KB, 3.4 MB. */
export function bytes(n) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let left = n;
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${digits(left, 3)} ${units[unit]}`;
}

/** Write a number with four digits; a text stays as it is. */
export function shortNumber(x) {
  if (typeof x !== "number") return x;
  return new Intl.NumberFormat("en", {
    maximumSignificantDigits: 4,
    notation: Math.abs(x) >= 100000 ? "compact" : "standard",
    useGrouping: Math.abs(x) >= 10000,
  }).format(x);
}
