"use strict";
// The numbers of the runs, as report_run.cpp encodes them: base64, tensor by tensor, one number for each column of steps.
const runs = page.data.runs.map(source => {
    const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const magnitudes = ["amax", "scale", "rms"];
    const cells = {};
    for (const [name, text] of Object.entries(source.cells)) {
        const raw = bytes(text);
        cells[name] = magnitudes.includes(name) ? new Uint16Array(raw.buffer) : raw;
    }
    // null: not collected. A magnitude is 2 to the power of code / 64 - 256, a share 2 to the power of (code - 254) / 10.
    const magnitude = code => code === 0 ? null : code === 1 ? 0 : code === 65535 ? Infinity : 2 ** (code / 64 - 256);
    const share = code => code === 0 ? null : code === 1 ? 0 : 2 ** ((code - 254) / 10);
    const columns = source.columns, isMagnitude = name => magnitudes.includes(name);
    const decode = (name, code) => isMagnitude(name) ? magnitude(code) : share(code);
    return {
        ...source, cells, hasStatistics: Object.keys(cells).length > 0, isMagnitude, decode,
        has: name => name in cells,
        code: (name, tensor, column) => cells[name][tensor * columns.length + column],
        value: (name, tensor, column) => cells[name] ? decode(name, cells[name][tensor * columns.length + column]) : null,
        series: (name, tensor) => columns.map((_, column) => cells[name] ? decode(name, cells[name][tensor * columns.length + column]) : null),
        histogram: ([step, scale, text]) => ({step, scale: magnitude(scale), shares: [...bytes(text)].map(share)}),
        stepText: column => columns[column][0] === columns[column][1] ? `step ${columns[column][0]}` : `steps ${columns[column][0]} to ${columns[column][1]}`,
        label: tensor => {
            const {tensor: name, use, scope} = source.tensors[tensor];
            return [name, use, scope && `in ${scope}`].filter(Boolean).join(" ");
        },
    };
});
// The run whose tensors the page shows: at first, the run of the first finding about a tensor.
let run = runs[page.data.findings.find(each => each.tensor >= 0)?.run] ?? runs.find(each => each.hasStatistics) ?? runs[0];
