// The search of the site runs in a worker, and a browser starts no worker on a page that was opened from a file.
// There, this class replaces Worker: it runs the script in a hidden frame, and passes copies of messages between the two.
if (location.protocol === "file:") {
  window.Worker = class {
    onmessage = null;

    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.onmessage?.(new MessageEvent("message", { data: structuredClone(data) }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      inside.document.body.append(script);
    }

    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
