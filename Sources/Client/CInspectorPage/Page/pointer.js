// JSON Pointers (RFC 6901): '' is the whole, '/a/b' the member b of the member a.

/**
 * @param {string} pointer
 * @returns {string} the last key, as it is written in JSON
 */
export function lastKey(pointer) {
  return unescapeKey(pointer.slice(pointer.lastIndexOf('/') + 1));
}

/** @param {string} key */
export function unescapeKey(key) {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/**
 * @param {string} pointer
 * @param {string | number} key
 */
export function below(pointer, key) {
  return `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/**
 * @param {string} pointer
 * @returns {string | null} the pointer of what contains it; null for the whole
 */
export function parentOf(pointer) {
  return pointer === '' ? null : pointer.slice(0, pointer.lastIndexOf('/'));
}

/**
 * Whether a pointer is `above`, or stands below it.
 * @param {string} pointer
 * @param {string} above
 */
export function isWithin(pointer, above) {
  return pointer === above || pointer.startsWith(`${above}/`);
}

/**
 * Whether a change at one pointer can be seen at the other.
 * @param {string} a
 * @param {string} b
 */
export function touches(a, b) {
  return isWithin(a, b) || isWithin(b, a);
}

/**
 * The pointers from the whole down to this one.
 * @param {string} pointer
 * @returns {string[]}
 */
export function wayTo(pointer) {
  const way = [''];
  for (let at = pointer.indexOf('/', 1); at > 0; at = pointer.indexOf('/', at + 1)) {
    way.push(pointer.slice(0, at));
  }
  if (pointer !== '') way.push(pointer);
  return way;
}

/**
 * What stands at a pointer in a value; undefined where there is nothing.
 * @param {unknown} value
 * @param {string} pointer
 * @returns {unknown}
 */
export function valueAt(value, pointer) {
  for (const step of pointer.split('/').slice(1)) {
    if (value === null || typeof value !== 'object') return undefined;
    const key = unescapeKey(step);
    if (!Object.hasOwn(value, key)) return undefined;
    value = /** @type {Record<string, unknown>} */ (value)[key];
  }
  return value;
}
