// How numbers, times and values look.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? '–' : whole.format(value);
}

/**
 * A number of something a second.
 * @param {number | null | undefined} value
 */
export function rate(value) {
  if (value === null || value === undefined) return '–';
  return value < 10 ? tenths.format(value) : whole.format(value);
}

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return '–';
  if (value < 1000) return `${whole.format(value)} B`;
  for (
    const [unit, size]
      of /** @type {[string, number][]} */ ([['kB', 1e3], ['MB', 1e6], ['GB', 1e9]])
  ) {
    if (value < size * 1000 || unit === 'GB') return `${tenths.format(value / size)} ${unit}`;
  }
  return '';
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '–';
  if (seconds < 1e-3) return `${whole.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${tenths.format(seconds * 1e3)} ms`;
  if (seconds < 90) return `${tenths.format(seconds)} s`;
  if (seconds < 5400) return `${whole.format(seconds / 60)} min`;
  return `${tenths.format(seconds / 3600)} h`;
}

/**
 * How long it was from one ISO 8601 time to another, in seconds; nothing is before what led to it.
 * @param {string} from
 * @param {string} to
 */
export function between(from, to) {
  return Math.max(0, (new Date(to).getTime() - new Date(from).getTime()) / 1000);
}

/**
 * A duration between two times that are known to a millisecond.
 * @param {number} seconds
 */
export function milliseconds(seconds) {
  return seconds < 1e-3 ? '< 1 ms' : duration(seconds);
}

/**
 * The time of day of an ISO 8601 time, as the clock on the wall shows it, with milliseconds.
 * @param {string | undefined} iso
 */
export function time(iso) {
  if (!iso) return '';
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  const thousandths = String(at.getMilliseconds()).padStart(3, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${thousandths}`;
}

/**
 * A value on one line, cut where it is long.
 * @param {unknown} value
 * @param {number} [most] characters
 */
export function brief(value, most = 160) {
  const text = written(value, most);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * The beginning of a value's JSON, at least as many characters as there is room for: what is large
 * is not written to its end only to be cut.
 * @param {unknown} value
 * @param {number} room
 * @returns {string}
 */
function written(value, room) {
  if (value === undefined) return '';
  if (typeof value === 'string') {
    return JSON.stringify(value.length > room ? value.slice(0, room + 1) : value);
  }
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  let text = open;
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    if (text.length > room) return text;
    if (text !== open) text += ', ';
    if (open === '{') text += `${JSON.stringify(key)}: `;
    text += written(/** @type {Record<string, unknown>} */ (value)[key], room - text.length);
  }
  return text + close;
}

/**
 * The kind of a JSON value, in the words of the protocol.
 * @param {unknown} value
 */
export function kindOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    default:
      break;
  }
  const keys = Object.keys(/** @type {object} */ (value));
  if (keys.length === 1 && keys[0] === '$bytes') return 'bytes';
  if (keys.length === 1 && keys[0] === '$double') return 'number';
  return 'object';
}
