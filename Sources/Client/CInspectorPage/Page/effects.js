// The work that actions have begun and that goes on, and its end.

import { byId, make, say } from './dom.js';
import { Drawing } from './drawing.js';
import * as format from './format.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {{id: string, name: string, key?: string, action: string, sequence: number, client?: string, owned: boolean, startedMs: number, sent: number, place?: string}} Effect */

export class Effects {
  /**
   * @param {Connection} connection
   * @param {{select: (sequence: number) => void, notify: (text: string) => void}} go
   */
  constructor(connection, go) {
    this.connection = connection;
    this.go = go;
    /** @type {Effect[] | null} */
    this.effects = [];
    this.element = byId('effects');
    /** @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    this.drawing = new Drawing(() => this.draw(), 250);
  }

  /** @param {Effect[] | null} effects null: they may not be seen */
  take(effects) {
    this.effects = effects;
    this.drawing.soon();
  }

  draw() {
    say(byId('effects-count'), this.effects?.length ? format.count(this.effects.length) : '');
    if (!this.effects?.length) {
      const text = this.effects ? 'No effect runs.' : 'You may not see the effects of this daemon.';
      if (this.element.textContent !== text) {
        this.element.replaceChildren(
          make(this.effects ? 'p.empty' : 'p.empty.refused', null, text),
        );
      }
      this.rows.clear();
      return;
    }
    const ids = new Set(this.effects.map((effect) => effect.id));
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
    const rows = this.effects.map((effect) => {
      const row = this.rows.get(effect.id) ?? this.row(effect);
      this.rows.set(effect.id, row);
      say(
        /** @type {HTMLElement} */ (row.querySelector('.runs')),
        format.duration(effect.startedMs / 1000),
      );
      say(/** @type {HTMLElement} */ (row.querySelector('.sent')), format.count(effect.sent));
      return row;
    });
    // Rows that are there already stay where they are: a button in them may have the focus.
    if (
      rows.every((row) => row.isConnected) &&
      this.element.querySelectorAll('[data-effect]').length === rows.length
    ) return;
    const heads = ['Name', 'Begun by', 'Client', 'Runs for', 'Sent', ''].map((text, at) =>
      make(at > 2 ? 'th.number' : 'th', { scope: 'col' }, text)
    );
    this.element.replaceChildren(
      make(
        'table',
        null,
        make('thead', null, make('tr', null, ...heads)),
        make('tbody', null, ...rows),
      ),
    );
  }

  /** @param {Effect} effect */
  row(effect) {
    const cancel = make('button', {
      type: 'button',
      'aria-label': `Cancel ${effect.name}`,
      click: () => void this.cancel(effect),
    }, 'Cancel');
    const key = effect.key !== undefined && effect.key !== effect.name
      ? make('span.hint', null, ` ${effect.key}`)
      : null;
    return make(
      'tr',
      { 'data-effect': effect.id, 'data-name': effect.name },
      make('td', { title: effect.id }, make('b', null, effect.name), key),
      make(
        'td',
        null,
        make(
          'button.link',
          { type: 'button', click: () => this.go.select(effect.sequence) },
          `#${effect.sequence} ${effect.action}`,
        ),
      ),
      make(
        'td',
        null,
        effect.client ?? '–',
        effect.owned ? make('span.hint', null, ' ends with it') : null,
      ),
      make('td.runs.number'),
      make('td.sent.number'),
      make('td', null, cancel),
    );
  }

  /** @param {Effect} effect */
  async cancel(effect) {
    try {
      const answer = await this.connection.ask('cancel', { effect: effect.id });
      this.go.notify(
        answer.cancelled > 0 ? `Cancelled ${effect.name}.` : `${effect.name} had ended already.`,
      );
    } catch (error) {
      this.go.notify(/** @type {Error} */ (error).message);
    }
  }
}
