"use strict";
// The page of `scalide view`: data.passes with the lines before and after each, data.lines, data.files and data.sources (see view_passes.h).
(() => {
    const {data, el} = page;
    const context = 3; // equal lines that are shown around a change
    const isChanged = pass => pass.script.some(([op]) => op !== "=");
    const changed = data.passes.filter(isChanged);
    const count = (pass, sign) => pass.script.reduce((sum, [op, n]) => sum + (op === sign ? n : 0), 0);
    let query = "";

    // The source file, at the bottom of the window.
    const sourceTitle = el("strong", {}), sourceText = el("pre", {tabindex: 0});
    const source = el("aside", {id: "source", hidden: true, "aria-label": "Source"},
        el("header", {}, sourceTitle, el("button", {type: "button", click: () => showSource(null)}, "Close (Esc)")), sourceText);
    document.body.append(source);
    const showSource = place => {
        source.hidden = !place;
        document.body.classList.toggle("has-source", Boolean(place));
        if (!place) return;
        sourceTitle.textContent = `${place.file}:${place.line}`;
        const lines = data.sources[place.file].split("\n").map((text, i) => el("div", {class: i + 1 === place.line ? "here" : null}, `${String(i + 1).padStart(4)}  ${text}`));
        sourceText.replaceChildren(...lines);
        lines[place.line - 1]?.scrollIntoView({block: "center"});
    };

    // The part of two texts in which they differ: the number of equal characters at the start and at the end.
    const difference = (a, b) => {
        let start = 0, end = 0;
        while (start < a.length && start < b.length && a[start] === b[start]) start++;
        while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
        return {start, end};
    };

    // A text with marks around the part that differs from its partner, and around matches of the search.
    const marked = (text, other) => {
        const {start, end} = other === undefined ? {start: text.length, end: 0} : difference(text, other);
        const parts = [text.slice(0, start), text.slice(start, text.length - end), text.slice(text.length - end)];
        return parts.flatMap((part, i) => part ? [i === 1 ? el("mark", {}, found(part)) : found(part)] : []).flat();
    };
    const found = text => {
        if (!query) return [text];
        const parts = [], low = text.toLowerCase();
        let at = 0;
        for (let next = low.indexOf(query); next >= 0; next = low.indexOf(query, at)) {
            parts.push(text.slice(at, next), el("span", {class: "found"}, text.slice(next, next + query.length)));
            at = next + query.length;
        }
        return [...parts, text.slice(at)];
    };

    const place = line => {
        const [, file, number] = data.lines[line];
        if (file === undefined) return null;
        const at = {file: data.files[file], line: number}, label = `${at.file}:${number}`;
        return data.sources[at.file] === undefined ? el("span", {class: "place"}, label)
            : el("button", {type: "button", class: "place", click: () => showSource(at)}, label);
    };
    const cell = (line, other, name) => line === undefined ? el("td", {class: "empty"})
        : el("td", {class: name}, place(line), marked(data.lines[line][0], other === undefined ? undefined : data.lines[other][0]));

    // Rows of two cells. A removed and an added line of the same value stand next to each other; other lines fill the rows between them.
    const pairs = (removed, added) => {
        const name = line => data.lines[line][0].trim().split(" = ")[0], rest = new Map(added.map(line => [name(line), line])), rows = [];
        let next = 0, left = [];
        const fill = others => {
            for (let i = 0; i < Math.max(left.length, others.length); i++) rows.push([left[i], others[i], false]);
            left = [];
        };
        for (const line of removed) {
            const partner = rest.get(name(line));
            const position = partner === undefined ? -1 : added.indexOf(partner, next);
            if (position < 0) { left.push(line); continue; }
            fill(added.slice(next, position));
            rows.push([line, added[position], true]);
            next = position + 1;
        }
        fill(added.slice(next));
        return rows;
    };
    const changeRows = (removed, added) => pairs(removed, added)
        .map(([a, b, same]) => el("tr", {}, cell(a, same ? b : undefined, "removed"), cell(b, same ? a : undefined, "added")));
    const equalRow = line => el("tr", {class: "equal"}, cell(line, undefined, null), cell(line, undefined, null));
    const equalRows = (lines, isFirst, isLast) => {
        const head = isFirst ? 0 : context, tail = isLast ? 0 : context;
        if (lines.length <= head + tail + 1) return lines.map(equalRow);
        const hidden = lines.slice(head, lines.length - tail);
        const row = el("tr", {}, el("td", {class: "skip", colspan: 2},
            el("button", {type: "button", click: () => row.replaceWith(...hidden.map(equalRow))}, `${hidden.length} equal lines`)));
        return [...lines.slice(0, head).map(equalRow), row, ...lines.slice(lines.length - tail).map(equalRow)];
    };
    const rowsOf = pass => {
        const rows = [];
        let before = 0, after = 0, removed = [], added = [];
        const flush = () => { rows.push(...changeRows(removed, added)); removed = []; added = []; };
        pass.script.forEach(([op, n], i) => {
            if (op === "-") removed = removed.concat(pass.before.slice(before, before += n));
            else if (op === "+") added = added.concat(pass.after.slice(after, after += n));
            else {
                flush();
                rows.push(...equalRows(pass.after.slice(after, after + n), i === 0, i === pass.script.length - 1));
                before += n;
                after += n;
            }
        });
        flush();
        return rows;
    };

    const overview = page.section("overview", "Overview", page.facts([["program", data.program], ["policy", data.policy], ["target", data.target],
        ["passes", `${data.passes.length}, ${changed.length} of them change the program`]]));
    const status = el("span", {role: "status"});
    const search = el("input", {type: "search", input: () => find(search.value), keydown: event => { if (event.key === "Enter") step(1, hits()); }});
    overview.append(el("div", {class: "controls"}, el("label", {}, "Search in all passes", search), status),
        el("p", {class: "muted"}, "Keys: j and k, or the right and left arrow, go to the next and previous pass that changes the program. / searches, ",
            "Enter goes to the next pass with a match. Esc closes the source."));
    const links = new Map(), list = el("ol", {class: "passes"});
    overview.append(list);

    const all = page.section("passes", "Passes"), boxes = new Map();
    const fill = (pass, box) => box.querySelector(".scroll").replaceChildren(el("table", {class: "diff"},
        el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "before"), el("th", {scope: "col"}, "after"))), el("tbody", {}, rowsOf(pass))));
    const addBox = pass => {
        const what = pass.of_kernels ? "kernels: " : "";
        const box = el("details", {class: "pass", id: `pass-${pass.name}`, toggle: () => { if (box.open) fill(pass, box); }},
            el("summary", {}, el("code", {}, pass.name), ` ${what}${count(pass, "-")} lines removed, ${count(pass, "+")} added`),
            el("div", {class: "scroll"}));
        boxes.set(pass, box);
        return box;
    };
    // Passes without a change are one line each run, so that the page shows what happens.
    for (let i = 0; i < data.passes.length;) {
        if (isChanged(data.passes[i])) { all.append(addBox(data.passes[i++])); continue; }
        const same = [];
        for (; i < data.passes.length && !isChanged(data.passes[i]); i++) same.push(data.passes[i].name);
        all.append(el("p", {class: "muted"}, "No change: ", el("code", {}, same.join(", "))));
    }
    for (const pass of data.passes) {
        const link = isChanged(pass) ? el("a", {href: `#pass-${pass.name}`, click: event => { event.preventDefault(); open(pass); }}, pass.name)
            : el("a", {class: "same", title: "no change"}, pass.name);
        links.set(pass, link);
        list.append(el("li", {}, link));
    }

    let current = null;
    const open = pass => {
        links.get(current)?.removeAttribute("aria-current");
        current = pass;
        links.get(pass).setAttribute("aria-current", "true");
        const box = boxes.get(pass);
        box.open = true;
        fill(pass, box);
        box.querySelector("summary").scrollIntoView();
        box.querySelector("summary").focus({preventScroll: true});
    };
    const step = (by, passes) => {
        if (passes.length === 0) return;
        const at = current === null ? -1 : data.passes.indexOf(current);
        const next = by > 0 ? passes.find(pass => data.passes.indexOf(pass) > at) : passes.findLast(pass => data.passes.indexOf(pass) < at);
        open(next ?? (by > 0 ? passes[0] : passes[passes.length - 1]));
    };
    const matches = pass => new Set([...pass.before, ...pass.after].filter(line => data.lines[line][0].toLowerCase().includes(query))).size;
    const hits = () => query ? changed.filter(pass => matches(pass) > 0) : changed;
    const find = text => {
        query = text.trim().toLowerCase();
        const counts = new Map(changed.map(pass => [pass, query ? matches(pass) : 0]));
        status.textContent = query ? `${hits().length} passes have a match` : "";
        for (const [pass, n] of counts) links.get(pass).textContent = query ? `${pass.name} (${n})` : pass.name;
        for (const [pass, box] of boxes) if (box.open) fill(pass, box);
    };
    document.addEventListener("keydown", event => {
        if (event.ctrlKey || event.altKey || event.metaKey) return;
        if (event.key === "Escape") { showSource(null); document.activeElement?.blur(); return; }
        if (event.target instanceof HTMLInputElement) return;
        const by = {j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1}[event.key];
        if (by) { event.preventDefault(); step(by, changed); }
        else if (event.key === "/") { event.preventDefault(); search.focus(); }
    });
    if (changed.length > 0) { boxes.get(changed[0]).open = true; }
})();
