// When things are drawn. Messages only change values; what shows them is asked to draw itself, in
// the next animation frame, and no oftener than it says. So a flood of messages costs no drawing.

/** @type {Set<Drawing>} */
const waiting = new Set();
let isRequested = false;

export class Drawing {
  /**
   * @param {() => void} draw
   * @param {number} [interval] the least number of milliseconds between two drawings
   */
  constructor(draw, interval = 0) {
    this.draw = draw;
    this.interval = interval;
    this.last = -Infinity;
  }

  /** Draw soon: in the next frame, or when the interval has passed. */
  soon() {
    waiting.add(this);
    request();
  }

  /**
   * What took so long has to wait several times as long until the next: looking at a daemon must
   * not become most of what it does.
   * @param {number} milliseconds
   * @param {number} least
   */
  slowDown(milliseconds, least) {
    this.interval = Math.max(least, 5 * milliseconds);
  }

  /** Draw in the next frame: a person has just done something, and waits for it. */
  next() {
    this.last = -Infinity;
    this.soon();
  }
}

function request() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(frame);
}

/** @param {number} now */
function frame(now) {
  isRequested = false;
  let wait = Infinity;
  for (const drawing of [...waiting]) {
    const left = drawing.last + drawing.interval - now;
    if (left > 0) {
      wait = Math.min(wait, left);
      continue;
    }
    waiting.delete(drawing);
    drawing.last = now;
    drawing.draw();
  }
  if (waiting.size === 0) return;
  if (wait > 30 && Number.isFinite(wait)) setTimeout(request, wait);
  else request();
}
