// Fits the reference to the page: its colours, a list of endpoints on a phone, and a name for each input.
const reference = document.querySelector("rapi-doc");
const wide = window.matchMedia("(min-width: 768px)");
const COLOURS = {
  default: {
    theme: "light", "bg-color": "#ffffff", "text-color": "#1d1d1f", "nav-bg-color": "#f5f5f5",
    "nav-text-color": "#33363d", "nav-hover-text-color": "#1d1d1f", "primary-color": "#2f46b8",
  },
  slate: {
    theme: "dark", "bg-color": "#0d0e11", "text-color": "#e6e6ea", "nav-bg-color": "#17181d",
    "nav-text-color": "#c9cbd3", "nav-hover-text-color": "#ffffff", "primary-color": "#a9b8ff",
  },
};

const follow = () => {
  const colours = COLOURS[document.body.dataset.mdColorScheme] ?? COLOURS.default;
  Object.entries(colours).forEach(([name, value]) => reference.setAttribute(name, value));
  reference.setAttribute("render-style", wide.matches ? "focused" : "view");
};

// Its inputs lack names for screen readers. They are in shadow roots, also within each other, which appear later.
const named = new WeakSet();
const nameInputs = (root) => {
  if (!named.has(root)) {
    named.add(root);
    new MutationObserver(() => nameInputs(root)).observe(root, { childList: true, subtree: true });
  }
  root.querySelectorAll("*").forEach((element) => {
    if (element.shadowRoot) nameInputs(element.shadowRoot);
    if (element.matches("input, select, textarea") && !element.ariaLabel) {
      element.ariaLabel = element.dataset.pname || element.placeholder || "value";
    }
  });
};

follow();
wide.addEventListener("change", follow);
new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
customElements.whenDefined("rapi-doc").then(() => {
  reference.replaceChildren(); // the text for a page without the script
  // The operators' listener shows the reference, but the requests would go to another origin.
  reference.addEventListener("spec-loaded", ({ detail }) => {
    const url = new URL(detail.servers[0]?.url ?? "/", location.href);
    reference.setAttribute("allow-try", String(url.origin === location.origin));
    nameInputs(reference.shadowRoot);
  });
});
