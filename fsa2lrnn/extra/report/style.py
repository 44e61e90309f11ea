"""The page's style sheet, for light and dark, screen and paper; all drawings use its palettes."""

from fsa2lrnn.extra.report.drawing.automaton import LOOK
from fsa2lrnn.extra.report.film import STYLE as FILM

STYLE = (
    LOOK
    + """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main, header, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 40px; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.015em; text-wrap: balance; }
h2 { font-size: 1.3rem; margin: 0 0 4px; letter-spacing: -0.01em; }
h3 { font-size: 1rem; margin: 26px 0 8px; } h4 { font-size: 0.9rem; margin: 14px 0 0; color: var(--soft); }
p { margin: 6px 0 12px; max-width: 92ch; text-wrap: pretty; } header p { max-width: none; }
.lead, figcaption, .hint { color: var(--soft); }
.hint, figcaption { font-size: 0.875rem; }
a { color: var(--accent); }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 12px; top: 12px; background: var(--card); padding: 8px 14px; border-radius: 6px; z-index: 9; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 4px; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 20px; padding: 0; margin: 18px 0 0;
  font-size: 0.9rem; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 22px 26px;
  margin: 22px 0; }
figure { margin: 14px 0 4px; min-width: 0; }
figure > svg { display: block; }
figcaption { margin-top: 6px; }
svg { width: 100%; height: auto; overflow: visible; }
.pair, .trio { display: grid; gap: 18px 28px; align-items: start; }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }
.trio { grid-template-columns: repeat(auto-fit, minmax(min(100%, 250px), 1fr)); }
.trio.broad { grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
.scroll { overflow-x: auto; } .on-narrow { display: none; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; width: 100%; }
th, td { text-align: left; padding: 7px 14px 7px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 500; font-size: 0.8rem; }
tbody th { font-weight: 600; white-space: nowrap; }
.number { text-align: right !important; } td.number { white-space: nowrap; } .tight { width: auto; font-size: 0.82rem; }
.tight th, .tight td { padding: 4px 14px 4px 0; }
.kind { display: inline-block; width: 0.62em; height: 0.62em; border-radius: 50%; margin-right: 0.5em; }
.kind.learned { background: var(--learned); } .kind.constructed { background: var(--constructed); border-radius: 1px; }
.kind.repaired { background: var(--repaired); border-radius: 1px; transform: rotate(45deg) scale(0.88); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 22px; list-style: none; padding: 0; margin: 8px 0 0;
  font-size: 0.875rem; }
.swatch { display: inline-block; width: 1.5em; height: 0.75em; border-radius: 3px; margin-right: 0.5em; }
.swatch.proved { background: var(--proved); } .swatch.fails { background: var(--fails); }
.swatch.unknown { background: repeating-linear-gradient(135deg, var(--unknown) 0 3px, transparent 3px 6px); }
details { border-top: 1px solid var(--rule); padding: 12px 0; }
details:first-of-type { border-top: 0; }
summary { cursor: pointer; font-weight: 600; padding: 4px 0; }
summary .lead { font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; font-size: 0.9rem; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code, .word td, .word th { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace; }
code { font-size: 0.85em; overflow-wrap: anywhere; }
.word { width: auto; font-size: 0.82rem; }
.word td { padding: 3px 5px; text-align: center; border: 0; min-width: 1.7em; }
.word tbody th { font-family: inherit; font-weight: 500; color: var(--soft); padding: 3px 14px 3px 0; border: 0;
  position: sticky; left: 0; background: var(--card); }
.word .wrong { background: var(--fails); color: var(--on); border-radius: 4px; font-weight: 700; }
.word .gap { color: var(--soft); } .word .position td { color: var(--soft); font-size: 0.72rem; }
.word .silent { color: var(--soft); opacity: 0.55; }
footer { color: var(--soft); font-size: 0.85rem; padding-bottom: 40px; }

.grid { stroke: var(--grid); stroke-width: 1; } .grid.strong { stroke: var(--soft); stroke-dasharray: 2 3; }
.axis { stroke: var(--soft); stroke-width: 1; }
.curve { fill: none; stroke-width: 1.8; } .curve.learned { opacity: 0.75; }
.curve.repaired { stroke-dasharray: 6 3; } .curve.constructed { stroke-dasharray: 2 3; }
.whisker { stroke-width: 1.4; opacity: 0.8; }
.learned { --kind: var(--learned); } .repaired { --kind: var(--repaired); } .constructed { --kind: var(--constructed); }
.curve, .whisker, .tick { stroke: var(--kind); } .mark, .dot { fill: var(--kind); }
.mark { stroke: var(--card); stroke-width: 1; }
.dot { opacity: 0.75; stroke: var(--card); stroke-width: 0.6; }
.dot.idle { fill: var(--soft); opacity: 0.22; stroke: none; }
.tick { stroke-width: 1.5; opacity: 0.8; } .tick.idle { stroke: var(--soft); opacity: 0.25; }
.unit { fill: none; stroke: var(--soft); stroke-width: 1.3; }
.proved { fill: var(--proved); } .fails { fill: var(--fails); }
.stripes { stroke: var(--unknown); stroke-width: 3; }
.state { --tint: oklch(var(--state-l) var(--state-c) var(--h)); }
.state.near { fill: var(--tint); opacity: 0.7; } .state.far { stroke: var(--tint); stroke-width: 1.6; fill: none; }
.frame { fill: none; stroke: var(--rule); stroke-width: 1; }
@media (max-width: 640px) {
  main, header, footer { padding-inline: 12px; } section { padding: 16px; }
  .on-wide { display: none; } .on-narrow { display: block; }
  #verdicts .number { display: none; } tbody th { white-space: normal; }
}
@media print {
  :root { color-scheme: light; --page: #fff; --card: #fff; }
  body { font-size: 10.5pt; }
  nav, .skip { display: none; }
  .pair { grid-template-columns: 1fr 1fr; } .trio, .trio.broad { grid-template-columns: repeat(3, 1fr); }
  .pair.wide { grid-template-columns: 1fr; }
  header, main, footer { max-width: none; padding: 0; }
  section { border: 0; padding: 0; margin: 0 0 18pt; }
  figure, tr, h2, h3 { break-inside: avoid; } h2, h3, summary { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
  svg, .swatch, .kind, .wrong { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .scroll { overflow: visible; } .on-wide { display: block; } .on-narrow { display: none; } .word { font-size: 0.6rem; }
}
"""
    + FILM
)
