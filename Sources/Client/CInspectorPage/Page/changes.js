// What an action changed, as lines with a sign: what was there, and what is there now.

import { make } from './dom.js';
import * as format from './format.js';
import { isWithin } from './pointer.js';

/** @typedef {import('./nodes.js').Change} Change */

/**
 * @param {Change} change
 * @param {number} most characters of each value
 * @param {string} [within] the place whose changes are listed: its own path is left out
 */
export function changeLine(change, most, within) {
  const line = make('div.change', { 'data-change': change.path });
  const isBelow = within !== undefined && isWithin(change.path, within);
  const path = isBelow ? change.path.slice(within.length) : change.path || 'the whole';
  if (path) line.append(make('span.path', null, path), ' ');
  if (change.from !== undefined) {
    line.append(
      make(
        'del',
        { 'aria-label': `from ${format.brief(change.from, most)}` },
        `− ${format.brief(change.from, most)}`,
      ),
      ' ',
    );
  }
  if (change.to !== undefined) {
    line.append(
      make(
        'ins',
        { 'aria-label': `to ${format.brief(change.to, most)}` },
        `+ ${format.brief(change.to, most)}`,
      ),
    );
  }
  return line;
}

/**
 * @param {Change[] | null | undefined} changes
 * @param {number} [most] how many
 */
export function changeList(changes, most = 100) {
  const list = make('div.changes');
  if (!changes) {
    list.append(make('p.hint', null, 'What it changed is not known.'));
    return list;
  }
  for (const change of changes.slice(0, most)) list.append(changeLine(change, 2000));
  if (changes.length > most) {
    list.append(make('p.hint', null, `and ${format.count(changes.length - most)} more`));
  }
  return list;
}
