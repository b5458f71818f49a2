// The icons, drawn here: nothing is loaded from elsewhere.
const PATHS = {
  overview: "M3 13h4l3-8 4 14 3-6h4",
  devices: "M4 6h16v9H4zM9 20h6M12 15v5",
  tasks: "M5 6h14M5 12h14M5 18h9",
  dead: "M12 4 2.5 20h19zM12 10v4M12 17v.5",
  workers: "M7 7h10v10H7zM10 3v4M14 3v4M10 17v4M14 17v4M3 10h4M3 14h4M17 10h4M17 14h4",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M13 4.5v5M7 14.5v5",
  search: "M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5 21 21",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M19 5l-1.5 1.5M6.5 17.5 5 19",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  refresh: "M20 12a8 8 0 1 1-2.5-5.8M20 3v4h-4",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 12.5 10 17 19 7",
  out: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
