// The tabs of the right side.

import { byId } from './dom.js';

export class Tabs {
  /** @param {(name: string) => void} shown */
  constructor(shown) {
    this.shown = shown;
    this.tabs = /** @type {HTMLElement[]} */ ([...byId('tabs').querySelectorAll('[role=tab]')]);
    this.tabs.forEach((tab, at) => {
      tab.addEventListener('click', () => this.show(at));
      tab.addEventListener('keydown', (event) => this.key(event, at));
    });
  }

  /**
   * @param {number} at
   * @param {boolean} [takesFocus]
   */
  show(at, takesFocus = false) {
    this.tabs.forEach((tab, index) => {
      const isShown = index === at;
      tab.setAttribute('aria-selected', String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      byId(tab.getAttribute('aria-controls') ?? '').hidden = !isShown;
    });
    if (takesFocus) this.tabs[at].focus();
    this.shown(this.tabs[at].id.replace('tab-', ''));
  }

  /**
   * @param {KeyboardEvent} event
   * @param {number} at
   */
  key(event, at) {
    const { length } = this.tabs;
    const to =
      { ArrowRight: at + 1, ArrowLeft: at - 1 + length, Home: 0, End: length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(to % length, true);
  }
}
