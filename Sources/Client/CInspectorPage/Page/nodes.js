// The tree of the state, as far as it was unfolded: what is known of each place, and where its
// children come from. Nothing here draws.
//
// There are three sources. `parts`: a place of the present, whose children the program lists, a
// page at a time. `value`: a place in a JSON value that is here already, as in an array. `past`: a
// place at a past revision whose value is asked for when it is unfolded, or seen. Which places are
// unfolded is a set of pointers that outlives the nodes: it holds for the past and the present, and
// when all nodes are made anew after an interruption.

import { below, isWithin, lastKey, parentOf, wayTo } from './pointer.js';
import { kindOf } from './format.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./connection.js').Refusal} Refusal */
/** @typedef {{path: string, kind: string, count: number | null, bytes: number | null, changed: number | null}} Row */
/** @typedef {{path: string, from?: unknown, to?: unknown}} Change */
/** @typedef {{sequence: number, parent?: number, origin: string, pid?: number, uid?: number, label?: string, action: string, payload?: unknown, outcome: string, revision: number, time: string, changes: Change[] | null}} Record_ */

export const PAGE = 200;
const MOST = 1000;
/** The kinds that a value of JSON tells. */
const PLAIN = new Set(['array', 'string', 'number', 'boolean', 'null']);
const HAVE_PARTS = new Set(['object', 'map', 'struct']);

export class Place {
  /**
   * @param {string} path
   * @param {Place | null} parent
   * @param {'parts' | 'value' | 'past'} source
   */
  constructor(path, parent, source) {
    this.path = path;
    this.parent = parent;
    this.source = source;
    /** @type {number} */
    this.level = parent ? parent.level + 1 : 1;
    this.key = parent ? lastKey(path) : path || 'whole';
    this.kind = 'object';
    /** @type {number | null} */
    this.count = null;
    /** @type {number | null} */
    this.bytes = null;
    /** @type {number | null} */
    this.changed = null;
    /** @type {unknown} undefined: not known, or nothing there */
    this.value = undefined;
    this.isKnown = false;
    /** @type {string | null} why its value cannot be read */
    this.error = null;
    /** @type {string | null} why its children cannot be listed */
    this.partsError = null;
    /** @type {Place[] | null} */
    this.parts = null;
    this.hasMore = false;
    this.isLoading = false;
    this.shown = PAGE;
    this.flashes = 0;
    this.flashedAt = -Infinity;
  }

  get hasParts() {
    return HAVE_PARTS.has(this.kind);
  }

  get canUnfold() {
    if (this.source === 'parts' && this.hasParts) return this.count !== 0;
    if (this.isKnown) {
      return typeof this.value === 'object' && this.value !== null &&
        childKeys(this.value).length > 0;
    }
    if (this.source === 'past') return (this.hasParts || this.kind === 'array') && this.count !== 0;
    return (this.kind === 'array' || this.kind === 'case') && (this.count ?? 0) > 0;
  }

  /** @param {Row} row */
  describe(row) {
    if (this.kind !== row.kind) {
      this.value = undefined;
      this.isKnown = false;
    }
    this.kind = row.kind;
    this.count = row.count;
    this.bytes = row.bytes;
    this.changed = Math.max(row.changed ?? -1, this.changed ?? -1);
    if (this.changed < 0) this.changed = null;
  }

  /** @param {unknown} value */
  setValue(value) {
    this.value = value;
    this.isKnown = true;
    this.error = null;
    if (this.source === 'parts') return;
    this.kind = value === undefined ? 'nothing' : kindOf(value);
    this.count = typeof value === 'object' && value !== null ? Object.keys(value).length : null;
    if (this.kind === 'bytes' || this.kind === 'number') this.count = null;
  }

  flash() {
    this.flashes += 1;
    this.flashedAt = performance.now();
  }
}

/**
 * @param {unknown} value
 * @returns {(string | number)[]}
 */
function childKeys(value) {
  if (Array.isArray(value)) return [...value.keys()];
  if (typeof value !== 'object' || value === null || kindOf(value) !== 'object') return [];
  return Object.keys(value);
}

/** The places of one moment: of the present, or of a past revision. */
class Moment {
  constructor() {
    /** @type {Map<string, Place>} */
    this.byPath = new Map();
    /** @type {Place[]} */
    this.roots = [];
  }

  /** @param {Place} place */
  forget(place) {
    if (this.byPath.get(place.path) === place) this.byPath.delete(place.path);
    for (const part of place.parts ?? []) this.forget(part);
  }
}

export class State {
  /**
   * @param {Connection} connection
   * @param {() => void} changed called when there is something to draw
   */
  constructor(connection, changed) {
    this.connection = connection;
    this.changed = changed;
    /** @type {Set<string>} */
    this.unfolded = new Set(['']);
    /** @type {string[]} further places at the top, that a path was given for */
    this.pinned = [];
    this.present = new Moment();
    /** @type {Moment | null} */
    this.past = null;
    /** @type {number | null} the past revision that is shown; null: the present */
    this.revision = null;
    this.generation = 0;
    /**
     * The newest value of each place that is in view: the program tells it once, and again when it
     * is another, but the place may be made anew in between.
     * @type {Map<string, {value?: unknown, error?: string}>}
     */
    this.told = new Map();
    /** @type {Set<string>} unfolded places whose children may be others now */
    this.stale = new Set();
    this.isRefreshing = false;
    this.knowsChanges = true;
  }

  get moment() {
    return this.past ?? this.present;
  }

  // The present

  /** Asks for everything again: at the beginning, and after an interruption. */
  async reset() {
    this.present = new Moment();
    this.stale.clear();
    const paths = ['', ...this.pinned];
    for (const path of paths) {
      const root = new Place(path, null, 'parts');
      this.present.roots.push(root);
      this.present.byPath.set(path, root);
    }
    await Promise.all(this.present.roots.map((root) => this.load(root)));
  }

  /**
   * Loads the next page of children.
   * @param {Place} place
   */
  async load(place) {
    if (place.isLoading) return;
    if (place.source === 'value') return this.grow(place);
    if (place.source === 'past') return this.loadPast(place);
    if (!place.hasParts && place.parent) {
      return place.isKnown ? this.grow(place) : this.loadValue(place);
    }
    place.isLoading = true;
    const moment = this.present;
    const after = place.parts?.at(-1)?.path;
    try {
      const answer = await this.connection.ask('parts', { path: place.path, after, limit: PAGE });
      if (moment !== this.present) return;
      place.describe({ ...answer.whole, path: place.path });
      place.partsError = null;
      place.hasMore = answer.hasMore;
      const known = new Set(place.parts?.map((part) => part.path));
      const fresh = answer.parts.filter((/** @type {Row} */ row) => !known.has(row.path));
      place.parts = [...(place.parts ?? []), ...this.places(place, fresh)];
    } catch (error) {
      place.partsError = /** @type {Refusal} */ (error).message;
    } finally {
      place.isLoading = false;
      this.changed();
    }
  }

  /**
   * Asks for a value that is too large to be told without that.
   * @param {Place} place
   */
  async loadValue(place) {
    place.isLoading = true;
    try {
      const answer = await this.connection.ask('value', { path: place.path });
      place.setValue(answer.value);
      place.partsError = null;
      if (this.unfolded.has(place.path) && !this.past) this.unfoldValue(place);
    } catch (error) {
      place.partsError = /** @type {Refusal} */ (error).message;
    } finally {
      place.isLoading = false;
      this.changed();
    }
  }

  /**
   * The places of rows, those that are known already kept. An unfolded one loads its children.
   * @param {Place} parent
   * @param {Row[]} rows
   */
  places(parent, rows) {
    return rows.map((row) => {
      let place = this.present.byPath.get(row.path);
      const isNew = !place || place.parent !== parent;
      if (!place || isNew) {
        place = new Place(row.path, parent, 'parts');
        this.present.byPath.set(row.path, place);
      }
      const wasKnown = place.isKnown;
      // Its change was not among the actions that came: they were left out, or may not be seen.
      if (
        !isNew && place.hasParts && !this.unfolded.has(place.path) &&
        (row.changed ?? -1) > (place.changed ?? -1)
      ) place.flash();
      place.describe(row);
      const told = this.told.get(row.path);
      if (told && !place.hasParts && (isNew || (wasKnown && !place.isKnown))) {
        this.tell(place, told);
      }
      if (isNew && this.unfolded.has(place.path) && place.hasParts) void this.load(place);
      return place;
    });
  }

  /**
   * Shows more children of a value that is here.
   * @param {Place} place
   */
  grow(place) {
    if (place.parts) place.shown += PAGE;
    this.unfoldValue(place);
    this.changed();
  }

  /**
   * Makes the children of a place from its value; those that differ from before flash.
   * @param {Place} place
   */
  unfoldValue(place) {
    const moment = this.moment;
    const keys = childKeys(place.value);
    place.hasMore = keys.length > place.shown;
    const before = new Map(place.parts?.map((part) => [part.path, part]));
    place.parts = keys.slice(0, place.shown).map((key) => {
      const path = below(place.path, key);
      const part = before.get(path) ?? new Place(path, place, 'value');
      before.delete(path);
      moment.byPath.set(path, part);
      const value = /** @type {any} */ (place.value)[key];
      if (part.isKnown && !isSame(part.value, value)) part.flash();
      part.setValue(value);
      if (this.unfolded.has(path)) this.unfoldValue(part);
      return part;
    });
    for (const gone of before.values()) moment.forget(gone);
  }

  /** @param {Place} place */
  unfold(place) {
    this.unfolded.add(place.path);
    if (place.source === 'value' || (place.source === 'past' && place.isKnown)) {
      this.unfoldValue(place);
    } else if (!place.hasParts && place.isKnown) this.unfoldValue(place);
    else if (!place.parts) void this.load(place);
    else this.stale.add(place.path);
    this.changed();
  }

  /** @param {Place} place */
  fold(place) {
    this.unfolded.delete(place.path);
    this.changed();
  }

  /**
   * Takes in a push `values`.
   * @param {{path: string, revision: number, value?: unknown, error?: string}[]} values
   */
  takeValues(values) {
    for (const one of values) {
      this.told.set(one.path, one);
      const place = this.present.byPath.get(one.path);
      if (!place || place.source !== 'parts') continue;
      if (place.isKnown && one.error === undefined && !isSame(place.value, one.value)) {
        place.flash();
        if (PLAIN.has(place.kind) && one.value !== undefined) place.kind = kindOf(one.value);
        if (place.parent) this.stale.add(place.parent.path);
      }
      this.tell(place, one);
      if (one.error !== undefined) {
        if (this.unfolded.has(place.path) && !place.isLoading) void this.loadValue(place);
        continue;
      }
      if (!place.hasParts && this.unfolded.has(place.path) && !this.past) this.unfoldValue(place);
    }
    this.changed();
  }

  /**
   * @param {Place} place
   * @param {{value?: unknown, error?: string}} told
   */
  tell(place, told) {
    if (told.error !== undefined) place.error = told.error;
    else place.setValue(told.value);
  }

  /**
   * Forgets the values of what is not in view any more.
   * @param {string[]} paths
   */
  keepTold(paths) {
    const kept = new Set(paths);
    for (const path of this.told.keys()) if (!kept.has(path)) this.told.delete(path);
  }

  /**
   * Takes in the changes of actions.
   * @param {Record_[]} records
   * @param {number} missed
   */
  takeRecords(records, missed) {
    for (const record of records) {
      if (record.changes === null && record.outcome === 'changed') missed += 1;
      for (const change of record.changes ?? []) this.takeChange(change, record.revision);
    }
    if (missed > 0) this.staleAll();
    this.changed();
  }

  /**
   * @param {Change} change
   * @param {number} revision
   */
  takeChange(change, revision) {
    /** @type {Place | null} */
    let deepest = null;
    for (const path of wayTo(change.path)) {
      const place = this.present.byPath.get(path);
      if (!place) break;
      place.changed = Math.max(place.changed ?? -1, revision);
      if (this.unfolded.has(path)) this.stale.add(path);
      deepest = place;
      if (!this.unfolded.has(path)) break;
    }
    // A place with a value flashes when that comes.
    if (deepest?.hasParts && deepest.parent && !this.unfolded.has(deepest.path)) deepest.flash();
  }

  staleAll() {
    for (const path of this.unfolded) if (this.present.byPath.has(path)) this.stale.add(path);
  }

  /**
   * Lists the children of the stale places again, up to a thousand of each.
   * @returns {Promise<number>} how many milliseconds it took
   */
  async refresh() {
    if (this.isRefreshing || this.past || this.stale.size === 0) return 0;
    this.isRefreshing = true;
    const start = performance.now();
    const paths = [...this.stale];
    this.stale.clear();
    try {
      for (const path of paths) {
        const place = this.present.byPath.get(path);
        if (
          place?.source === 'parts' && (place.hasParts || !place.parent) && place.parts &&
          !place.isLoading
        ) {
          await this.relist(place);
        }
      }
    } finally {
      this.isRefreshing = false;
    }
    this.changed();
    return performance.now() - start;
  }

  /** @param {Place} place */
  async relist(place) {
    const had = place.parts ?? [];
    const limit = Math.min(Math.max(had.length, PAGE), MOST);
    try {
      const moment = this.present;
      const answer = await this.connection.ask('parts', { path: place.path, limit });
      if (moment !== this.present || place.parts !== had) return;
      place.describe({ ...answer.whole, path: place.path });
      place.partsError = null;
      const before = new Set(had.map((part) => part.path));
      const parts = this.places(place, answer.parts);
      const now = new Set(parts.map((part) => part.path));
      for (const part of parts) if (!before.has(part.path)) part.flash();
      // What stood behind the part that was listed again is still there, as far as is known.
      const last = parts.at(-1);
      const end = last ? had.findIndex((part) => part.path === last.path) : -1;
      const rest = answer.hasMore && had.length > limit
        ? had.slice(end >= 0 ? end + 1 : limit).filter((part) => !now.has(part.path))
        : [];
      for (const part of had) {
        if (!now.has(part.path) && !rest.includes(part)) this.present.forget(part);
      }
      place.parts = [...parts, ...rest];
      if (rest.length === 0) place.hasMore = answer.hasMore;
    } catch (error) {
      const refusal = /** @type {Refusal} */ (error);
      if (refusal.isInterruption) return;
      place.partsError = refusal.message;
      if (refusal.code === 'absent' || refusal.code === 'denied') {
        for (const part of had) this.present.forget(part);
        place.parts = null;
      }
    }
  }

  // The past

  /**
   * Shows the state of a revision; null returns to the present.
   * @param {number | null} revision
   */
  async show(revision) {
    const generation = ++this.generation;
    this.revision = revision;
    if (revision === null) {
      this.past = null;
      this.unfoldPresent();
      this.staleAll();
      this.changed();
      return;
    }
    const moment = new Moment();
    for (const path of ['', ...this.pinned]) {
      const root = new Place(path, null, 'past');
      moment.roots.push(root);
      moment.byPath.set(path, root);
    }
    const [whole] = moment.roots;
    try {
      const answer = await this.connection.ask('value', { path: '', at: revision });
      if (generation !== this.generation) return;
      this.past = moment;
      whole.setValue(answer.value);
      this.unfoldPast(whole);
    } catch (error) {
      if (generation !== this.generation) return;
      this.past = moment;
      await this.listPast(whole, /** @type {Refusal} */ (error));
    }
    this.changed();
  }

  /** @param {Place} place */
  unfoldPast(place) {
    if (this.unfolded.has(place.path) && place.canUnfold) this.unfoldValue(place);
  }

  /**
   * Asks for the value that a place had.
   * @param {Place} place
   */
  async loadPast(place) {
    if (place.parts && place.hasMore) return this.listPast(place, null);
    place.isLoading = true;
    const generation = this.generation;
    try {
      const answer = await this.connection.ask('value', { path: place.path, at: this.revision });
      if (generation !== this.generation) return;
      place.setValue(answer.value);
      place.isLoading = false;
      this.unfoldPast(place);
    } catch (error) {
      if (generation === this.generation) {
        await this.listPast(place, /** @type {Refusal} */ (error));
      }
    } finally {
      place.isLoading = false;
      this.changed();
    }
  }

  /**
   * What is too large to be had at once, or is readable in part only, is listed a page at a time.
   * @param {Place} place
   * @param {Refusal | null} refusal
   */
  async listPast(place, refusal) {
    if (refusal && refusal.code !== 'limit' && refusal.code !== 'denied') {
      place.error = refusal.message;
      return;
    }
    const generation = this.generation;
    try {
      const after = place.parts?.at(-1)?.path;
      const answer = await this.connection.ask('parts', {
        path: place.path,
        after,
        limit: PAGE,
        at: this.revision,
      });
      if (generation !== this.generation) return;
      place.kind = answer.whole?.kind ?? 'object';
      place.count = answer.whole?.count ?? null;
      place.hasMore = answer.hasMore;
      const rows = answer.parts.map((/** @type {Row} */ row) => {
        const part = new Place(row.path, place, 'past');
        part.kind = row.kind;
        part.count = row.count;
        this.past?.byPath.set(row.path, part);
        if (this.unfolded.has(row.path) && part.hasParts) void this.loadPast(part);
        return part;
      });
      place.parts = [...(place.parts ?? []), ...rows];
    } catch (error) {
      place.error = /** @type {Refusal} */ (error).message;
    }
  }

  /** What was unfolded in the past is unfolded now, too. */
  unfoldPresent() {
    for (const path of this.unfolded) {
      const place = this.present.byPath.get(path);
      if (!place) continue;
      if (place.source === 'parts' && (place.hasParts || !place.parent)) {
        if (!place.parts) void this.load(place);
      } else if (place.isKnown) {
        this.unfoldValue(place);
      }
    }
  }

  // Finding a place

  /**
   * Unfolds what leads to a path, or puts it at the top where that does not lead there.
   * @param {string} path
   * @returns {Promise<Place>} or a thrown Refusal
   */
  async reveal(path) {
    for (const above of wayTo(path).slice(0, -1)) {
      const place = this.moment.byPath.get(above);
      if (!place || !place.canUnfold) break;
      this.unfolded.add(above);
      if (
        place.source === 'value' || (place.source === 'past' && place.isKnown) || !place.hasParts
      ) this.unfoldValue(place);
      else if (!place.parts) await this.load(place);
    }
    const found = this.moment.byPath.get(path);
    if (found) {
      this.changed();
      return found;
    }
    const at = this.past ? this.revision : undefined;
    const answer = await this.connection.ask('parts', { path, limit: 1, at });
    const pin = new Place(path, null, this.past ? 'past' : 'parts');
    pin.describe({ ...answer.whole, path });
    if (!this.pinned.includes(path)) this.pinned.push(path);
    this.moment.roots.push(pin);
    this.moment.byPath.set(path, pin);
    this.changed();
    return pin;
  }

  /**
   * The nearest place that is there, at a path or above it.
   * @param {string} path
   */
  nearest(path) {
    for (let at = /** @type {string | null} */ (path); at !== null; at = parentOf(at)) {
      const place = this.moment.byPath.get(at);
      if (place && this.isShown(place)) return place;
    }
    return this.moment.roots[0];
  }

  /** @param {Place} place */
  isShown(place) {
    for (let at = place.parent; at; at = at.parent) if (!this.unfolded.has(at.path)) return false;
    return true;
  }

  /**
   * Whether a place, or one below it, is pinned at the top.
   * @param {string} path
   */
  isPinned(path) {
    return this.pinned.some((pin) => isWithin(path, pin));
  }
}

/**
 * @param {unknown} a
 * @param {unknown} b
 */
function isSame(a, b) {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
