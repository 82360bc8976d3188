"use strict";
// The sections about the program: formats, kernels, memory, graph.
const programSections = () => {
    const {el, data, table, number, bytes} = page;
    // Of more than two policies, the page shows two that the user chooses.
    let policies = data.policies.length > 2 ? [data.policies[0], data.policies.at(-1)] : data.policies;
    const text = (name, key = name) => ({name, cell: row => row[key] || "-"});

    // Pairs the rows of two policies by tensor, use and scope. Equal keys are paired in their order.
    const paired = (first, second) => {
        const key = (row, seen) => {
            const name = JSON.stringify([row.tensor, row.use, row.scope]), count = seen.get(name) ?? 0;
            seen.set(name, count + 1);
            return `${name}${count}`;
        };
        const keyed = rows => { const seen = new Map(); return new Map(rows.map(row => [key(row, seen), row])); };
        const left = keyed(first), right = keyed(second);
        const rows = [...new Set([...left.keys(), ...right.keys()])].map(name => ({a: left.get(name), b: right.get(name)}));
        const differs = ({a, b}) => !a || !b || a.format !== b.format || a.scale !== b.scale;
        return [...rows.filter(differs).map(row => ({...row, differs: true})), ...rows.filter(row => !differs(row))];
    };

    // What each matmul multiplies, and the conditions of the rule that decides. Equal texts of two operands occur once.
    const matmuls = policy => {
        const each = (row, text, separator = "; ") => [...new Set(row.operands.map(text))].join(separator);
        const sign = row => row.operator.startsWith("conv_") ? " * " : " @ ";
        return policy.matmuls.length ? table([text("tensor"), {name: "operands", cell: row => row.operands.map(operand => operand.tensor).join(sign(row))},
            {name: "formats", cell: row => row.operands.map(operand => operand.format).join(sign(row))}, {name: "scale", cell: row => each(row, operand => operand.scale)},
            {name: "policy", cell: row => each(row, operand => operand.policy)}, {name: "because of", cell: row => each(row, operand => operand.why)}, text("scope"), text("source")],
        policy.matmuls, {caption: `Matmuls and convolutions under ${policy.name}`, tall: true}) : null;
    };

    const formats = () => {
        const [a, b] = policies;
        if (!b) {
            const columns = [text("tensor"), text("use"), text("format"), text("scale"), text("policy"), text("scope"), text("source")];
            return [el("p", {}, `The policy ${a.name} decides the format of ${a.sites.length} arrays. Marked rows are converted to f16 or 8 bits without a scale.`),
                table(columns, a.sites, {caption: "Format of each array", tall: true, mark: row => row.unsafe ? "marked" : null}), matmuls(a)];
        }
        const rows = paired(a.sites, b.sites), count = rows.filter(row => row.differs).length;
        const either = name => ({name, cell: row => (row.a ?? row.b)[name] || "-"});
        const side = (which, policy) => ({name: policy.name, cell: row => row[which] ? `${row[which].format}, scale: ${row[which].scale} (${row[which].policy})` : "unchanged"});
        const total = list => list.reduce((sum, kernel) => sum + kernel.read + kernel.written, 0);
        return [el("p", {}, `${a.name} and ${b.name} differ in ${count} of ${rows.length} arrays. These rows are marked and come first.`),
            table([{name: "", cell: row => row.name}, {name: a.name, number: true, cell: row => row.a}, {name: b.name, number: true, cell: row => row.b}], [
                {name: "kernels", a: a.kernels.length, b: b.kernels.length}, {name: "bytes that kernels read and write", a: bytes(total(a.kernels)), b: bytes(total(b.kernels))},
                {name: "largest use of the arena", a: bytes(Math.max(0, ...a.memory.alive)), b: bytes(Math.max(0, ...b.memory.alive))},
                {name: "arguments and results", a: bytes(a.memory.arguments), b: bytes(b.memory.arguments)}], {caption: "Sizes under both policies"}),
            table([either("tensor"), either("use"), side("a", a), side("b", b), either("scope"), either("source")], rows, {caption: "Format of each array under both policies",
                tall: true, mark: row => row.differs ? "marked" : null}), matmuls(a), matmuls(b)];
    };

    const roofline = kernels => {
        const points = kernels.map((kernel, k) => ({k, kernel, moved: kernel.read + kernel.written})).filter(({kernel, moved}) => kernel.flops > 0 && moved > 0);
        const isMeasured = points.some(({kernel}) => kernel.seconds);
        const used = isMeasured ? points.filter(({kernel}) => kernel.seconds) : points;
        const y = ({kernel}) => isMeasured ? kernel.flops / kernel.seconds / 1e9 : kernel.flops;
        const intensity = ({kernel, moved}) => kernel.flops / moved;
        return plots.plot("Kernels by FLOPs per byte", () => {
            const shapes = [], low = Math.min(...used.map(intensity)) / 2, high = Math.max(...used.map(intensity)) * 2;
            const traces = [{type: "scatter", mode: "markers", name: "kernels", x: used.map(intensity), y: used.map(y), text: used.map(({k, kernel}) => `${k} ${kernel.kernel}`),
                hovertemplate: "%{text}<br>%{x:.3g} FLOPs per byte<br>%{y:.3g}<extra></extra>", marker: {color: page.color("line-1"), size: 9}}];
            if (isMeasured) {
                const speed = Math.max(...used.map(({kernel, moved}) => moved / kernel.seconds / 1e9)), most = Math.max(...used.map(y));
                const roof = [low, most / speed, Math.max(high, most / speed * 2)];
                traces.push(plots.line(`fastest measured here: ${number(speed, 3)} GB/s, ${number(most, 3)} GFLOP/s`, roof, roof.map(x => Math.min(most, x * speed)), "line-2", {mode: "lines"}));
            }
            return {traces, shapes, x: {title: "FLOPs per byte", type: "log", exponentformat: "power"}, y: {title: isMeasured ? "GFLOP/s" : "FLOPs of one run", type: "log", exponentformat: "power"}};
        });
    };

    const kernelTable = policy => {
        const reasons = k => {
            const consumers = new Map();
            for (const edge of policy.edges.filter(each => each.producer === k)) consumers.set(edge.reason, [...(consumers.get(edge.reason) ?? []), edge.consumer]);
            return [...consumers].map(([reason, numbers]) => `not with ${numbers.join(", ")}: ${reason}`);
        };
        const rows = policy.kernels.map((kernel, k) => ({k, ...kernel, reasons: reasons(k)}));
        const isMeasured = rows.some(row => row.seconds);
        return table([{name: "", number: true, cell: row => row.k}, text("kernel"), text("kind"), {name: "fuses", wide: true, cell: row => row.fused.join(" ")},
            ...(isMeasured ? [{name: "us", number: true, cell: row => row.seconds ? number(1e6 * row.seconds, 3) : "-"},
                {name: "GB/s", number: true, cell: row => row.seconds ? number((row.read + row.written) / row.seconds / 1e9, 3) : "-"}] : []),
            {name: "reads", number: true, cell: row => bytes(row.read)}, {name: "writes", number: true, cell: row => bytes(row.written)}, {name: "FLOPs", number: true, cell: row => number(row.flops, 3)},
            text("scope"), text("source"), {name: "why not more", wide: true, cell: row => el("div", {}, row.reasons.map(reason => el("div", {}, reason)))}], rows,
        {caption: `Kernels of ${policy.name}, in the order of the run`, tall: true});
    };

    const kernels = () => policies.flatMap(policy => {
        const sized = policy.symbolic ? " Symbolic extents count as 128." : "";
        const hasPlot = policy.kernels.some(kernel => kernel.flops > 0), plot = hasPlot ? roofline(policy.kernels) : null;
        return [el("h3", {}, `${policy.name}: ${policy.kernels.length} kernels`),
            el("p", {}, policy.kernels.some(kernel => kernel.seconds) ? `Times are the fastest of the profiled runs.${sized}`
                : `No times were measured. The option --profile adds them.${sized}`), plot, kernelTable(policy)];
    });

    const memory = () => policies.map((policy, k) => {
        const {steps, alive, buffers} = policy.memory, most = Math.max(0, ...alive);
        if (!steps.length) return null;
        const plot = plots.plot("Memory by steps of the plan", () => ({
            traces: [{type: "scatter", mode: "lines", fill: "tozeroy", name: "alive", x: steps.map((_, step) => step), y: alive, text: steps, line: {shape: "hvh", color: page.color(plots.colors[k])},
                hovertemplate: "step %{x} (%{text})<br>%{y:.4s}B<extra></extra>"}],
            x: {title: "step of the plan", ...(steps.length <= 20 ? {dtick: 1} : {})}, y: {title: "bytes alive", exponentformat: "SI", rangemode: "tozero"}, showlegend: false}));
        const largest = [...buffers].sort((a, b) => b.bytes - a.bytes).slice(0, 50);
        return el("div", {}, el("h3", {}, policy.name), el("p", {}, `Arrays between kernels take ${bytes(most)} at most, in step ${alive.indexOf(most)}. Arguments and results take ${bytes(policy.memory.arguments)}.`),
            plot, table([text("array", "name"), {name: "bytes", number: true, cell: row => bytes(row.bytes)}, {name: "first step", number: true, cell: row => row.first}, {name: "last step", number: true, cell: row => row.last}],
                largest, {caption: "The largest arrays between kernels", tall: true}));
    });

    const picture = svg => document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);

    const graph = () => {
        const {svg, scopes, reason} = data.graph, inner = el("div"), name = el("h3", {id: "scope-name"});
        const choice = el("select", {id: "scope-choice"}, scopes.map((scope, k) => el("option", {value: k}, `${scope.name} (${scope.operators.length})`)));
        const overview = svg ? picture(svg) : null;
        const show = () => {
            const scope = scopes[choice.value];
            name.textContent = scope.name;
            overview?.querySelectorAll(".chosen").forEach(each => each.classList.remove("chosen"));
            overview?.querySelector(`#scope-${choice.value}`)?.classList.add("chosen");
            inner.replaceChildren(scope.svg ? el("div", {class: "graph scroll", tabindex: 0, role: "region", "aria-label": `Operators of ${scope.name}`}, picture(scope.svg)) : el("p", {class: "muted"}, reason),
                table([{name: "operators", cell: row => el("code", {}, row[0])}, {name: "source", cell: row => row[1]}], scope.operators, {caption: `Operators of ${scope.name}`, tall: true}));
        };
        const choose = k => { choice.value = k; show(); };
        overview?.querySelectorAll(".scope").forEach(node => {
            const k = Number(node.id.slice("scope-".length));
            for (const [key, value] of [["tabindex", 0], ["role", "button"], ["aria-label", `Show ${scopes[k].name}`]]) node.setAttribute(key, value);
            node.addEventListener("click", () => choose(k));
            node.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(k); } });
        });
        choice.addEventListener("change", show);
        if (scopes.length) show();
        return [el("p", {}, "The first picture shows the scopes of the program and the bodies of its loops and branches (dashed arrows), the second the operators in one scope. Choose a scope to see its operators."),
            overview ? el("div", {class: "graph scroll", tabindex: 0, role: "region", "aria-label": "Scopes of the program"}, overview) : el("p", {class: "muted"}, reason),
            el("div", {class: "controls"}, el("label", {}, "Scope", choice)), name, inner];
    };

    const places = {formats: el("div"), kernels: el("div"), memory: el("div", {class: "columns"})};
    const showPolicies = () => {
        for (const [name, make] of Object.entries({formats, kernels, memory})) places[name].replaceChildren(...make().filter(Boolean));
        for (const place of Object.values(places)) place.querySelectorAll(".plot").forEach(plots.show);
    };
    const choices = data.policies.length > 2 ? policies.map(policy => el("select", {}, data.policies.map(({name}, k) => el("option", {value: k, selected: name === policy.name}, name)))) : [];
    const choose = () => { policies = choices.map(choice => data.policies[choice.value]); showPolicies(); };
    for (const choice of choices) choice.addEventListener("change", choose);

    page.section("formats", policies.length > 1 ? "Two policies" : "Formats",
        choices.length ? el("div", {class: "controls"}, choices.map((choice, k) => el("label", {}, ["Policy", "Other policy"][k], choice))) : null, places.formats);
    page.section("kernels", "Kernels", places.kernels);
    page.section("memory", "Memory", places.memory);
    page.section("graph", "Graph", data.graph.scopes.length ? graph() : el("p", {}, "The program has no operators."));
    showPolicies();
};
