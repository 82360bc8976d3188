"use strict";
// The heat map of tensors by steps: a canvas with one row for each tensor. Where there are more tensors than pixels, a pixel shows the largest value.
const heatMap = (() => {
    const most = 560, rowHeight = 16, empty = [0, 0, 0, 0], broken = [210, 30, 60, 255];
    // Viridis, at eight points.
    const palette = [[68, 1, 84], [70, 50, 127], [54, 92, 141], [39, 127, 142], [31, 161, 135], [74, 194, 109], [159, 218, 58], [253, 231, 37]];
    const shade = part => {
        const at = Math.max(0, Math.min(0.9999, part)) * (palette.length - 1), low = Math.floor(at), rest = at - low;
        return palette[low].map((value, k) => Math.round(value + rest * (palette[low + 1][k] - value)));
    };
    const css = color => `rgb(${color[0]},${color[1]},${color[2]})`;

    // Each quantity: the statistic, or a sum of shares, as one code for each cell. Codes grow with the value; 0 is nothing.
    const quantities = {
        amax: {of: ["amax"], text: value => page.number(value)},
        scale: {of: ["scale"], text: value => page.number(value)},
        rms: {of: ["rms"], text: value => page.number(value)},
        "lost elements": {of: ["zeros", "saturated"], text: value => page.percent(value)},
        "became zero": {of: ["zeros"], text: value => page.percent(value)},
        saturated: {of: ["saturated"], text: value => page.percent(value)},
        subnormal: {of: ["subnormal"], text: value => page.percent(value)},
        "not finite": {of: ["non_finite"], text: value => page.percent(value)},
    };
    const available = () => Object.keys(quantities).filter(name => quantities[name].of.some(run.has));
    const code = (name, tensor, column) => Math.max(...quantities[name].of.filter(run.has).map(part => run.code(part, tensor, column)));
    const isBroken = (name, value) => run.isMagnitude(quantities[name].of[0]) && value === 65535;

    // Shares have fixed colors from 0.1 % to 100 %, so that a healthy run looks healthy.
    const range = (name, rows) => {
        if (!run.isMagnitude(quantities[name].of[0])) return [154, 254];
        let low = Infinity, high = -Infinity;
        for (const tensor of rows) {
            for (let column = 0; column < run.columns.length; column++) {
                const value = code(name, tensor, column);
                if (value < 2 || isBroken(name, value)) continue;
                if (value < low) low = value;
                if (value > high) high = value;
            }
        }
        return low <= high ? [low, high === low ? low + 1 : high] : [2, 3];
    };

    const draw = (canvas, name, rows) => {
        const columns = run.columns.length, height = rows.length * rowHeight <= most ? rows.length : Math.min(rows.length, most);
        canvas.width = columns;
        canvas.height = Math.max(1, height);
        const context = canvas.getContext("2d"), image = context.createImageData(columns, Math.max(1, height)), [low, high] = range(name, rows);
        const shades = Array.from({length: 256}, (_, k) => [...shade(k / 255), 255]);
        for (let y = 0; y < height; y++) {
            const begin = Math.floor(y * rows.length / height), end = Math.max(begin + 1, Math.floor((y + 1) * rows.length / height));
            for (let column = 0; column < columns; column++) {
                let value = 0;
                for (let k = begin; k < end; k++) value = Math.max(value, code(name, rows[k], column));
                const color = value === 0 ? empty : isBroken(name, value) ? broken : value === 1 ? shades[0] : shades[Math.round(255 * Math.max(0, Math.min(1, (value - low) / (high - low))))];
                image.data.set(color, 4 * (y * columns + column));
            }
        }
        context.putImageData(image, 0, 0);
        return [low, high];
    };

    const legend = (name, [low, high]) => {
        const stops = Array.from({length: 8}, (_, k) => css(shade(k / 7))).join(",");
        const text = value => quantities[name].text(run.decode(quantities[name].of[0], value));
        return page.el("div", {class: "legend"}, page.el("span", {}, text(low), " ", page.el("span", {class: "bar", style: `background:linear-gradient(90deg,${stops})`}), " ", text(high)),
            run.isMagnitude(quantities[name].of[0]) ? page.el("span", {}, page.el("span", {class: "swatch", style: `background:${css(broken)}`}), "infinite or NaN") : null,
            page.el("span", {}, page.el("span", {class: "swatch"}), "not collected"));
    };

    // choose(tensor, column) is called for the cell that the user chose.
    const create = choose => {
        const canvas = page.el("canvas", {tabindex: 0, role: "img", "aria-label": "Heat map. Arrow keys move from cell to cell, Enter shows the tensor."});
        const readout = page.el("p", {class: "readout muted", "aria-live": "polite"}, "Move over the map, or focus it and use the arrow keys. A click or Enter shows the tensor below.");
        const names = page.el("div", {class: "names", "aria-hidden": true}), key = page.el("div");
        const quantity = page.el("select", {}, available().map(name => page.el("option", {}, name)));
        const filter = page.el("input", {type: "search", placeholder: "name, scope or format"});
        const first = run.columns[0]?.[0] ?? 0, last = run.columns.at(-1)?.[1] ?? 0;
        let rows = [], at = [0, 0];
        const read = () => {
            const tensor = rows[at[0]];
            if (tensor === undefined) return;
            const shown = available().map(name => [name, Math.max(...quantities[name].of.filter(run.has).map(part => run.value(part, tensor, at[1]) ?? -1))])
                .filter(([, value]) => value >= 0).map(([name, value]) => `${name} ${value === Infinity ? "infinite or NaN" : quantities[name].text(value)}`);
            readout.textContent = `${run.label(tensor)}, ${run.stepText(at[1])}: ${shown.join(", ") || "not collected"}`;
        };
        const update = () => {
            const word = filter.value.trim().toLowerCase();
            rows = run.tensors.map((_, k) => k).filter(k => !word || `${run.label(k)} ${run.tensors[k].format} ${run.tensors[k].direction}`.toLowerCase().includes(word));
            key.replaceChildren(rows.length ? legend(quantity.value, draw(canvas, quantity.value, rows)) : "No tensor matches.");
            const isShort = rows.length * rowHeight <= most;
            canvas.style.height = `${isShort ? rows.length * rowHeight : most}px`;
            names.replaceChildren(...(isShort ? rows.map(k => page.el("div", {style: `height:${rowHeight}px`}, run.label(k))) : []));
            at = [Math.min(at[0], Math.max(0, rows.length - 1)), at[1]];
        };
        const locate = event => {
            const box = canvas.getBoundingClientRect(), part = (value, size, count) => Math.max(0, Math.min(count - 1, Math.floor(value / size * count)));
            at = [part(event.clientY - box.top, box.height, rows.length), part(event.clientX - box.left, box.width, run.columns.length)];
            read();
        };
        canvas.addEventListener("mousemove", locate);
        canvas.addEventListener("click", event => { locate(event); choose(rows[at[0]], at[1]); });
        canvas.addEventListener("keydown", event => {
            const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
            if (event.key === "Enter") choose(rows[at[0]], at[1]);
            if (!move && event.key !== "Enter") return;
            event.preventDefault();
            if (move) at = [Math.max(0, Math.min(rows.length - 1, at[0] + move[0])), Math.max(0, Math.min(run.columns.length - 1, at[1] + move[1]))];
            read();
        });
        quantity.addEventListener("change", update);
        filter.addEventListener("input", update);
        update();
        return [page.el("div", {class: "controls"}, page.el("label", {}, "Quantity", quantity), page.el("label", {}, "Only tensors with", filter)), key,
            page.el("div", {class: "heat"}, names, canvas, page.el("div", {class: "steps"}, page.el("span", {}, `step ${first}`), page.el("span", {}, `step ${last}`))), readout];
    };
    return {create};
})();
