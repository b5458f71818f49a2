const root = document.documentElement;
const show = (language) => { root.lang = root.dataset.lang = language; };
document.getElementById("language").addEventListener("click", () => {
  show(root.lang === "en" ? "zh" : "en");
});
if ((navigator.language || "").startsWith("zh")) show("zh");
