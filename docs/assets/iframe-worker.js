/* The search of the theme runs in a Worker, which browsers refuse to pages that are opened from files. There an invisible frame takes the
   role of the Worker. Pages from a server keep the Worker of the browser. */
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            frame.hidden = true;
            document.body.appendChild(frame);
            this.target = frame.contentWindow;
            this.target.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
            this.ready = new Promise(resolve => {
                const script = this.target.document.createElement("script");
                script.src = url;
                script.onload = resolve;
                this.target.document.body.appendChild(script);
            });
        }
        postMessage(data) {
            this.ready.then(() => this.target.dispatchEvent(new MessageEvent("message", { data })));
        }
    };
}
