// A series over time. The rule: what a chart shows is also said in words, for who does not see it.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../theme";
import { language, t } from "../words";

export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly color: 1 | 2 | 3 | 4 | 5;
  readonly isFilled?: boolean;
}

interface ChartProps {
  readonly title: string;
  /** Unix times in seconds. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  readonly height?: number;
  readonly isLog?: boolean;
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function clock(unix: number, hasSeconds: boolean): string {
  return new Date(unix * 1000).toTimeString().slice(0, hasSeconds ? 8 : 5);
}

function options(props: ChartProps, width: number): uPlot.Options {
  const axis = {
    stroke: css("--muted"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { show: false },
    font: '11px system-ui, "Noto Sans CJK SC", sans-serif',
  };
  const format = (value: number | null): string => (value === null || value === undefined ? "–" : props.format(value));
  return {
    width,
    height: props.height ?? 150,
    cursor: { y: false, points: { size: 6 }, sync: { key: "time" } },
    legend: { live: true },
    scales: { y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.12 : 1] } },
    axes: [
      { ...axis, size: 26, values: (_, splits) => splits.map((value) => clock(value, (splits[1] ?? 0) - (splits[0] ?? 0) < 60)), space: 64 },
      { ...axis, size: 62, values: (_, splits) => splits.map((value) => format(value)), space: 34 },
    ],
    series: [
      { label: t("time"), value: (_, value) => (value === null ? "–" : clock(value, true)) },
      ...props.lines.map((line) => ({
        label: line.name,
        stroke: css(`--series-${line.color}`),
        width: 1.5,
        // A few points make no line that could be seen.
        points: { show: props.times.length < 6 },
        value: (_: uPlot, value: number | null) => format(value),
        ...(line.isFilled ? { fill: `${css(`--series-${line.color}`)}22` } : {}),
      })),
    ],
  };
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const latest = useRef(props);
  latest.current = props;
  const shown = [theme.use(), language.use(), props.lines.map((line) => line.name).join()].join();
  const data = [props.times, ...props.lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const dataNow = useRef(data);
  dataNow.current = data;

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    plot.current = new uPlot(options(latest.current, element.clientWidth), dataNow.current, element);
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: latest.current.height ?? 150 });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [shown]);

  useEffect(() => plot.current?.setData(data), [props.times, props.lines]);

  const last = props.lines.map((line) => {
    const value = line.values.findLast((one) => one !== null);
    return `${line.name} ${value === null || value === undefined ? "–" : props.format(value)}`;
  });
  return (
    <figure class="chart" aria-label={`${props.title}: ${last.join(", ")}`}>
      <figcaption>{props.title}</figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}
