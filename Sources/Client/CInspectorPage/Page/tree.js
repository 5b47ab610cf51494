// The tree as rows on the screen: only those in view are elements, however many are unfolded.

import { byId, make } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {import('./nodes.js').Place} Place */
/** @typedef {import('./nodes.js').State} State */
/** @typedef {{id: string, place: Place, is: 'place' | 'more' | 'note', text?: string, level: number, at: number, size: number}} Line */

const HEIGHT = 24;
const BEYOND = 10;
const FLASH = 1200;
const CONTAINERS = new Set(['object', 'map', 'struct', 'array']);

export class Tree {
  /**
   * @param {State} state
   * @param {(path: string) => void} selected
   */
  constructor(state, selected) {
    this.state = state;
    this.selected = selected;
    this.element = byId('tree');
    this.body = make('div.rows', { role: 'presentation' });
    this.element.append(this.body);
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    /** The id of the line that has the focus, or would get it. */
    this.active = '';
    /** The path that is selected: the active line's, also while it is out of the tree. */
    this.path = '';
    this.drawing = new Drawing(() => this.draw(), 50);
    this.isSeen = (/** @type {string[]} */ _paths) => {};
    this.reducesMotion = matchMedia('(prefers-reduced-motion: reduce)');
    this.element.addEventListener('scroll', () => this.drawing.next(), { passive: true });
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('click', (event) => this.click(event));
    this.element.addEventListener('dblclick', (event) => this.click(event));
    new ResizeObserver(() => this.drawing.next()).observe(this.element);
  }

  // Lines

  /** @returns {Line[]} */
  list() {
    /** @type {Line[]} */
    const lines = [];
    const { roots } = this.state.moment;
    roots.forEach((root, at) => this.listPlace(root, at + 1, roots.length, lines));
    return lines;
  }

  /**
   * @param {Place} place
   * @param {number} at
   * @param {number} size
   * @param {Line[]} lines
   */
  listPlace(place, at, size, lines) {
    lines.push({ id: place.path, place, is: 'place', level: place.level, at, size });
    if (!this.state.unfolded.has(place.path)) return;
    const level = place.level + 1;
    if (place.partsError) {
      lines.push({
        id: `${place.path}\0note`,
        place,
        is: 'note',
        text: place.partsError,
        level,
        at: 1,
        size: 1,
      });
    }
    if (!place.canUnfold && !place.parts?.length) return;
    const { parts } = place;
    if (!parts) {
      if (place.isLoading) {
        lines.push({
          id: `${place.path}\0note`,
          place,
          is: 'note',
          text: 'loading …',
          level,
          at: 1,
          size: 1,
        });
      }
      return;
    }
    const all = Math.max(place.count ?? 0, parts.length);
    parts.forEach((part, index) => this.listPlace(part, index + 1, all, lines));
    if (place.hasMore) {
      const text = place.isLoading
        ? 'loading …'
        : `more: ${format.count(parts.length)} of ${format.count(all)} are shown`;
      lines.push({
        id: `${place.path}\0more`,
        place,
        is: 'more',
        text,
        level,
        at: parts.length + 1,
        size: all,
      });
    }
  }

  // Drawing

  draw() {
    this.lines = this.list();
    this.keepActive();
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - BEYOND);
    const end = Math.min(
      this.lines.length,
      Math.ceil((scrollTop + clientHeight) / HEIGHT) + BEYOND,
    );
    this.body.style.height = `${this.lines.length * HEIGHT}px`;
    /** @type {Map<string, number>} */
    const shown = new Map();
    const active = this.lines.findIndex((line) => line.id === this.active);
    if (active >= 0 && active < first) shown.set(this.active, active);
    for (let at = first; at < end; at += 1) shown.set(this.lines[at].id, at);
    if (active >= end) shown.set(this.active, active);
    for (const [id, element] of this.elements) {
      if (shown.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    let cursor = this.body.firstElementChild;
    let isFlashing = false;
    const now = performance.now();
    for (const [id, at] of shown) {
      let element = this.elements.get(id);
      if (!element) {
        element = make('div.row', { role: 'treeitem' });
        this.elements.set(id, element);
      }
      if (element === cursor) cursor = cursor.nextElementSibling;
      else this.body.insertBefore(element, cursor);
      const line = this.lines[at];
      this.fill(element, line, now);
      element.style.top = `${at * HEIGHT}px`;
      if (now - line.place.flashedAt < FLASH) isFlashing = true;
    }
    if (isFlashing) this.drawing.soon();
    this.see(Math.floor(scrollTop / HEIGHT), Math.ceil((scrollTop + clientHeight) / HEIGHT));
  }

  /**
   * @param {HTMLElement} element
   * @param {Line} line
   * @param {number} now
   */
  fill(element, line, now) {
    const { place } = line;
    const isActive = line.id === this.active;
    element.tabIndex = isActive ? 0 : -1;
    set(element, 'aria-level', String(line.level));
    set(element, 'aria-selected', String(line.is === 'place' && place.path === this.path));
    set(element, 'aria-posinset', String(line.at));
    set(element, 'aria-setsize', String(line.size));
    if (line.is !== 'place') {
      element.className = `row ${line.is}`;
      set(element, line.is === 'more' ? 'data-more' : 'data-note', place.path);
      element.style.paddingLeft = `${indent(line.level)}px`;
      if (element.textContent !== line.text) element.textContent = line.text ?? '';
      return;
    }
    const canUnfold = place.canUnfold;
    const isUnfolded = canUnfold && this.state.unfolded.has(place.path);
    set(element, 'aria-expanded', canUnfold ? String(isUnfolded) : null);
    set(element, 'data-path', place.path);
    set(element, 'data-kind', place.kind);
    set(element, 'data-parts', place.parts ? String(place.parts.length) : null);
    const [text, form] = valueText(place, isUnfolded);
    const bytes = place.bytes === null ? '' : format.count(place.bytes);
    const changed = place.changed === null ? '' : format.count(place.changed);
    const isFlashing = now - place.flashedAt < FLASH && !this.reducesMotion.matches;
    const look = `row${isFlashing ? ` flash ${place.flashes % 2 ? 'odd' : 'even'}` : ''}`;
    if (element.className !== look) element.className = look;
    set(element, 'data-flashes', String(place.flashes));
    const shown = [place.key, text, form, bytes, changed, canUnfold, isUnfolded];
    const print = shown.join('\u0000');
    if (element.dataset.print === print) return;
    element.dataset.print = print;
    const size = bytes && `, ${bytes} bytes`;
    const since = changed && `, changed at revision ${changed}`;
    set(element, 'aria-label', `${place.key}: ${text}${size}${since}`);
    const key = make(
      'span.key',
      { title: place.path || 'the whole state' },
      make('span.fold', { 'aria-hidden': 'true' }, canUnfold ? (isUnfolded ? '▾' : '▸') : ''),
      place.key,
    );
    key.style.paddingLeft = `${indent(line.level)}px`;
    element.replaceChildren(
      key,
      make(`span.value.${form}`, { title: text }, text),
      make('span.bytes', null, bytes),
      make('span.changed', null, changed),
    );
  }

  /**
   * Tells which places with values are in view, so that their changes come.
   * @param {number} first
   * @param {number} end
   */
  see(first, end) {
    /** @type {Set<string>} */
    const paths = new Set();
    if (!this.state.past) {
      for (const line of this.lines.slice(first, end)) {
        let { place } = line;
        while (place.source === 'value' && place.parent) place = place.parent;
        if (
          line.is === 'place' && place.source === 'parts' && !place.hasParts && paths.size < 400
        ) paths.add(place.path);
      }
    } else {
      this.askPast(first, end);
    }
    this.isSeen([...paths]);
  }

  /**
   * Asks for the past values that are in view and not known, a few at a time.
   * @param {number} first
   * @param {number} end
   */
  askPast(first, end) {
    let asked = 0;
    for (const line of this.lines.slice(first, end)) {
      const { place } = line;
      if (
        line.is !== 'place' || place.source !== 'past' || place.isKnown || place.isLoading ||
        place.error || place.hasParts
      ) continue;
      if (asked++ < 12) void this.state.loadPast(place);
    }
  }

  // Moving

  /** The active line is always one that is there. */
  keepActive() {
    if (this.lines.some((line) => line.id === this.active)) return;
    const had = document.activeElement?.closest('#tree') !== null &&
      document.activeElement !== null;
    this.active = this.state.nearest(this.active.split('\0')[0])?.path ?? '';
    if (had) requestAnimationFrame(() => this.elements.get(this.active)?.focus());
  }

  /**
   * @param {string} id
   * @param {boolean} [takesFocus]
   */
  go(id, takesFocus = true) {
    this.lines = this.list();
    const at = this.lines.findIndex((line) => line.id === id);
    if (at < 0) return;
    this.active = id;
    const line = this.lines[at];
    if (line.is === 'place' && line.place.path !== this.path) {
      this.path = line.place.path;
      this.selected(this.path);
    }
    const top = at * HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    this.body.style.height = `${this.lines.length * HEIGHT}px`;
    if (top < scrollTop) this.element.scrollTop = top;
    if (top + HEIGHT > scrollTop + clientHeight) {
      this.element.scrollTop = top + HEIGHT - clientHeight;
    }
    this.draw();
    if (takesFocus) this.elements.get(id)?.focus({ preventScroll: true });
  }

  /** @param {Place} place */
  toggle(place) {
    if (this.state.unfolded.has(place.path)) this.state.fold(place);
    else if (place.canUnfold || place.partsError) this.state.unfold(place);
    this.drawing.next();
  }

  /**
   * Loads the next page, and goes to its first row.
   * @param {Place} place
   */
  async more(place) {
    const had = place.parts?.length ?? 0;
    await this.state.load(place);
    const first = place.parts?.[had];
    if (first) this.go(first.path);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const element = /** @type {HTMLElement | null} */ (target.closest('[role=treeitem]'));
    const line = this.lines.find((one) => this.elements.get(one.id) === element);
    if (!line) return;
    if (event.type === 'dblclick') {
      if (!target.classList.contains('fold') && line.is === 'place') this.toggle(line.place);
      return;
    }
    if (line.is === 'more') {
      void this.more(line.place);
      return;
    }
    if (target.classList.contains('fold')) this.toggle(line.place);
    this.go(line.id);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.lines = this.list();
    const at = Math.max(0, this.lines.findIndex((line) => line.id === this.active));
    const line = this.lines[at];
    if (!line) return;
    const last = this.lines.length - 1;
    const page = Math.max(1, Math.floor(this.element.clientHeight / HEIGHT) - 1);
    const isUnfolded = line.is === 'place' && line.place.canUnfold &&
      this.state.unfolded.has(line.place.path);
    /** @type {number | null} */
    let to = null;
    switch (event.key) {
      case 'ArrowDown':
        to = at + 1;
        break;
      case 'ArrowUp':
        to = at - 1;
        break;
      case 'PageDown':
        to = at + page;
        break;
      case 'PageUp':
        to = at - page;
        break;
      case 'Home':
        to = 0;
        break;
      case 'End':
        to = last;
        break;
      case 'ArrowRight':
        if (isUnfolded) to = at + 1;
        else if (line.is === 'place') this.toggle(line.place);
        break;
      case 'ArrowLeft':
        if (isUnfolded) this.toggle(line.place);
        else {to = this.lines.findIndex((one) =>
            one.is === 'place' &&
            one.place === (line.is === 'place' ? line.place.parent : line.place)
          );}
        if (to === -1) to = at;
        break;
      case 'Enter':
      case ' ':
        if (line.is === 'more') void this.more(line.place);
        else if (line.is === 'place') this.toggle(line.place);
        break;
      default:
        return;
    }
    event.preventDefault();
    if (to !== null) this.go(this.lines[Math.min(Math.max(to, 0), last)].id);
  }
}

/** @param {number} level */
const indent = (level) => 6 + (level - 1) * 16;

/**
 * @param {Element} element
 * @param {string} name
 * @param {string | null} value
 */
function set(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * @param {Place} place
 * @param {boolean} isUnfolded
 * @returns {[string, string]} the text, and its class
 */
function valueText(place, isUnfolded) {
  if (place.error) {
    return place.kind === 'array'
      ? [`array · ${format.count(place.count)} ${place.error}`, 'container']
      : [place.error, 'refused'];
  }
  const isContainer = place.kind === 'case' ? isUnfolded : CONTAINERS.has(place.kind);
  if (isContainer) {
    const of = `${place.kind}${place.count === null ? '' : ` · ${format.count(place.count)}`}`;
    if (place.kind === 'array' && place.isKnown && !isUnfolded) {
      return [`${of} ${format.brief(place.value, 120)}`, 'container'];
    }
    return [of, 'container'];
  }
  if (!place.isKnown) return ['…', 'unknown'];
  if (place.value === undefined) return ['nothing here', 'unknown'];
  return [format.brief(place.value, 300), place.kind];
}
