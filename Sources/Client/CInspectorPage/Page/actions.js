// The actions as they come: the newest thousand, of which only the rows in view are elements.
//
// The list follows the newest until somebody scrolls up, or has the focus in it. From then on it
// stands still: it shows what it showed, and counts what comes.

import { changeLine } from './changes.js';
import { buttonById, byId, inputById, make, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';
import { touches } from './pointer.js';

/** @typedef {import('./nodes.js').Record_} Record_ */
/** @typedef {{record: Record_, depth: number, words: string}} Item */
/** @typedef {{missed: number, before: number}} Gap */

const MOST = 1000;
const HEIGHT = 42;
const BEYOND = 4;
const DEEPEST = 6;

export class Actions {
  /**
   * @param {(record: Record_ | null) => void} selected
   * @param {() => string} place the selected path
   */
  constructor(selected, place) {
    this.selected = selected;
    this.place = place;
    /** @type {(Item | Gap)[]} */
    this.items = [];
    /** @type {Map<number, Item>} */
    this.bySequence = new Map();
    this.total = 0;
    /** @type {(Item | Gap)[] | null} what is shown while the list stands still */
    this.still = null;
    this.totalWhenStill = 0;
    /** @type {(Item | Gap)[]} */
    this.shown = [];
    /** @type {number | null} */
    this.active = null;
    this.wasAtEnd = true;
    /** @type {string | null} */
    this.refusal = null;
    this.element = byId('actions');
    this.body = make('div.rows', { role: 'presentation' });
    this.element.append(this.body);
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    this.drawing = new Drawing(() => this.draw(), 250);
    this.filter = inputById('filter');
    this.rejectedOnly = inputById('filter-rejected');
    this.placeOnly = inputById('filter-path');
    this.follow = buttonById('follow');
    this.listen();
  }

  listen() {
    for (const input of [this.filter, this.rejectedOnly, this.placeOnly]) {
      input.addEventListener('input', () => this.filterChanged());
    }
    this.follow.addEventListener('click', () => this.go());
    this.element.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.element.addEventListener('focusin', () => this.stand());
    this.element.addEventListener('focusout', () => {
      if (this.isAtEnd) this.go();
    });
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('click', (event) => this.click(event));
    new ResizeObserver(() => {
      if (this.wasAtEnd) this.element.scrollTop = this.element.scrollHeight;
      this.drawing.next();
    }).observe(this.element);
  }

  // What comes

  /**
   * Begins anew, with what the daemon remembers.
   * @param {Record_[]} records
   */
  reset(records) {
    this.items = [];
    this.bySequence.clear();
    this.still = null;
    this.refusal = null;
    this.total = records.at(-1)?.sequence ?? 0;
    this.add(records);
    this.drawing.next();
  }

  /** @param {string} message why the actions may not be seen */
  refuse(message) {
    this.items = [];
    this.bySequence.clear();
    this.refusal = message;
    this.drawing.next();
  }

  /**
   * Takes in a push `log`.
   * @param {{records: Record_[], missed: number, total: number}} push
   */
  take(push) {
    this.refusal = null;
    const first = push.records[0]?.sequence ?? push.total;
    if (push.missed > 0) this.items.push({ missed: push.missed, before: first });
    this.add(push.records);
    this.total = Math.max(this.total, push.total);
    this.drawing.soon();
  }

  /** @param {Record_[]} records */
  add(records) {
    for (const record of records) {
      if (this.bySequence.has(record.sequence)) continue;
      const parent = record.parent === undefined ? undefined : this.bySequence.get(record.parent);
      const depth = record.parent === undefined ? 0 : Math.min((parent?.depth ?? 0) + 1, DEEPEST);
      const { action, origin, outcome } = record;
      const label = record.label ?? '';
      const words = `#${record.sequence} ${action} ${label} ${origin} ${outcome}`.toLowerCase();
      const item = { record, depth, words };
      this.items.push(item);
      this.bySequence.set(record.sequence, item);
    }
    const left = this.items.length - MOST;
    if (left <= 0) return;
    for (const item of this.items.splice(0, left)) {
      if ('record' in item) this.bySequence.delete(item.record.sequence);
    }
  }

  /**
   * What has followed from an action: how many actions, and how many seconds until the last of them.
   * @param {Record_} first
   */
  followed(first) {
    const chain = new Set([first.sequence]);
    let last = first;
    // A consequence comes behind its cause.
    for (const { record } of this.bySequence.values()) {
      if (record.parent === undefined || !chain.has(record.parent)) continue;
      chain.add(record.sequence);
      last = record;
    }
    return { count: chain.size - 1, seconds: format.between(first.time, last.time) };
  }

  // What is shown

  get isFiltered() {
    return this.filter.value.trim() !== '' || this.rejectedOnly.checked || this.placeOnly.checked;
  }

  /** @param {(Item | Gap)[]} items */
  filtered(items) {
    if (!this.isFiltered) return items;
    const words = this.filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const place = this.placeOnly.checked ? this.place() : null;
    return items.filter((item) => {
      if (!('record' in item)) return false;
      if (this.rejectedOnly.checked && !item.record.outcome.startsWith('rejected')) return false;
      if (place !== null && !touchesPlace(item.record, place)) return false;
      return words.every((word) => item.words.includes(word));
    });
  }

  filterChanged() {
    if (this.still) {
      this.still = [...this.items];
      this.totalWhenStill = this.total;
    }
    this.drawing.next();
  }

  /** The selected path is another. */
  placeChanged() {
    if (this.placeOnly.checked) this.filterChanged();
  }

  get isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 4;
  }

  scrolled() {
    this.wasAtEnd = this.isAtEnd;
    if (!this.still && !this.isAtEnd) this.stand();
    else if (this.still && this.isAtEnd && !this.element.contains(document.activeElement)) {
      this.go();
    }
    this.drawing.next();
  }

  /** Stands still. */
  stand() {
    if (this.still) return;
    this.still = [...this.items];
    this.totalWhenStill = this.total;
    this.drawing.next();
  }

  /** Follows the newest again. */
  go() {
    if (this.element.contains(document.activeElement)) {
      /** @type {HTMLElement} */ (document.activeElement).blur();
    }
    this.still = null;
    this.drawing.next();
  }

  draw() {
    const isStill = this.still !== null;
    this.shown = this.filtered(this.still ?? this.items);
    this.body.style.height = `${this.shown.length * HEIGHT}px`;
    if (!isStill) this.element.scrollTop = this.element.scrollHeight;
    this.wasAtEnd = this.isAtEnd;
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - BEYOND);
    const end = Math.min(
      this.shown.length,
      Math.ceil((scrollTop + clientHeight) / HEIGHT) + BEYOND,
    );
    /** @type {Map<string, number>} */
    const wanted = new Map();
    for (let at = first; at < end; at += 1) wanted.set(idOf(this.shown[at]), at);
    for (const [id, element] of this.elements) {
      if (wanted.has(id)) continue;
      element.remove();
      this.elements.delete(id);
    }
    let cursor = this.body.firstElementChild;
    for (const [id, at] of wanted) {
      let element = this.elements.get(id);
      if (!element) {
        element = this.row(this.shown[at], id);
        this.elements.set(id, element);
      }
      if (element === cursor) cursor = cursor.nextElementSibling;
      else this.body.insertBefore(element, cursor);
      element.style.top = `${at * HEIGHT}px`;
      element.setAttribute('aria-posinset', String(at + 1));
      element.setAttribute('aria-setsize', String(this.shown.length));
      element.setAttribute('aria-selected', String(id === `action-${this.active}`));
    }
    const active = this.active === null ? null : `action-${this.active}`;
    if (active && this.elements.has(active)) {
      this.element.setAttribute('aria-activedescendant', active);
    } else this.element.removeAttribute('aria-activedescendant');
    this.drawAround(isStill);
  }

  /** @param {boolean} isStill */
  drawAround(isStill) {
    const fresh = this.total - this.totalWhenStill;
    this.follow.hidden = !isStill;
    this.element.dataset.follows = String(!isStill);
    say(this.follow, fresh > 0 ? `Follow: ${format.count(fresh)} new ↓` : 'Follow ↓');
    const empty = byId('actions-empty');
    empty.hidden = this.shown.length > 0;
    empty.classList.toggle('refused', this.refusal !== null);
    say(
      empty,
      this.refusal ??
        (this.items.length > 0
          ? 'No action that is kept here matches the filter.'
          : 'No action yet.'),
    );
    const records = this.isFiltered
      ? `${format.count(this.shown.length)} of ${format.count(this.bySequence.size)} match`
      : `the newest ${format.count(this.bySequence.size)}`;
    say(
      byId('actions-counts'),
      this.refusal
        ? ''
        : `${records}, of ${format.count(this.total)} in all${isStill ? ' · standing still' : ''}`,
    );
  }

  /**
   * @param {Item | Gap} item
   * @param {string} id
   */
  row(item, id) {
    if (!('record' in item)) {
      return make('div.gap', {
        id,
        role: 'option',
        'aria-disabled': 'true',
        'data-missed': item.missed,
      }, `${format.count(item.missed)} were left out`);
    }
    const { record, depth } = item;
    const outcome = outcomeOf(record);
    const row = make(`div.act.${outcome.name}`, {
      id,
      role: 'option',
      'data-sequence': record.sequence,
      'data-outcome': outcome.name,
      'data-depth': depth,
    });
    const first = make(
      'div.line',
      null,
      make('span.sequence', null, `#${record.sequence}`),
      make(
        `span.outcome.${outcome.name}`,
        { title: record.outcome },
        `${outcome.sign} ${outcome.name}`,
      ),
      make('b.name', null, record.action),
      make('code.payload', null, payloadText(record)),
      make('time', { datetime: record.time }, format.time(record.time)),
    );
    const second = make('div.line');
    if (record.parent !== undefined) {
      const parent = this.bySequence.get(record.parent)?.record;
      const after = parent
        ? ` after ${format.milliseconds(format.between(parent.time, record.time))}`
        : '';
      second.append(
        make('button.cause', {
          type: 'button',
          tabindex: -1,
          'data-parent': record.parent,
          title: 'The action that led to this one',
        }, `↳ #${record.parent}${after}`),
      );
    }
    if (outcome.name === 'rejected') {
      second.append(make('span.reason', null, record.outcome.replace(/^rejected: /, '')));
    } else if (record.changes?.length) {
      const line = changeLine(record.changes[0], 60);
      if (record.changes.length > 1) {
        line.append(make('span.hint', null, ` and ${record.changes.length - 1} more`));
      }
      second.append(line);
    }
    second.append(make('span.who', { title: record.origin }, record.label || record.origin));
    row.append(first, second);
    row.style.paddingLeft = `${8 + depth * 14}px`;
    return row;
  }

  // Moving

  /**
   * Selects an action, whether or not it is in the list.
   * @param {number} sequence
   */
  select(sequence) {
    this.stand();
    this.active = sequence;
    const at = this.shown.findIndex((item) =>
      'record' in item && item.record.sequence === sequence
    );
    if (at >= 0) {
      const { scrollTop, clientHeight } = this.element;
      if (at * HEIGHT < scrollTop) this.element.scrollTop = at * HEIGHT;
      if ((at + 1) * HEIGHT > scrollTop + clientHeight) {
        this.element.scrollTop = (at + 1) * HEIGHT - clientHeight;
      }
    }
    this.drawing.next();
    const item = at >= 0 ? this.shown[at] : this.bySequence.get(sequence);
    this.selected(item && 'record' in item ? item.record : null);
  }

  /** @param {MouseEvent} event */
  click(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const parent = target.closest('[data-parent]')?.getAttribute('data-parent');
    const sequence = target.closest('[data-sequence]')?.getAttribute('data-sequence');
    if (parent) this.select(Number(parent));
    else if (sequence) this.select(Number(sequence));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.shown.length - 1;
    const at = this.shown.findIndex((item) =>
      'record' in item && item.record.sequence === this.active
    );
    const page = Math.max(1, Math.floor(this.element.clientHeight / HEIGHT) - 1);
    /** @type {number} */
    let to;
    let step = 1;
    switch (event.key) {
      case 'ArrowDown':
        to = at < 0 ? last : at + 1;
        break;
      case 'ArrowUp':
        to = at < 0 ? last : at - 1;
        step = -1;
        break;
      case 'PageDown':
        to = at + page;
        break;
      case 'PageUp':
        to = at - page;
        step = -1;
        break;
      case 'Home':
        to = 0;
        break;
      case 'End':
        to = last;
        step = -1;
        break;
      case 'Escape':
        this.go();
        return;
      case 'ArrowLeft': {
        const item = this.shown[at];
        if (item && 'record' in item && item.record.parent !== undefined) {
          this.select(item.record.parent);
        }
        event.preventDefault();
        return;
      }
      default:
        return;
    }
    event.preventDefault();
    to = Math.min(Math.max(to, 0), last);
    while (this.shown[to] && !('record' in this.shown[to])) to += step;
    const item = this.shown[to];
    if (item && 'record' in item) this.select(item.record.sequence);
  }
}

/** @param {Item | Gap} item */
function idOf(item) {
  return 'record' in item ? `action-${item.record.sequence}` : `gap-${item.before}`;
}

/**
 * The outcome as one word and a sign.
 * @param {Record_} record
 */
export function outcomeOf(record) {
  const name = record.outcome.startsWith('rejected') ? 'rejected' : record.outcome;
  return {
    name,
    sign: { changed: '✓', rejected: '✗', unchanged: '=', swallowed: '∅' }[name] ?? '·',
  };
}

/**
 * What the action carries, without its name, which stands beside it.
 * @param {Record_} record
 */
export function payloadText(record) {
  const { payload } = record;
  if (payload === undefined || typeof payload === 'string') return '';
  /** @type {unknown} */
  let carried = payload;
  for (const name of record.action.split('.')) {
    if (typeof carried !== 'object' || carried === null || !Object.hasOwn(carried, name)) break;
    carried = /** @type {Record<string, unknown>} */ (carried)[name];
  }
  return format.brief(carried, 120);
}

/**
 * @param {Record_} record
 * @param {string} place
 */
function touchesPlace(record, place) {
  if (record.changes?.some((change) => touches(change.path, place))) return true;
  const carried = /** @type {any} */ (record.payload)?.[record.action]?.path;
  return typeof carried === 'string' && touches(carried, place);
}
