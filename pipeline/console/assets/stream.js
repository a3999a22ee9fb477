// The connection: one event a second. It ends while nobody looks, and comes back by itself, whoever went away.

const SILENCE = 5000; // without a second for so long, the stream is dead, whatever the browser thinks
const FIRST = 500;
const LONGEST = 10000;

// connect calls second(frame) for each message and state("live" | "lost" | "paused") when that changes.
export function connect(url, second, state) {
  let source = null;
  let watch = 0;
  let again = 0;
  let delay = FIRST;

  function open() {
    close();
    source = new EventSource(url);
    source.addEventListener("second", (e) => {
      alive();
      delay = FIRST;
      second(JSON.parse(e.data));
      state("live");
    });
    source.addEventListener("error", retry); // a refused stream ends an EventSource for good: it is made anew
    alive();
  }

  function alive() {
    clearTimeout(watch);
    watch = setTimeout(retry, SILENCE);
  }

  function retry() {
    close();
    state("lost");
    again = setTimeout(open, delay * (0.75 + Math.random() / 2));
    delay = Math.min(LONGEST, delay * 2);
  }

  function close() {
    clearTimeout(watch);
    clearTimeout(again);
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      state("paused");
    } else {
      open();
    }
  });
  open();
}
