(function () {
  // Which theme, before the first paint: ?__theme=, then the choice made in the top bar, then the system's.
  const asked = new URLSearchParams(location.search).get("__theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("grpo-studio-theme"); } catch (error) { chosen = null; }
  function apply() {
    const theme = [asked, chosen].find((name) => name === "dark" || name === "light");
    document.documentElement.dataset.theme = theme || (system.matches ? "dark" : "light");
    window.dispatchEvent(new Event("studio-theme"));
  }
  system.addEventListener("change", apply);
  window.studioTheme = function () {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("grpo-studio-theme", chosen); } catch (error) { /* private window: this page only */ }
    document.documentElement.dataset.theme = chosen;
    window.dispatchEvent(new Event("studio-theme"));
  };
  apply();
})();
