"use strict";
// The sections of a report, in their order. The sections about the program are in report_program.js.
(() => {
    const {el, data} = page;

    const choose = (id, value) => { const box = document.getElementById(id); box.value = value; box.dispatchEvent(new Event("change")); return box; };
    const showTensor = (tensor, index = runs.indexOf(run)) => {
        if (runs[index] !== run) choose("run-choice", index);
        const box = choose("tensor-choice", tensor);
        document.getElementById("tensor").scrollIntoView();
        box.focus({preventScroll: true});
    };

    const finding = each => el("div", {class: `finding ${each.severity}`}, el("p", {}, el("b", {}, {bad: "Cause or failure: ", warn: "Suspicious: ", note: "Note: ", good: ""}[each.severity]), each.text),
        each.todo ? el("p", {class: "muted"}, each.todo) : null,
        runs[each.run]?.hasStatistics && each.tensor >= 0 ? el("button", {type: "button", click: () => showTensor(each.tensor, each.run)}, "Show this tensor") : null);

    const ofRuns = text => [...new Set(runs.map(text).filter(Boolean))].join(", ");
    page.section("findings", "Findings", data.findings.map(finding), page.facts([
        ["program", data.program], ["policy", data.policies.map(policy => policy.name).join(", ")], [runs.length > 1 ? "runs" : "run", ofRuns(each => each.name)],
        ["compared with", data.against?.name], ["steps", ofRuns(each => each.last_step >= each.first_step ? `${each.first_step} to ${each.last_step}` : "")],
        ["tensors with statistics", ofRuns(each => `${each.tensors.length}`)], ["target of the run", ofRuns(each => each.target)]]));

    const finite = value => typeof value === "number" ? value : null;
    // The run that the others are compared with: --against, else the first one.
    const base = data.against ?? (runs.length > 1 ? runs[0] : null);
    // Single steps differ because of their noise, so a difference compares the means of some steps: [step, mean, mean of the other run].
    const blocks = (points, size) => Array.from({length: Math.ceil(points.length / size)}, (_, k) => points.slice(k * size, (k + 1) * size)).map(block =>
        [block.at(-1)[0], ...[1, 2].map(column => block.reduce((sum, point) => sum + point[column], 0) / block.length)]);
    const metricPlots = () => {
        const names = [...new Set(runs.flatMap(each => Object.keys(each.metrics)))], start = names.includes("loss") ? "loss" : names[0];
        const choice = el("select", {}, names.map(name => el("option", {selected: name === start}, name)));
        const scale = el("select", {}, el("option", {}, "linear"), el("option", {}, "log"));
        // Each run keeps its color in both plots.
        const all = [...runs, data.against].filter(Boolean).map((each, k) => ({log: each, name: each.name, metrics: each.metrics, color: plots.colors[k % plots.colors.length]}));
        const curves = () => all.filter(each => each.metrics[choice.value]).map(each => ({...each, ...each.metrics[choice.value]}));
        const longest = Math.max(0, ...curves().map(curve => curve.steps.length)), sizes = [1, 10, 100];
        const size = el("select", {}, sizes.map((each, k) => el("option", {value: each, selected: longest >= [0, 200, 5000][k]}, each === 1 ? "each value" : `means of ${each} values`)));
        const values = plots.plot("A metric by steps", () => ({
            traces: curves().map(curve => plots.line(curve.name, curve.steps, curve.values.map(finite), curve.color)), x: {title: "step"}, y: {title: choice.value, type: scale.value}}));
        const broken = el("p", {class: "muted"});
        const difference = base ? plots.plot(`Difference from ${base.name} in percent`, () => {
            const theirs = base.metrics[choice.value], steps = new Map(theirs ? theirs.steps.map((step, k) => [step, theirs.values[k]]) : []);
            const traces = curves().filter(curve => curve.log !== base).map(curve => {
                const points = curve.steps.map((step, k) => [step, finite(curve.values[k]), finite(steps.get(step))]).filter(([, a, b]) => a !== null && b);
                const means = blocks(points, Number(size.value));
                return plots.line(curve.name, means.map(point => point[0]), means.map(([, a, b]) => 100 * (a / b - 1)), curve.color);
            });
            return {traces, showlegend: true, x: {title: "step"}, y: {title: `${choice.value}: difference from ${base.name}, %`}};
        }) : null;
        const update = () => {
            for (const place of [values, difference]) if (place) plots.show(place);
            broken.textContent = curves().map(({name, steps, values: numbers}) => {
                const bad = numbers.findIndex(value => finite(value) === null);
                return bad < 0 ? "" : `${runs.length > 1 ? `${name}: ` : ""}${choice.value} is ${numbers[bad]} from step ${steps[bad]} on. `;
            }).join("");
        };
        for (const control of [choice, scale, size]) control.addEventListener("change", update);
        page.section("metrics", "Loss and metrics", el("div", {class: "controls"}, el("label", {}, "Metric", choice), el("label", {}, "Axis", scale),
            base ? el("label", {}, "Difference of", size) : null), broken,
            el("div", {class: "columns"}, values, difference));
        update();
    };

    // The exponents that a format holds: shaded from the smallest normal number to the largest, lighter for subnormal numbers.
    const formatWindow = (tensor, shift) => {
        const at = value => Math.log2(value) + shift, shapes = [], notes = [];
        const band = (from, to, opacity, text) => {
            shapes.push({type: "rect", xref: "x", yref: "paper", x0: from, x1: to, y0: 0, y1: 1, fillcolor: page.color("good"), opacity, line: {width: 0}, layer: "below"});
            notes.push({x: (from + to) / 2, y: 1, yref: "paper", yanchor: "bottom", text, showarrow: false, font: {size: 11}});
        };
        if (tensor.normal && tensor.largest) band(at(tensor.normal), at(tensor.largest), 0.22, tensor.format);
        if (tensor.smallest && tensor.normal > tensor.smallest) band(at(tensor.smallest), at(tensor.normal), 0.1, "subnormal");
        return {shapes, annotations: notes};
    };

    const histogramPlot = (tensor, index) => {
        const shown = run.histograms[index].map(run.histogram);
        if (!shown.length) return [el("p", {class: "muted"}, "The run has no histogram of this tensor. A policy collects it with 'histogram'.")];
        const choice = el("select", {}, shown.map((each, k) => el("option", {value: k, selected: k === shown.length - 1}, `step ${each.step}`)));
        const place = plots.plot("Histogram of the exponents of a tensor", () => {
            const {shares, scale} = shown[choice.value], shift = scale ? Math.log2(scale) : 0;
            const x = shares.map((_, k) => tensor.first_exponent + (k - 1) * tensor.octaves + tensor.octaves / 2 + shift);
            return {traces: [{type: "bar", name: "elements", x, y: shares.map(share => 100 * (share ?? 0)), width: tensor.octaves * 0.92, marker: {color: page.color("line-1")}}],
                x: {title: "log2 |x|"}, y: {title: "elements, %"}, ...formatWindow(tensor, shift), margin: {l: 56, r: 12, t: 26, b: 44}, showlegend: false};
        });
        choice.addEventListener("change", () => plots.show(place));
        return [el("div", {class: "controls"}, el("label", {}, "Histogram of", choice)), place];
    };

    const tensorPlots = index => {
        const tensor = run.tensors[index], steps = run.columns.map(([, last]) => last), clean = list => list.map(value => value === Infinity || value === 0 ? null : value);
        const scale = run.series("scale", index), hasScale = scale.some(value => value !== null);
        const bound = tensor.largest ? scale.map(value => hasScale ? value && value * tensor.largest : tensor.largest) : [];
        const magnitudes = plots.plot("amax and scale by steps", () => ({
            traces: [plots.line("amax", steps, clean(run.series("amax", index)), "line-1"), ...(bound.length ? [plots.line("largest number of the format", steps, clean(bound), "line-3", {line: {dash: "dot", color: page.color("line-3")}})] : []),
                ...(hasScale ? [plots.line("scale", steps, clean(scale), "line-2")] : [])],
            x: {title: "step"}, y: {title: "magnitude", type: "log", exponentformat: "power"}}));
        const kinds = [["zeros", "became zero"], ["saturated", "saturated"], ["subnormal", "subnormal"]].filter(([name]) => run.has(name));
        const shares = kinds.length ? plots.plot("Lost elements by steps", () => ({traces: kinds.map(([name, text], k) => plots.line(text, steps, run.series(name, index).map(value => value === null ? null : 100 * value), plots.colors[k])),
            x: {title: "step"}, y: {title: "elements, %", rangemode: "tozero"}})) : null;
        return [magnitudes, shares].filter(Boolean);
    };

    const tensorSections = () => {
        const place = el("div"), map = el("div"), choice = el("select", {id: "tensor-choice"});
        const show = index => {
            const tensor = run.tensors[index], drawn = tensorPlots(index), histogram = histogramPlot(tensor, index);
            place.replaceChildren(page.facts([["tensor", tensor.tensor], ["use", tensor.use], ["operator", tensor.operator], ["scope", tensor.scope], ["direction", tensor.direction],
                ["source", tensor.source], ["format", tensor.format], ["rule of the policy", tensor.policy], ["elements", page.number(tensor.elements)]]),
            el("div", {class: "columns"}, drawn.map(plot => el("div", {}, plot)), el("div", {}, histogram)));
            for (const plot of [...drawn, ...histogram.filter(each => each.classList.contains("plot"))]) plots.show(plot);
        };
        const showRun = () => {
            const index = runs.indexOf(run), start = Math.max(0, data.findings.find(each => each.run === index && each.tensor >= 0)?.tensor ?? 0);
            map.replaceChildren(...heatMap.create(tensor => showTensor(tensor)));
            choice.replaceChildren(...run.tensors.map((_, k) => el("option", {value: k}, run.label(k))));
            choice.value = start;
            show(start);
        };
        const shown = runs.map((each, k) => [each, k]).filter(([each]) => each.hasStatistics);
        const chosen = el("select", {id: "run-choice"}, shown.map(([each, k]) => el("option", {value: k}, each.name)));
        chosen.value = runs.indexOf(run);
        chosen.addEventListener("change", () => { run = runs[chosen.value]; showRun(); });
        choice.addEventListener("change", () => show(Number(choice.value)));
        page.section("steps", "Tensors by steps", shown.length > 1 ? el("div", {class: "controls"}, el("label", {}, "Run", chosen)) : null, map);
        page.section("tensor", "One tensor", el("div", {class: "controls"}, el("label", {}, "Tensor", choice)), place);
        showRun();
    };

    if (runs.some(each => Object.keys(each.metrics).length)) metricPlots();
    if (run?.hasStatistics) tensorSections();
    programSections();
})();
