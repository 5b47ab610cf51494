// Making elements. Every text becomes a text node: nothing that a daemon says is read as markup.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * The element with an id, which the page must have.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} id */
export const inputById = (id) => /** @type {HTMLInputElement} */ (byId(id));

/** @param {string} id */
export const buttonById = (id) => /** @type {HTMLButtonElement} */ (byId(id));

/**
 * An element: `make('span.key', {'data-path': path}, text)`. A member that is a function is a
 * listener, `true` an attribute without a value; null, undefined and false are left out.
 * @param {string} selector a tag and classes
 * @param {Record<string, unknown> | null} [members]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function make(selector, members, ...children) {
  const [tag, ...classes] = selector.split('.');
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(' ');
  for (const [name, value] of Object.entries(members ?? {})) {
    if (typeof value === 'function') {
      element.addEventListener(name, /** @type {EventListener} */ (value));
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/**
 * An element of SVG.
 * @param {string} tag
 * @param {Record<string, string | number>} [attributes]
 * @returns {SVGElement}
 */
export function draw(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    element.setAttribute(name, String(value));
  }
  return element;
}

/**
 * Sets a text only where it differs, so that a screen reader hears only changes.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
