// A page that was opened from a file may not start a worker. There the worker of the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  // These two functions run in the frame. The search waits for the promise of importScripts.
  const toPage = (message) => parent.postMessage(message, "*");
  const load = (...urls) => urls.reduce((done, url) => done.then(() => new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = resolve;
    document.body.appendChild(script);
  })), Promise.resolve());

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      this.receive = (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      addEventListener("message", this.receive);
      inside.document.open();
      inside.document.write(
        `<body><script>postMessage = ${toPage}; importScripts = ${load}</` + `script><script src="${url}"></` + "script></body>");
      inside.document.close();
      this.ready = new Promise((resolve) => { inside.onload = resolve; });
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }

    terminate() {
      removeEventListener("message", this.receive);
      this.frame.remove();
    }
  };
}
