// The selected action, whole: what it carried, what it changed, and what led to it.

import { outcomeOf, payloadText } from './actions.js';
import { changeList } from './changes.js';
import { byId, make, say } from './dom.js';
import * as format from './format.js';

/** @typedef {import('./connection.js').Connection} Connection */
/** @typedef {import('./nodes.js').Record_} Record_ */

export class Action {
  /**
   * @param {Connection} connection
   * @param {{select: (sequence: number) => void, reveal: (path: string) => void, show: (revision: number) => void, followed: (record: Record_) => {count: number, seconds: number}}} go
   */
  constructor(connection, go) {
    this.connection = connection;
    this.go = go;
    this.element = byId('action');
    this.sequence = -1;
    /** @type {Record_ | null} */
    this.record = null;
    this.consequences = make('p.hint', { 'data-followed': '' });
    this.show(null, -1);
  }

  /**
   * @param {Record_ | null} record
   * @param {number} sequence
   */
  async show(record, sequence) {
    this.sequence = sequence;
    this.element.dataset.sequence = String(sequence);
    if (sequence < 0) {
      this.element.replaceChildren(
        make(
          'p.hint',
          null,
          'Select an action: what it carried, changed, and what led to it comes here.',
        ),
      );
      return;
    }
    const causes = make('ol.causes', { 'data-causes': 'loading', 'aria-label': 'What led to it' });
    if (record) {
      this.element.replaceChildren(...this.facts(record), make('h3', null, 'Cause'), causes);
    }
    try {
      const answer = await this.connection.ask('why', { sequence });
      if (this.sequence !== sequence) return;
      const records = /** @type {Record_[]} */ (answer.records);
      if (!record) {
        if (records[0]) {
          this.element.replaceChildren(
            ...this.facts(records[0]),
            make('h3', null, 'Cause'),
            causes,
          );
        }
      }
      this.fillCauses(causes, records);
    } catch (error) {
      if (this.sequence !== sequence) return;
      if (!record) this.element.replaceChildren(causes);
      causes.replaceChildren(make('li.refused', null, /** @type {Error} */ (error).message));
      causes.dataset.causes = 'refused';
    }
  }

  /** Shows how long what followed from the action has taken so far. */
  tellFollowed() {
    if (this.record?.sequence !== this.sequence) return;
    const { count, seconds } = this.go.followed(this.record);
    // What was told of one that has gone from the list stays.
    if (count < Number(this.consequences.dataset.followed)) return;
    this.consequences.dataset.followed = String(count);
    this.consequences.hidden = count === 0;
    const actions = count === 1
      ? 'One action has followed'
      : `${format.count(count)} actions have followed`;
    say(this.consequences, `${actions} from it, the last after ${format.milliseconds(seconds)}.`);
  }

  /**
   * @param {HTMLElement} list
   * @param {Record_[]} records
   */
  fillCauses(list, records) {
    const rows = records.map((record, depth) => {
      const row = make(
        'li',
        { 'data-cause': record.sequence },
        depth === 0 ? '' : '← ',
        depth === 0 ? make('b', null, `#${record.sequence} ${record.action}`) : make(
          'button.link',
          { type: 'button', click: () => this.go.select(record.sequence) },
          `#${record.sequence} ${record.action}`,
        ),
        ' ',
        make('span.who', null, record.label ? `${record.label} · ${record.origin}` : record.origin),
      );
      row.style.paddingLeft = `${depth * 16}px`;
      return row;
    });
    list.dataset.causes = String(records.length);
    list.replaceChildren(...rows);
  }

  /**
   * @param {Record_} record
   * @returns {HTMLElement[]}
   */
  facts(record) {
    const outcome = outcomeOf(record);
    const head = make(
      'div.head',
      null,
      make('h3.title', null, `#${record.sequence} ${record.action}`),
      make(`span.outcome.${outcome.name}`, null, `${outcome.sign} ${record.outcome}`),
      make('span.spring'),
      make('button.quiet', {
        type: 'button',
        'data-show': record.revision,
        click: () => this.go.show(record.revision),
      }, `State at ${format.count(record.revision)}`),
    );
    const who = [record.label, record.origin].filter(Boolean).join(' · ');
    const when = make('p.hint', null, `${format.time(record.time)} · ${who}`);
    this.record = record;
    this.consequences.dataset.followed = '0';
    this.tellFollowed();
    const carried = payloadText(record) === '' ? null : make(
      'pre.payload',
      { tabindex: 0, 'aria-label': 'What it carried' },
      pretty(record.payload),
    );
    const parts = [head, when, this.consequences];
    if (carried) parts.push(carried);
    if (outcome.name === 'changed') {
      const changes = changeList(record.changes);
      changes.addEventListener('click', (event) => {
        const path = /** @type {HTMLElement} */ (event.target).closest('[data-change]')
          ?.getAttribute('data-change');
        if (path !== null && path !== undefined) this.go.reveal(path);
      });
      parts.push(make('h3', null, 'Changes'), changes);
    }
    return parts;
  }
}

/** @param {unknown} value */
function pretty(value) {
  const short = format.brief(value, 100);
  const text = short.length < 90 ? short : JSON.stringify(value, null, 2);
  return text.length > 20000 ? `${text.slice(0, 20000)}…` : text;
}
