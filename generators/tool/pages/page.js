"use strict";
// What all pages share: their data, elements, sections with an entry in the list of sections, tables, and the switch between light and dark.
const page = (() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const main = document.getElementById("content"), contents = document.getElementById("contents");

    // Returns an element. `properties` are attributes; a function is the listener of an event. Children are nodes or texts, never HTML.
    const el = (tag, properties = {}, ...children) => {
        const made = document.createElement(tag);
        for (const [name, value] of Object.entries(properties ?? {})) {
            if (typeof value === "function") made.addEventListener(name, value);
            else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
        }
        made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined).map(child => child instanceof Node ? child : String(child)));
        return made;
    };

    // Adds a section to the page. Returns it, so that its content can be replaced.
    const section = (id, title, ...children) => {
        const made = el("section", {id, "aria-labelledby": `${id}-title`}, el("h2", {id: `${id}-title`}, title), ...children);
        main.append(made);
        contents.append(el("a", {href: `#${id}`}, title));
        return made;
    };

    // columns: [{name, number, wide, cell}]: right-aligned numbers, or a column of long texts; `cell` returns the text or node of a row.
    // options: caption, mark (class of a row), tall. A table of many rows gets a filter, and shows more rows on demand: a browser takes
    // 1 ms for about 10 rows.
    const filterable = 30, shownAtOnce = 200;
    const table = (columns, rows, options = {}) => {
        const cells = (row, tag) => columns.map(column => el(tag, {class: column.number ? "number" : column.wide && tag === "td" ? "wide" : null, scope: tag === "th" ? "col" : null},
            tag === "th" ? column.name : column.cell(row)));
        const body = el("tbody"), more = el("button", {type: "button"}), filter = el("input", {type: "search"});
        let found = rows, texts = null;
        const extend = count => {
            const begin = body.children.length;
            body.append(...found.slice(begin, begin + count).map(row => el("tr", {class: options.mark?.(row)}, cells(row, "td"))));
            more.hidden = body.children.length >= found.length;
            more.textContent = `Show more of ${found.length} rows`;
        };
        more.addEventListener("click", () => extend(5 * shownAtOnce));
        filter.addEventListener("input", () => {
            texts ??= rows.map(row => columns.map(column => column.cell(row)).map(cell => cell instanceof Node ? cell.textContent : cell).join(" ").toLowerCase());
            found = rows.filter((_, k) => texts[k].includes(filter.value.toLowerCase()));
            body.replaceChildren();
            extend(shownAtOnce);
        });
        extend(shownAtOnce);
        const made = el("div", {class: options.tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": options.caption ?? "Table"},
            el("table", {}, options.caption ? el("caption", {}, options.caption) : null, el("thead", {}, el("tr", {}, cells(null, "th"))), body), more);
        return rows.length < filterable ? made : el("div", {}, el("div", {class: "controls"}, el("label", {}, `Only rows of "${options.caption ?? "the table"}" with`, filter)), made);
    };

    // facts: [[name, text or node]]; entries without a value are left out.
    const facts = list => el("dl", {class: "facts"}, list.filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

    const number = (value, digits = 4) => typeof value !== "number" ? String(value ?? "-")
        : Number.isInteger(value) && Math.abs(value) < 1e6 ? value.toLocaleString("en-US") : Number(value.toPrecision(digits)).toString();
    const percent = share => share === 0 ? "0 %" : share < 0.0001 ? "< 0.01 %" : `${(100 * share).toPrecision(3)} %`;
    const bytes = count => {
        const power = count < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(count) / 10));
        return `${number(count / 2 ** (10 * power), 3)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
    };

    // The color that a variable of page.css has in the present theme, for drawings that cannot use the variable.
    const probe = el("span", {hidden: true});
    document.body.append(probe);
    const color = name => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };

    const themes = ["system", "light", "dark"], listeners = [], button = document.getElementById("theme");
    const stored = () => { try { return localStorage.getItem("scalide-theme"); } catch { return null; } }; // a browser may have no storage for files
    let theme = themes.includes(stored()) ? stored() : "system";
    const apply = () => {
        if (theme === "system") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = theme;
        button.textContent = `Theme: ${theme}`;
        for (const listener of listeners) listener();
    };
    button.addEventListener("click", () => {
        theme = themes[(themes.indexOf(theme) + 1) % themes.length];
        try { localStorage.setItem("scalide-theme", theme); } catch { /* the theme then holds until the page is closed */ }
        apply();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
    apply();

    return {data, main, el, section, table, facts, number, percent, bytes, color, onTheme: listener => listeners.push(listener)};
})();
