// Builds the dashboard into the Python package. The rule: the same sources give the same bytes,
// so that what is committed can be compared with a build (tests/web/test_bundle.py).
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/fairlane/http/static",
    emptyOutDir: true,
    target: "es2022",
    // The policy of our pages allows no inline code, and no polyfill is needed for es2022.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
});
