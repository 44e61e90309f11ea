// Search runs in a Worker, which browsers refuse to pages that are opened from disk: there, in a frame of its own.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const base = new URL(url, document.baseURI);
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: new URL(source, base).href, onload: done, onerror: failed });
          inside.document.head.append(script);
        });
      inside.importScripts = (...sources) => Promise.all(sources.map(load));
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.send = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      this.ready = load(base);
    }

    postMessage(data) {
      this.ready.then(() => this.send(data));
    }

    terminate() {}
  };
}
