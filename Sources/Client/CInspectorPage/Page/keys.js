// The keys that work everywhere, and the list of all keys.

import { byId, make } from './dom.js';

/** @typedef {{key: string, shown?: string, does: string, run?: () => void}} Key */

/** @type {Key[]} */
const ELSEWHERE = [
  { key: '↑ ↓ Home End', does: 'tree and actions: move' },
  { key: '→ ←', does: 'tree: unfold, fold, go to the parent' },
  { key: 'Enter', does: 'tree: unfold or fold; load more' },
  { key: '←', does: 'actions: go to the cause' },
  { key: 'Esc', does: 'actions: follow the newest again' },
  { key: 'Tab', does: 'from panel to panel' },
];

/** @param {Key[]} keys */
export function installKeys(keys) {
  const dialog = /** @type {HTMLDialogElement} */ (byId('keys'));
  const all = [...keys, { key: '?', does: 'show the keys', run: () => dialog.showModal() }];
  byId('show-keys').addEventListener('click', () => dialog.showModal());
  byId('keys-list').append(
    ...[...all, ...ELSEWHERE].map((one) =>
      make(
        'div',
        null,
        make('dt', null, make('kbd', null, one.shown ?? one.key)),
        make('dd', null, one.does),
      )
    ),
  );
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) {
      return;
    }
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches('textarea, select, input:not([type=range], [type=checkbox])')) {
      if (event.key === 'Escape') target.blur();
      return;
    }
    const found = all.find((one) => one.key === event.key);
    if (!found) return;
    event.preventDefault();
    found.run?.();
  });
}
