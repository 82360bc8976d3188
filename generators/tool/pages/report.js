"use strict";
// The sections of a report, in their order. The sections about the program are in report_program.js.
(() => {
    const {el, data} = page;

    const showTensor = tensor => { const box = document.getElementById("tensor-choice"); box.value = tensor; box.dispatchEvent(new Event("change"));
        document.getElementById("tensor").scrollIntoView(); box.focus({preventScroll: true}); };

    const finding = each => el("div", {class: `finding ${each.severity}`}, el("p", {}, el("b", {}, {bad: "Cause or failure: ", warn: "Suspicious: ", note: "Note: ", good: ""}[each.severity]), each.text),
        each.todo ? el("p", {class: "muted"}, each.todo) : null,
        run?.hasStatistics && each.tensor >= 0 ? el("button", {type: "button", click: () => showTensor(each.tensor)}, "Show this tensor") : null);

    page.section("findings", "Findings", data.findings.map(finding), page.facts([
        ["program", data.program], ["policy", data.policies.map(policy => policy.name).join(", ")], ["run", run?.name], ["compared with", data.against?.name],
        ["steps", run && run.last_step >= run.first_step ? `${run.first_step} to ${run.last_step}` : null], ["tensors with statistics", run?.tensors.length],
        ["target of the run", run?.target]]));

    const finite = value => typeof value === "number" ? value : null;
    const metricPlots = () => {
        const names = Object.keys(run.metrics), start = names.includes("loss") ? "loss" : names[0], other = data.against;
        const choice = el("select", {}, names.map(name => el("option", {selected: name === start}, name)));
        const scale = el("select", {}, el("option", {}, "linear"), el("option", {}, "log"));
        const curves = () => [run, other].filter(each => each?.metrics[choice.value]).map(each => ({name: each.name, ...each.metrics[choice.value]}));
        const values = plots.plot("A metric by steps", () => ({
            traces: curves().map((curve, k) => plots.line(curve.name, curve.steps, curve.values.map(finite), plots.colors[k])),
            x: {title: "step"}, y: {title: choice.value, type: scale.value}}));
        const broken = el("p", {class: "muted"});
        const difference = other ? plots.plot("Difference from the other run in percent", () => {
            const [ours, theirs] = curves(), steps = new Map(theirs ? theirs.steps.map((step, k) => [step, theirs.values[k]]) : []);
            const points = (ours?.steps ?? []).map((step, k) => [step, finite(ours.values[k]), finite(steps.get(step))]).filter(([, a, b]) => a !== null && b);
            return {traces: [plots.line("difference", points.map(p => p[0]), points.map(([, a, b]) => 100 * (a / b - 1)), "line-2")], x: {title: "step"},
                y: {title: `${choice.value}: difference from ${other.name}, %`}};
        }) : null;
        const update = () => {
            for (const place of [values, difference]) if (place) plots.show(place);
            const bad = run.metrics[choice.value].values.findIndex(value => finite(value) === null);
            broken.textContent = bad < 0 ? "" : `${choice.value} is ${run.metrics[choice.value].values[bad]} from step ${run.metrics[choice.value].steps[bad]} on.`;
        };
        choice.addEventListener("change", update);
        scale.addEventListener("change", update);
        page.section("metrics", "Loss and metrics", el("div", {class: "controls"}, el("label", {}, "Metric", choice), el("label", {}, "Axis", scale)), broken,
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
        const place = el("div");
        const show = index => {
            const tensor = run.tensors[index], drawn = tensorPlots(index), histogram = histogramPlot(tensor, index);
            place.replaceChildren(page.facts([["tensor", tensor.tensor], ["use", tensor.use], ["operator", tensor.operator], ["scope", tensor.scope], ["direction", tensor.direction],
                ["source", tensor.source], ["format", tensor.format], ["rule of the policy", tensor.policy], ["elements", page.number(tensor.elements)]]),
            el("div", {class: "columns"}, drawn.map(plot => el("div", {}, plot)), el("div", {}, histogram)));
            for (const plot of [...drawn, ...histogram.filter(each => each.classList.contains("plot"))]) plots.show(plot);
        };
        const choice = el("select", {id: "tensor-choice"}, run.tensors.map((_, k) => el("option", {value: k}, run.label(k))));
        choice.addEventListener("change", () => show(Number(choice.value)));
        page.section("steps", "Tensors by steps", heatMap.create(tensor => showTensor(tensor)));
        page.section("tensor", "One tensor", el("div", {class: "controls"}, el("label", {}, "Tensor", choice)), place);
        const start = Math.max(0, data.findings.find(each => each.tensor >= 0)?.tensor ?? 0);
        choice.value = start;
        show(start);
    };

    if (run && Object.keys(run.metrics).length) metricPlots();
    if (run?.hasStatistics) tensorSections();
    programSections();
})();
