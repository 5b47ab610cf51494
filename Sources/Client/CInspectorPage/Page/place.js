// The history of the selected place: who changed it, when, from what to what.

import { changeLine } from './changes.js';
import { byId, make, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';
import { touches } from './pointer.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./nodes.js').Record_} Record_ */
/** @typedef {import('./nodes.js').Change} Change */

const LIMIT = 50;
/** The least milliseconds between two asks. */
const OFTEN = 1000;

export class PlaceHistory {
  /**
   * @param {Connection} connection
   * @param {{select: (sequence: number) => void, show: (revision: number) => void}} go
   */
  constructor(connection, go) {
    this.connection = connection;
    this.go = go;
    this.path = '';
    this.isAsking = false;
    this.rows = byId('place-rows');
    this.asking = new Drawing(() => void this.ask(), OFTEN);
    byId('place-copy').addEventListener(
      'click',
      () => void navigator.clipboard?.writeText(this.path),
    );
  }

  /** @param {string} path */
  select(path) {
    this.path = path;
    say(byId('place-path'), path || 'the whole');
    this.rows.dataset.of = '';
    this.asking.next();
  }

  /**
   * Asks again if what was done can be seen at the place.
   * @param {Record_[]} records
   * @param {number} missed
   */
  take(records, missed) {
    const isTouched = (/** @type {Record_} */ record) =>
      !record.changes || record.changes.some((change) => touches(change.path, this.path));
    if (missed > 0 || records.some(isTouched)) this.asking.soon();
  }

  async ask() {
    if (this.isAsking) {
      this.asking.soon();
      return;
    }
    const { path } = this;
    this.isAsking = true;
    const start = performance.now();
    try {
      const answer = await this.connection.ask('history', { path, limit: LIMIT });
      if (path === this.path) this.fill(answer.rows);
    } catch (error) {
      const refusal = /** @type {import('./connection.js').Refusal} */ (error);
      if (path === this.path && !refusal.isInterruption) {
        this.rows.replaceChildren(make('li.refused', null, refusal.message));
      }
    } finally {
      this.isAsking = false;
      this.asking.slowDown(performance.now() - start, OFTEN);
    }
    if (path === this.path) this.rows.dataset.of = path || 'the whole';
  }

  /** @param {{revision: number, changes: Change[], action: Record_ | null}[]} rows */
  fill(rows) {
    if (rows.length === 0) {
      this.rows.replaceChildren(make('li.hint', null, 'Nothing that is remembered changed it.'));
      return;
    }
    // Only what is not there yet is made: a change at the top must not move what somebody reads.
    const key = (/** @type {{revision: number}} */ row) => `${this.path}\0${row.revision}`;
    const before = new Map(
      [...this.rows.children].map((
        element,
      ) => [/** @type {HTMLElement} */ (element).dataset.key ?? '', element]),
    );
    const { scrollTop, scrollHeight } = this.rows;
    this.rows.replaceChildren(
      ...[...rows].reverse().map((row) => before.get(key(row)) ?? this.row(row, key(row))),
    );
    if (scrollTop > 0) this.rows.scrollTop = scrollTop + this.rows.scrollHeight - scrollHeight;
  }

  /**
   * @param {{revision: number, changes: Change[], action: Record_ | null}} row
   * @param {string} key
   */
  row(row, key) {
    const { action } = row;
    const head = make(
      'div.line',
      null,
      make('button.link', {
        type: 'button',
        title: 'Show the state of this revision',
        'data-show': row.revision,
        click: () => this.go.show(row.revision),
      }, format.count(row.revision)),
    );
    if (action) {
      head.append(
        make('time', { datetime: action.time }, format.time(action.time)),
        make(
          'button.link',
          { type: 'button', click: () => this.go.select(action.sequence) },
          action.action,
        ),
        make('span.who', { title: action.origin }, action.label || action.origin),
      );
    } else {
      head.append(make('span.hint', null, 'the action is not known'));
    }
    const item = make('li', { 'data-revision': row.revision, 'data-key': key }, head);
    const lines = row.changes.slice(0, 3).map((change) => changeLine(change, 200, this.path));
    if (lines.length === 1) head.append(lines[0]);
    else item.append(...lines);
    if (row.changes.length > 3) {
      item.append(make('p.hint', null, `and ${row.changes.length - 3} more`));
    }
    return item;
  }
}
