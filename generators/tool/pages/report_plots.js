"use strict";
// Plots of plotly in the colors of the page. A plot is drawn again if the theme changes.
const plots = (() => {
    const drawn = new Map(), colors = ["line-1", "line-2", "line-3", "line-4", "line-5"];

    const axis = ({title, ...more}) => ({gridcolor: page.color("line"), zerolinecolor: page.color("line"), linecolor: page.color("muted"), automargin: true,
        ...more, title: {text: title}});

    const render = (place, make) => {
        const {traces, x, y, shapes, annotations, ...layout} = make();
        Plotly.react(place, traces, {
            paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {family: "system-ui, sans-serif", size: 12, color: page.color("text")},
            margin: {l: 56, r: 12, t: 8, b: 44}, legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0}, hovermode: "closest", shapes, annotations,
            xaxis: axis(x), yaxis: axis(y), ...layout,
        }, {responsive: true, displayModeBar: false});
    };

    // `make` returns {traces, x, y, ...}: the traces of plotly, the axes with their titles, more entries of its layout.
    const plot = (label, make) => {
        const place = page.el("div", {class: "plot", role: "img", "aria-label": label});
        drawn.set(place, make);
        return place;
    };
    const show = place => render(place, drawn.get(place));
    page.onTheme(() => { for (const place of drawn.keys()) if (place.isConnected && place.data) show(place); });

    const line = (name, x, y, color, more = {}) => ({type: "scatter", mode: x.length > 60 ? "lines" : "lines+markers", name, x, y, line: {color: page.color(color), width: 2},
        marker: {size: 5, color: page.color(color)}, ...more});
    return {plot, show, line, colors};
})();
